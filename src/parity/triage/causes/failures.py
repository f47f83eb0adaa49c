"""Rows that get lost, and stages that raise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from parity.result import ERROR_COLUMN
from parity.triage.case import Case, Explained, Finding, Suspect
from parity.triage.dependence import fails
from parity.triage.model import Side
from parity.triage.watching import short_stage

Doubles = npt.NDArray[np.float64]


_ENOUGH_ROWS: Final = 3
"""Rows that one permutation of columns must fit before it says anything."""


# Lost rows.


def row_count(case: Case) -> Finding:
    """A stage gave another number of values than there are rows."""
    if not _fails_by_itself(case):
        return None
    if case.trials is not None and any(case.error_rows):
        short = short_stage(case.trials, case.divergence.rows)
        if short is not None:
            return Explained(f"asked again, {short[1]}", stage=short[0])
    for side in case.sides:
        for text in error_texts(side):
            if _counts_rows(text):
                return Explained(f"a row fails {side.name}: {text}")
    return None


def error_texts(side: Side) -> list[str]:
    """The messages of the rows that failed on a side."""
    if ERROR_COLUMN not in side.answers.column_names:
        return []
    errors = cast("list[dict[str, str] | None]", side.answers.column(ERROR_COLUMN).to_pylist())
    return [error.get("message") or "" for error in errors if error is not None]


_COUNTED: Final = (
    "rows for a batch of",
    "not one for each of",
    "for a batch of",
    "items at value for",
    "for 1 rows",
)


def _counts_rows(text: str) -> bool:
    return any(words in text for words in _COUNTED)


def raises(case: Case) -> Finding:
    """A stage raises on one side only."""
    one, other = case.error_rows
    alone = one ^ other
    if not alone or not set(case.failing) <= alone or not _fails_by_itself(case):
        return None
    side = case.sides[0] if alone & one else case.sides[1]
    row = min(alone)
    error: Any = side.answers.column(ERROR_COLUMN)[row].as_py()
    return Explained(
        f"{len(alone)} of {case.divergence.rows.num_rows} rows fail on one side only, {side.name}: "
        f"{error['message']}"
    )


def _fails_by_itself(case: Case) -> bool:
    """Whether a row that fails alone also fails beside copies of itself: no number of rows is to blame."""
    company = case.company
    if company is None or not fails(company.alone):
        return True
    copies = company.copies(max(company.size, 2))
    return copies is not None and all(map(fails, copies))


def _suspects() -> Iterator[Suspect]:
    yield Suspect(
        "row-count",
        "a stage gives more or fewer values than there are rows",
        "the error that the engine gives to such rows",
        "answer every row; refuse one with batch.reject(row, 'why') instead of leaving it out",
        row_count,
        ("company", "path", "process"),
    )
    yield Suspect(
        "raises",
        "a stage raises on one side only",
        "whether the rows that differ are those that fail on one side",
        "handle the row in the stage, or refuse it with batch.reject(row, 'why') on both sides",
        raises,
        ("company", "path", "process"),
    )


SUSPECTS: Final = tuple(_suspects())
