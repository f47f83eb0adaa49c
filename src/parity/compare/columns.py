"""One column against the other, taken in piece by piece: two counts, the distances and the worst rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from parity.compare.bitwise import float_leaves, same_bits
from parity.compare.comparison import ColumnComparison
from parity.compare.distances import RunningDistances
from parity.compare.dtypes import FLOATS, list_items, type_findings
from parity.compare.leaves import Difference, Walk
from parity.compare.lists import judge_lists
from parity.compare.places import Rows
from parity.compare.plan import ColumnPlan
from parity.compare.row_errors import error_kinds
from parity.compare.rows import FirstRows
from parity.compare.sides import Side
from parity.compare.worst import WorstRows

Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_REASONS = ("null on one side", "lengths differ", "NaN or infinity on one side")


class RunningColumn:
    """What has been found so far about one column.

    Args:
        plan: how to compare it.
        scale: the column scale of a leaf, by its path; called only where floats differ.
        key: the columns that identify a row, shown with the worst rows.
        ordered: whether the rows come in ascending order.
        keep_rows: how many row numbers to keep of those that fail and of those that differ; None for all.
    """

    def __init__(
        self,
        plan: ColumnPlan,
        scale: Callable[[str], float],
        *,
        key: Sequence[str],
        ordered: bool,
        keep_rows: int | None,
    ) -> None:
        self.plan = plan
        self.comparable = True
        self._rows = self._differing = self._failing = self._ties = 0
        self._by_reason: dict[str, int] = dict.fromkeys(_REASONS, 0)
        self._passable = True
        self._distances = RunningDistances()
        self._worst = WorstRows(plan, key=key)
        self._failing_rows = FirstRows(ordered=ordered, most=keep_rows)
        self._differing_rows = FirstRows(ordered=ordered, most=keep_rows)
        self._scale = scale

    def add(self, expected: Side, obtained: Side) -> tuple[Mask, Mask] | None:
        """Compare some more rows; which of them differ and which fail, None when all are bit-identical."""
        count = len(expected.rows)
        self._rows += count
        if self.plan.way == "ignored" or not count or not self.comparable:
            return None
        ours, theirs = self._values(expected), self._values(obtained)
        if same_bits(ours, theirs):
            self._distances.add_equal(float_leaves(ours))
            return None
        theirs = self._same_type(ours, theirs)
        if theirs is None:
            self.comparable = False
            return None
        walk = Walk(self.plan.rule_for, dict(self.plan.dtypes), self._scale, self._distances)
        walk.compare(ours, theirs, Rows(count), self.plan.name)
        if not walk.found:
            return None
        differs, fails = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
        for part in walk.found:
            differs |= part.rows()
            if part.any_fails:
                fails |= part.rows(part.fails)
        if self.plan.judges_lists():
            fails, ties = self._judge(expected, obtained, differs)
            self._ties += ties
        self._count(walk.found, expected.rows, differs, fails)
        self._worst.add(walk.found, fails, expected, obtained)
        return differs, fails

    def add_same(self, rows: int, floats: int) -> None:
        """Count some more rows that are known to be bit-identical, with so many float values in them."""
        self._rows += rows
        self._distances.add_equal(floats)

    def finish(self, all_rows: FirstRows) -> ColumnComparison:
        """The verdict on the column; `all_rows` are those that it was compared on, or should have been."""
        plan, allowed = self.plan, math.floor(self.plan.shown.rows * self._rows)
        if not self.comparable:
            return ColumnComparison(
                plan.name,
                plan.dtype,
                plan.shown,
                rows=self._rows,
                identical=0,
                within=0,
                failing=self._rows,
                comparable=False,
                structure_fails=plan.structure_fails,
                failing_rows=all_rows.total(),
                differing_rows=all_rows.total(),
            )
        distances = None
        if self._distances.elements or self._by_reason["NaN or infinity on one side"]:
            distances = self._distances.total(passable=self._passable and not any(self._by_reason.values()))
        return ColumnComparison(
            name=plan.name,
            dtype=plan.dtype,
            rule=plan.shown,
            rows=self._rows,
            identical=self._rows - self._differing,
            within=self._rows - self._failing,
            failing=self._failing,
            allowed=allowed,
            structure_fails=plan.structure_fails,
            null_mismatches=self._by_reason["null on one side"],
            length_mismatches=self._by_reason["lengths differ"],
            non_finite_mismatches=self._by_reason["NaN or infinity on one side"],
            negative_zeros=self._distances.negative_zeros,
            nan_payloads=self._distances.nan_payloads,
            ties=self._ties,
            float_dtypes=tuple(sorted(set(plan.dtypes.values()) & set(FLOATS))),
            distances=distances,
            worst=self._worst.total(),
            failing_rows=self._failing_rows.total(),
            differing_rows=self._differing_rows.total(),
        )

    def _values(self, side: Side) -> pa.Array[Any]:
        return error_kinds(side.table) if self.plan.way == "errors" else side.values(self.plan.name)

    def _same_type(self, expected: pa.Array[Any], obtained: pa.Array[Any]) -> pa.Array[Any] | None:
        """The obtained values, cast where the types differ and a cast loses nothing, else None."""
        if expected.type == obtained.type:
            return obtained
        one, other = pa.field("x", expected.type), pa.field("x", obtained.type)
        if all(finding.kind == "timezone" for finding in type_findings(one, other)):
            return obtained
        try:
            return obtained.cast(expected.type)
        except pa.ArrowException:
            return None

    def _judge(self, expected: Side, obtained: Side, differs: Mask) -> tuple[Mask, int]:
        """The rows that fail a rule for whole lists; only rows that differ are looked at."""
        name, companions = self.plan.name, self.plan.companions()
        fails, rows = differs.copy(), np.flatnonzero(differs)
        sides: list[Side] = []
        for side in (expected, obtained):
            columns = [name, *(other for other in companions if other in side.table.column_names)]
            sides.append(side.take(rows, list(dict.fromkeys(columns))))
        both = np.ones(len(rows), np.bool_)
        for side in sides:
            both &= cast("Any", side.values(name).is_valid()).to_numpy(zero_copy_only=False)
        pair = [side.take(np.flatnonzero(both)) for side in sides]

        def scores(column: str) -> tuple[pa.Array[Any], pa.Array[Any]] | None:
            types = [s.table.schema.field(column).type for s in pair if column in s.table.column_names]
            kinds = [list_items(kind) for kind in types]
            if len(kinds) < 2 or not all(kind is not None and pat.is_floating(kind) for kind in kinds):
                return None
            return pair[0].values(column), pair[1].values(column)

        assert self.plan.rule is not None
        judged = judge_lists(self.plan.rule, pair[0].values(name), pair[1].values(name), scores)
        fails[rows[both]] = ~judged.passes
        return fails, judged.ties

    def _count(self, found: Sequence[Difference], rows: Positions, differs: Mask, fails: Mask) -> None:
        self._differing += int(np.count_nonzero(differs))
        self._failing += int(np.count_nonzero(fails))
        self._differing_rows.add(rows, differs)
        self._failing_rows.add(rows, fails)
        reasons: dict[str, Mask] = {}
        for part in found:
            if part.reason in self._by_reason:
                reasons[part.reason] = reasons.get(part.reason, False) | part.rows()
            if part.odd is not None:
                odd = _REASONS[2]
                reasons[odd] = reasons.get(odd, False) | part.rows(part.odd)
            if part.reason == "values differ" and part.ulp is None:
                self._passable &= not part.any_fails
        for reason, mask in reasons.items():
            self._by_reason[reason] += int(np.count_nonzero(mask))
