"""The comparisons of a replay's portions, added up: by column, by hour, by version, and in the worst rows."""

from __future__ import annotations

import datetime
import heapq
import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parity.compare import ERROR_COLUMN, ColumnComparison, Comparison, Tolerances
from parity.replay.labels import LabelTally, label_form
from parity.replay.model import ColumnDrift, FailureDrift, LabelDrift, ScoreDrift, Slice, WorstRow
from parity.replay.scores import ScoreTally, is_score
from parity.schema import Schema

Mask = np.ndarray[Any, np.dtype[np.bool_]]

_HOUR_NS = 3600 * 10**9
_WORST_ROWS = 20
_EXAMPLES = 5
_KNOWN_MESSAGES = 1000
_MESSAGE = 160


@dataclass
class _Column:
    """A column's comparisons, added up; budgets are judged over all rows."""

    first: ColumnComparison
    rows: int = 0
    identical: int = 0
    within: int = 0
    failing: int = 0
    null_mismatches: int = 0
    largest_abs: float | None = None
    largest_ulp: float | None = None
    needed_ulp: int | None = 0
    structure_fails: bool = False

    def add(self, column: ColumnComparison) -> None:
        self.rows += column.rows
        self.identical += column.identical
        self.within += column.within
        self.failing += column.failing
        self.null_mismatches += column.null_mismatches
        self.structure_fails |= column.structure_fails
        ulp = column.worst_ulp
        if ulp is not None:
            self.largest_ulp = max(ulp, self.largest_ulp or 0.0)
        found = column.distances
        if found is not None:
            self.largest_abs = max(found.abs.largest, self.largest_abs or 0.0)
            needed, ours = found.needed_ulp, self.needed_ulp
            self.needed_ulp = None if needed is None or ours is None else max(ours, needed)

    def drift(self) -> ColumnDrift:
        return ColumnDrift(
            name=self.first.name,
            dtype=self.first.dtype,
            rule=self.first.rule,
            rows=self.rows,
            identical=self.identical,
            within=self.within,
            failing=self.failing,
            allowed=math.floor(self.first.rule.rows * self.rows),
            null_mismatches=self.null_mismatches,
            largest_abs=self.largest_abs,
            largest_ulp=self.largest_ulp,
            needed_ulp=self.needed_ulp if self.largest_ulp is not None else None,
            structure_fails=self.structure_fails,
        )


@dataclass
class _Slices:
    """Counts by some name of a row."""

    counts: dict[str, np.ndarray[Any, np.dtype[np.int64]]] = field(default_factory=dict[str, Any])

    def add(self, names: list[str], codes: np.ndarray[Any, Any], masks: list[Mask]) -> None:
        for code, name in enumerate(names):
            of_name = codes == code
            found = [np.count_nonzero(of_name), *(np.count_nonzero(of_name & mask) for mask in masks)]
            before = self.counts.get(name, np.zeros(len(found), np.int64))
            self.counts[name] = before + np.array(found, np.int64)

    def slices(self) -> tuple[Slice, ...]:
        return tuple(Slice(name, *self.counts[name].tolist()) for name in sorted(self.counts))


