"""What plots and pictures of a comparison need, bounded: some rows of both sides, counts by batch size.

A list or tensor is sampled by the element that differs most in each row, so that one row is one point.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from parity.compare import ERROR_COLUMN, ColumnComparison, Comparison
from parity.compare.values import one_array, shown_value
from parity.report.imagery import Pictured, pictured_rows, pictured_stages

if TYPE_CHECKING:
    from parity.stages import Traces

MAX_COLUMNS = 6
MAX_OUTSIDE, MAX_WITHIN, MAX_EQUAL = 600, 300, 300
"""Rows of a column's sample: beyond tolerance, within it with other bits, and with the same bits."""

MAX_CHANGES = 8
MAX_PICTURED = 6
_MAX_CHANGED_ROWS = 10_000
_MAX_ELEMENTS = 4_000_000

Rows = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ColumnSample:
    """Some rows of one column of numbers, both sides; null is NaN.

    Attributes:
        column: the column's name.
        of_rows: how many rows were compared.
        rows: the rows' positions, ascending.
        elements: for each, the place in its list of the value that differs most; 0 for plain numbers.
        expected: that value on one side.
        obtained: that value on the other.
        outside: whether the row is beyond tolerance.
    """

    column: str
    of_rows: int
    rows: Rows
    elements: Rows
    expected: Doubles
    obtained: Doubles
    outside: Mask

    @property
    def errors(self) -> Doubles:
        """The distances of the two sides; NaN where one is NaN or infinite and the other is not."""
        with np.errstate(invalid="ignore", over="ignore"):
            apart = np.abs(self.expected - self.obtained)
        same = (self.expected == self.obtained) | (np.isnan(self.expected) & np.isnan(self.obtained))
        apart[same] = 0.0
        apart[np.isinf(apart)] = np.nan
        return apart

    def to_dict(self) -> dict[str, object]:
        """The sample as JSON-ready data: lists of one length."""
        return {
            "column": self.column,
            "of_rows": self.of_rows,
            "rows": self.rows.tolist(),
            "elements": self.elements.tolist(),
            "expected": [_plain(value) for value in self.expected.tolist()],
            "obtained": [_plain(value) for value in self.obtained.tolist()],
            "outside": self.outside.tolist(),
        }


@dataclass(frozen=True)
class BucketShare:
    """How many of the rows that inference saw in batches of `size` have other bits, and are outside."""

    size: int
    rows: int
    differing: int
    outside: int


@dataclass(frozen=True)
class Change:
    """How many rows have `obtained` in place of `expected`."""

    expected: object
    obtained: object
    rows: int


@dataclass(frozen=True)
class Samples:
    """Values of a comparison for plots and pictures.

    Attributes:
        columns: columns of numbers of which a row differs, divergent ones first.
        buckets: counts by the number of rows that inference saw at once, where that is known.
        changes: for divergent columns of other values, the most frequent changes.
        pictures: images of the rows that differ most, and of what the stages made of them.
    """

    columns: tuple[ColumnSample, ...] = ()
    buckets: tuple[BucketShare, ...] = ()
    changes: Mapping[str, tuple[Change, ...]] = field(default_factory=dict[str, "tuple[Change, ...]"])
    pictures: tuple[Pictured, ...] = ()

    def column(self, name: str) -> ColumnSample | None:
        """The sample of the column `name`, if there is one."""
        return next((item for item in self.columns if item.column == name), None)

    def to_dict(self) -> dict[str, object]:
        """The samples as JSON-ready data; pictures by their sizes."""
        return {
            "columns": [column.to_dict() for column in self.columns],
            "buckets": [dict(vars(bucket)) for bucket in self.buckets],
            "changes": {
                name: [
                    {"expected": _plain(c.expected), "obtained": _plain(c.obtained), "rows": c.rows}
                    for c in changes
                ]
                for name, changes in self.changes.items()
            },
            "pictures": [item.to_dict() for item in self.pictures],
        }


def samples(
    comparison: Comparison,
    expected: pa.Table,
    obtained: pa.Table,
    buckets: Sequence[int] | npt.NDArray[np.integer[Any]] | None = None,
    *,
    inputs: pa.Table | None = None,
    traces: tuple[Traces, Traces] | None = None,
) -> Samples:
    """What a report shows of the two tables that were compared.

    Args:
        comparison: what comparing them found, with rows paired by position.
        expected: one side's answers.
        obtained: the other side's, row for row.
        buckets: for each row the number of rows that inference saw at once, 0 where that is not known.
        inputs: the rows, for their images.
        traces: what the stages made of each row on both sides, for images in between.

    Returns:
        Nothing where the tables have not the same number of rows: no row is known to belong to another.
    """
    count = expected.num_rows
    if count != obtained.num_rows or comparison.rows != count or not len(comparison.differing_rows):
        return Samples()
    differing = [
        column
        for column in comparison.columns
        if column.name != ERROR_COLUMN and len(column.differing_rows) and column.comparable
    ]
    differing.sort(key=lambda column: column.verdict != "divergent")
    found = [_sample(column, expected, obtained) for column in differing[:MAX_COLUMNS]]
    worst = list(dict.fromkeys(row.row for column in comparison.divergent() for row in column.worst))
    pictures = pictured_rows(worst[:MAX_PICTURED], inputs, expected, obtained)
    if traces is not None:
        pictures += pictured_stages(worst[:2], *traces)
    return Samples(
        columns=tuple(item for item in found if item is not None),
        buckets=_shares(comparison, buckets, count),
        changes={
            column.name: changes
            for column in differing
            if column.verdict == "divergent" and (changes := _changes(column, expected, obtained))
        },
        pictures=tuple(pictures),
    )


