"""Columns to try frames on: nulls, NaN, infinities, extremes, zones, ties and hostile text."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

LOW, HIGH = -(2**63), 2**63 - 1
NAN, INF = math.nan, math.inf

TEXTS = [
    None,
    "",
    " ",
    "a",
    "A",
    "ß",
    "İ",
    "ﬁ",
    " Été ",
    "été",
    "\u00a0x\u2003",
    "日本",
    "👍🏽",
    "a.b",
    "1",
    "Aa",
]
FLOATS = [None, NAN, INF, -INF, 0.0, -0.0, 0.5, 1.5, 2.5, -0.5, 1e-300, 1e300, 0.1, 3.0, -7.25]
INTS = [None, 0, 1, -1, 2, 7, -7, 100, HIGH, LOW, HIGH - 1, 2**53 + 1]
TICKS = [
    None,
    0,
    -1,
    1_700_000_000_000_000,
    -62_135_596_800_000_000,
    1_711_846_800_000_000,
    951_782_399_999_999,
]
DAYS = [None, 0, -1, 19_000, 11_016, -719_162]
LISTS = [None, [], [1.5], [0.1, 0.2, 0.3], [None, 2.0], [None], [NAN, 1.0]]

SOURCES: dict[str, tuple[list[Any], pa.DataType]] = {
    "i": (INTS, pa.int64()),
    "small": ([None, 0, 1, -128, 127, 5, -3], pa.int8()),
    "u": ([None, 0, 1, 2**32 - 1, 77], pa.uint32()),
    "x": (FLOATS, pa.float64()),
    "y": (FLOATS, pa.float32()),
    "k": ([None, 1, 2, 3], pa.int64()),
    "flag": ([None, True, False], pa.bool_()),
    "s": (TEXTS, pa.string()),
    "s2": (TEXTS, pa.string()),
    "t": (TICKS, pa.timestamp("us", "Europe/Berlin")),
    "naive": (TICKS, pa.timestamp("us")),
    "d": (DAYS, pa.date32()),
    "l": (LISTS, pa.list_(pa.float64())),
}


def column(name: str, rows: int) -> st.SearchStrategy[pa.Array[Any]]:
    values, dtype = SOURCES[name]
    return st.lists(st.sampled_from(values), min_size=rows, max_size=rows).map(
        lambda chosen: made(chosen, dtype)
    )


def made(values: list[Any], dtype: pa.DataType) -> pa.Array[Any]:
    """The array; times and dates from their ticks."""
    if pa.types.is_date32(dtype):
        return pa.array(values, pa.int32()).cast(dtype)
    if pa.types.is_timestamp(dtype):
        return pa.array(values, pa.int64()).cast(dtype)
    return pa.array(values, dtype)


@st.composite
def tables(draw: st.DrawFn, max_rows: int = 12) -> dict[str, pa.Array[Any]]:
    """Every column, of one number of rows, which may be none."""
    rows = draw(st.integers(0, max_rows))
    return {name: draw(column(name, rows)) for name in SOURCES}


def whole(name: str) -> pa.Array[Any]:
    """Each of the values once."""
    return made(*SOURCES[name])


def same(left: pa.Array[Any], right: pa.Array[Any]) -> bool:
    """Equal types and values; NaN equals NaN, -0.0 does not equal 0.0."""
    if left.type != right.type or len(left) != len(right):
        return False
    return [_key(value) for value in _values(left)] == [_key(value) for value in _values(right)]


def _values(array: Any) -> list[Any]:
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.int64())
    if pa.types.is_date32(array.type):
        array = array.cast(pa.int32())
    return array.to_pylist()


def _key(value: Any) -> Any:
    if isinstance(value, list):
        return [_key(item) for item in value]
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value.hex()
    return value