class Tally:
    """Adds up what the portions of a replay show.

    Args:
        outputs: the handler's output schema.
        tolerances: its rules, which also tell labels from other vectors.
    """

    def __init__(self, outputs: Schema, tolerances: Tolerances) -> None:
        self.rows = 0
        self._columns: dict[str, _Column] = {}
        self._findings: Counter[str] = Counter()
        self._hours, self._versions, self._profiles = _Slices(), _Slices(), _Slices()
        self._labels = {
            name: LabelTally(name, of_scores=form == "scores")
            for name, item in outputs.items()
            if (form := label_form(item, tolerances.for_column(name)))
        }
        self._scores = {
            name: ScoreTally(name)
            for name, item in outputs.items()
            if is_score(item) and name not in self._labels
        }
        self._one_sided = [0, 0, 0]
        self._failed_both = 0
        self._messages: Counter[str] = Counter()
        self._requests: dict[str, None] = {}
        self._worst: list[tuple[tuple[bool, float], int, WorstRow]] = []
        self._worst_seen = 0

    def add(self, table: pa.Table, recorded: pa.Table, replayed: pa.Table, comparison: Comparison) -> None:
        """Add a portion.

        Args:
            table: the rows as they lie in the capture.
            recorded: their answers.
            replayed: the answers now.
            comparison: the two compared, row by row.
        """
        for column in comparison.columns:
            self._columns.setdefault(column.name, _Column(column)).add(column)
        for finding in comparison.findings:
            if finding.fails:
                self._findings[finding.message] += 1
        failed = _failed(recorded), _failed(replayed)
        one_sided = self._add_failures(table, recorded, replayed, *failed)
        flips = self._add_values(recorded, replayed, np.flatnonzero(~failed[0] & ~failed[1]))
        masks = [
            _mask(comparison.differing_rows, table.num_rows),
            _mask(comparison.failing_rows, table.num_rows),
            flips,
            one_sided,
        ]
        hours = np.asarray(table.column("_time").cast(pa.int64()).to_numpy()) // _HOUR_NS
        found, codes = np.unique(hours, return_inverse=True)
        self._hours.add([_hour(int(hour)) for hour in found], codes, masks)
        for slices, name in ((self._versions, "_version"), (self._profiles, "_profile")):
            slices.add(*_coded(table.column(name)), masks)
        self._add_worst(table, comparison)
        self.rows += table.num_rows
        self._failed_both += int(np.count_nonzero(failed[0] & failed[1]))

    def columns(self) -> tuple[ColumnDrift, ...]:
        """The columns, in table order."""
        return tuple(column.drift() for column in self._columns.values())

    def findings(self) -> tuple[str, ...]:
        """What differs in structure."""
        return tuple(self._findings)

    def labels(self) -> tuple[LabelDrift, ...]:
        """The columns of labels that were compared."""
        return tuple(tally.drift() for name, tally in self._labels.items() if name in self._columns)

    def scores(self) -> tuple[ScoreDrift, ...]:
        """The columns of numbers that were compared."""
        drifts = [tally.drift() for tally in self._scores.values()]
        return tuple(drift for drift in drifts if drift is not None)

    def failures(self) -> FailureDrift:
        """The rows that failed on one side only."""
        recorded, replayed, other = self._one_sided
        return FailureDrift(
            recorded,
            replayed,
            other,
            tuple(self._messages.most_common(_EXAMPLES)),
            tuple(self._requests),
            self._failed_both,
        )

    def hours(self) -> tuple[Slice, ...]:
        """By hour."""
        return self._hours.slices()

    def versions(self) -> tuple[Slice, ...]:
        """By recorded version."""
        return self._versions.slices()

    def profiles(self) -> tuple[Slice, ...]:
        """By recorded profile."""
        return self._profiles.slices()

    def worst(self) -> tuple[WorstRow, ...]:
        """The rows that drifted most, failing ones first."""
        return tuple(
            row for _, _, row in sorted(self._worst, key=lambda item: (item[0], item[1]), reverse=True)
        )

    def _add_failures(
        self, table: pa.Table, recorded: pa.Table, replayed: pa.Table, before: Mask, now: Mask
    ) -> Mask:
        kinds = _kinds(recorded), _kinds(replayed)
        other = before & now & np.asarray(pc.fill_null(pc.not_equal(*kinds), cast("Any", False)))
        only_now = now & ~before
        self._one_sided[0] += int(np.count_nonzero(before & ~now))
        self._one_sided[1] += int(np.count_nonzero(only_now))
        self._one_sided[2] += int(np.count_nonzero(other))
        if only_now.any():
            mask = pa.array(only_now)
            errors = cast("list[dict[str, Any]]", replayed.column(ERROR_COLUMN).filter(mask).to_pylist())
            for error in errors:
                text = f"{error['kind']}: {str(error['message'] or 'no message was kept')[:_MESSAGE]}"
                if text in self._messages or len(self._messages) < _KNOWN_MESSAGES:
                    self._messages[text] += 1
            for name in table.column("_request_id").filter(mask).to_pylist()[:_EXAMPLES]:
                if len(self._requests) < _EXAMPLES:
                    self._requests[str(name)] = None
        return (before != now) | other

    def _add_values(self, recorded: pa.Table, replayed: pa.Table, rows: np.ndarray[Any, Any]) -> Mask:
        """Add labels and scores of the rows that have an answer on both sides; which rows flipped."""
        flips = np.zeros(recorded.num_rows, np.bool_)
        for name in (name for name in recorded.column_names if name in replayed.column_names):
            one, other = _taken(recorded, name, rows), _taken(replayed, name, rows)
            if one.type != other.type:
                continue
            if name in self._labels:
                flips[rows[self._labels[name].add(one, other)]] = True
            if name in self._scores:
                self._scores[name].add(one, other, rows + self.rows)
        return flips

    def _add_worst(self, table: pa.Table, comparison: Comparison) -> None:
        for column in comparison.columns:
            for row in column.worst:
                where = table.slice(row.row, 1)
                far = math.inf if row.ulp is None or math.isnan(row.ulp) else row.ulp
                found = WorstRow(
                    request_id=_text(where, "_request_id"),
                    row=int(_text(where, "_row")),
                    time=_moment(where),
                    version=_text(where, "_version"),
                    column=column.name,
                    where=row.where,
                    recorded=row.expected,
                    replayed=row.obtained,
                    reason=row.reason,
                    fails=row.fails,
                    ulp=row.ulp,
                    input=dict(row.input or {}),
                )
                self._worst_seen += 1
                heapq.heappush(self._worst, ((row.fails, far), -self._worst_seen, found))
                if len(self._worst) > _WORST_ROWS:
                    heapq.heappop(self._worst)