def _sample(column: ColumnComparison, expected: pa.Table, obtained: pa.Table) -> ColumnSample | None:
    outside = column.failing_rows
    within = np.setdiff1d(column.differing_rows, outside)
    equal = np.setdiff1d(np.arange(expected.num_rows, dtype=np.int64), column.differing_rows)
    parts = [_spread(outside, MAX_OUTSIDE), _spread(within, MAX_WITHIN), _spread(equal, MAX_EQUAL)]
    rows = np.sort(np.concatenate(parts))
    sides = [one_array(table.column(column.name)) for table in (expected, obtained)]
    if _is_list(sides[0].type) and _is_list(sides[1].type):
        width = max(1, len(cast("Any", sides[0]).flatten()) // max(1, expected.num_rows))
        rows = _spread(rows, max(1, _MAX_ELEMENTS // width))
    found = _pairs(*(side.take(cast("Any", pa.array(rows))) for side in sides))
    if found is None:
        return None
    return ColumnSample(column.name, expected.num_rows, rows, *found, np.isin(rows, outside))


def _pairs(ours: pa.Array[Any], theirs: pa.Array[Any]) -> tuple[Rows, Doubles, Doubles] | None:
    """For each row a place in its list and the values there; None where these are no numbers."""
    one, other = _numbers(ours), _numbers(theirs)
    if one is not None and other is not None:
        return np.zeros(len(one), np.int64), one, other
    return _furthest(ours, theirs)


def _numbers(values: pa.Array[Any]) -> Doubles | None:
    """Numbers and truths as float64, null as NaN; None for other types."""
    kind = values.type
    if not (pat.is_integer(kind) or pat.is_floating(kind) or pat.is_boolean(kind) or pat.is_decimal(kind)):
        return None
    return cast("Any", values).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def _furthest(ours: pa.Array[Any], theirs: pa.Array[Any]) -> tuple[Rows, Doubles, Doubles] | None:
    """For each pair of lists of numbers the place where they lie furthest apart, and the values there."""
    if not (_is_list(ours.type) and _is_list(theirs.type)):
        return None
    one, other = (_numbers(cast("Any", side).flatten()) for side in (ours, theirs))
    if one is None or other is None:
        return None
    lengths = [
        np.asarray(cast("Any", pc).fill_null(pc.list_value_length(side), 0), np.int64)
        for side in (ours, theirs)
    ]
    starts = [np.cumsum(part) - part for part in lengths]
    places = np.zeros(len(ours), np.int64)
    found = np.full((2, len(ours)), np.nan)
    for row in np.flatnonzero((lengths[0] == lengths[1]) & (lengths[0] > 0)).tolist():
        first, second, size = starts[0][row], starts[1][row], lengths[0][row]
        pair = one[first : first + size], other[second : second + size]
        with np.errstate(invalid="ignore"):
            apart = np.abs(pair[0] - pair[1])
        equal = (pair[0] == pair[1]) | (np.isnan(pair[0]) & np.isnan(pair[1]))
        apart = np.where(equal, 0.0, np.nan_to_num(apart, nan=np.inf))
        places[row] = int(np.argmax(apart))
        found[:, row] = pair[0][places[row]], pair[1][places[row]]
    return places, found[0], found[1]


def _is_list(kind: pa.DataType) -> bool:
    return pat.is_list(kind) or pat.is_large_list(kind) or pat.is_fixed_size_list(kind)


def _shares(
    comparison: Comparison, buckets: Sequence[int] | npt.NDArray[np.integer[Any]] | None, count: int
) -> tuple[BucketShare, ...]:
    if buckets is None or len(buckets) != count:
        return ()
    sizes = np.asarray(buckets, np.int64)
    differing, outside = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    differing[comparison.differing_rows] = True
    outside[comparison.failing_rows] = True
    return tuple(
        BucketShare(size, int(here.sum()), int(differing[here].sum()), int(outside[here].sum()))
        for size in np.unique(sizes[sizes > 0]).tolist()
        for here in [sizes == size]
    )


def _changes(column: ColumnComparison, expected: pa.Table, obtained: pa.Table) -> tuple[Change, ...]:
    kind = expected.schema.field(column.name).type
    if not (pat.is_string(kind) or pat.is_large_string(kind) or pat.is_boolean(kind) or pat.is_integer(kind)):
        return ()
    rows: Any = pa.array(_spread(column.failing_rows, _MAX_CHANGED_ROWS))
    ours, theirs = (one_array(table.column(column.name)).take(rows) for table in (expected, obtained))
    pairs = zip(ours.to_pylist(), theirs.to_pylist(), strict=True)
    first: dict[tuple[object, object], int] = {}
    counts: Counter[tuple[object, object]] = Counter()
    for place, pair in enumerate(pairs):
        first.setdefault(pair, place)
        counts[pair] += 1
    return tuple(
        Change(shown_value(ours, first[pair]), shown_value(theirs, first[pair]), number)
        for pair, number in counts.most_common(MAX_CHANGES)
    )


def _spread(rows: Rows, most: int) -> Rows:
    """At most so many of the rows, evenly spread."""
    if len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).round().astype(np.int64)]


def _plain(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    return value
