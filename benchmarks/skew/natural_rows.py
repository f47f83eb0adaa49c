"""Rows such as people have: payments, remarks, dates. Seeded by a name, so that each kind has its own."""

from __future__ import annotations

import datetime
import zlib
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pyarrow as pa

ROWS = 64
"""As many as the laws are tried on."""

COUNTRIES = ("Chile", "France", "India", "Japan", "Kenya", "Spain")

_OPENINGS = ("Really", "So far", "To be honest,", "At first", "In the end", "My sister says", "Overall")
_MIDDLES = ("the delivery", "this kettle", "the colour", "the manual", "the battery", "support", "the price")
_VERBS = ("was", "seems", "stayed", "turned out", "is still", "looked")
_JUDGEMENTS = ("great", "poor", "fine for the money", "worse than before", "better than I feared", "broken")
_TAILS = ("", "", "after two weeks", "and my neighbours agree", "but I would buy it again", "sadly")


def table_of(columns: Mapping[str, Any]) -> pa.Table:
    """A table of these columns."""
    return pa.table(cast("Any", dict(columns)))


def vectors(values: np.ndarray) -> pa.Array[Any]:
    """A column with a vector for each row of (rows, ...) values."""
    size = values[0].size
    return cast("Any", pa.FixedSizeListArray).from_arrays(pa.array(values.ravel()), size)


def generator(name: str) -> np.random.Generator:
    """Random numbers of the kind's own."""
    return np.random.default_rng(zlib.crc32(name.encode()))


def payments(name: str, rows: int = ROWS) -> pa.Table:
    """Payments: amount, balance and age, floats; no nulls and no ties."""
    rng = generator(name)
    return table_of(
        {
            "amount": np.round(rng.lognormal(3.5, 1.0, rows), 2),
            "balance": np.round(rng.normal(2500.0, 900.0, rows), 2),
            "age": rng.integers(18, 90, rows).astype(np.float64),
        }
    )


def countries(name: str, rows: int = ROWS) -> list[str]:
    """A country for each row; Japan and Kenya are rare."""
    chances = (0.2, 0.28, 0.2, 0.05, 0.05, 0.22)
    return [COUNTRIES[place] for place in generator(name).choice(len(COUNTRIES), rows, p=chances)]


def remarks(name: str, rows: int = ROWS) -> list[str]:
    """A customer's remark for each row, 4 to 14 words of ASCII."""
    rng = generator(name)
    parts = (_OPENINGS, _MIDDLES, _VERBS, _JUDGEMENTS, _TAILS)
    return [" ".join(part[rng.integers(len(part))] for part in parts).strip() for _ in range(rows)]


def moments(name: str, rows: int = ROWS) -> list[datetime.datetime]:
    """A time in UTC for each row, over two years and all hours."""
    rng = generator(name)
    start = datetime.datetime(2023, 1, 1, tzinfo=datetime.UTC)
    return [start + datetime.timedelta(minutes=int(rng.integers(2 * 365 * 24 * 60))) for _ in range(rows)]


def some(rows: int, every: int, start: int = 0) -> list[bool]:
    """True for one row in `every`."""
    return [row % every == start for row in range(rows)]