def moment_text(ns: int) -> str:
    """Nanoseconds since 1970 as ISO 8601 in UTC, to the millisecond."""
    moment = datetime.datetime.fromtimestamp(ns // 10**9, datetime.UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{ns % 10**9 // 10**6:03d}Z"


def _hour(hour: int) -> str:
    return f"{datetime.datetime.fromtimestamp(hour * 3600, datetime.UTC):%Y-%m-%d %H:00}"


def _moment(row: pa.Table) -> str:
    return moment_text(int(cast("Any", row.column("_time").cast(pa.int64()).to_pylist()[0])))


def _text(row: pa.Table, name: str) -> str:
    return str(row.column(name).to_pylist()[0])


def _coded(column: pa.ChunkedArray[Any]) -> tuple[list[str], np.ndarray[Any, Any]]:
    """The distinct values, and for each row which of them it is."""
    coded: Any = cast("Any", pc.dictionary_encode(column)).combine_chunks()
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.chunk(0)
    return [str(value) for value in coded.dictionary.to_pylist()], np.asarray(coded.indices.to_numpy())


def _failed(table: pa.Table) -> Mask:
    return np.asarray(table.column(ERROR_COLUMN).is_valid(), np.bool_)


def _kinds(table: pa.Table) -> Any:
    return pc.struct_field(cast("Any", table.column(ERROR_COLUMN)), "kind")


def _taken(table: pa.Table, name: str, rows: np.ndarray[Any, Any]) -> pa.Array[Any]:
    column = table.column(name)
    if len(rows) < len(column):
        column = column.take(cast("Any", pa.array(rows)))
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _mask(rows: np.ndarray[Any, Any], count: int) -> Mask:
    found = np.zeros(count, np.bool_)
    found[rows] = True
    return found
