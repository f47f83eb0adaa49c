"""A whole comparison, taken in piece by piece: what it finds does not depend on how the rows were cut.

Counts, findings, worst rows, quantiles and verdicts are those of the rows, whatever the pieces were; only a
mean may differ in its last digits, since floats are summed up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parity.compare.columns import RunningColumn
from parity.compare.comparison import ColumnComparison, Comparison, Finding, WorstRow
from parity.compare.plan import Plan
from parity.compare.row_errors import ErrorTexts, rows_with_answers
from parity.compare.rows import FirstRows
from parity.compare.scales import Scales
from parity.compare.sides import Side
from parity.compare.tolerances import ERROR_COLUMN
from parity.compare.values import cell

Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class RunningComparison:
    """What comparing two tables has found so far.

    Args:
        plan: what is compared, and how.
        scales: the column scales of the expected table.
        key: the columns that identify a row, shown with the worst rows.
        ordered: whether rows come in ascending order.
        keep_rows: how many row numbers to keep of those that fail and of those that differ; None for all.
    """

    def __init__(
        self,
        plan: Plan,
        scales: Scales,
        *,
        key: Sequence[str] = (),
        ordered: bool = True,
        keep_rows: int | None = None,
    ) -> None:
        self._plan = plan
        self._rows = 0
        self._columns = [
            RunningColumn(
                column,
                lambda path, name=column.name: scales.of(name, path),
                key=key,
                ordered=ordered,
                keep_rows=keep_rows,
            )
            for column in plan.columns
        ]
        self._may_refuse = any(column.casts for column in plan.columns)
        self._texts = ErrorTexts()
        self._all, self._answered, self._failing, self._differing = (
            FirstRows(ordered=ordered, most=keep_rows) for _ in range(4)
        )

    def add(self, expected: Side, obtained: Side, same: Mapping[str, int] | None = None) -> None:
        """Compare some more rows, paired one by one.

        `same` are columns known to be bit-identical, which the sides need not hold, each with the number of
        its float values.
        """
        count = len(expected.rows)
        self._rows += count
        if not count:
            return
        keep = rows_with_answers(expected.table, obtained.table)
        some = (expected, obtained) if keep is None else (expected.take(keep), obtained.take(keep))
        if self._may_refuse:
            self._all.add(expected.rows)
            self._answered.add(some[0].rows)
        differs, fails = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
        for column in self._columns:
            sides, places = some, keep
            if column.plan.name == ERROR_COLUMN:
                sides, places = (expected, obtained), None
                errors = [side.table.column(ERROR_COLUMN) for side in sides]
                self._texts.add(errors[0], errors[1], expected.rows)
            if same and column.plan.name in same:
                column.add_same(len(sides[0].rows), same[column.plan.name])
                continue
            found = column.add(sides[0], sides[1])
            if found is not None:
                at = slice(None) if places is None else places
                differs[at] |= found[0]
                fails[at] |= found[1]
        self._differing.add(expected.rows, differs)
        self._failing.add(expected.rows, fails)

    def finish(
        self,
        *,
        expected_rows: int,
        obtained_rows: int,
        errors: tuple[int, int] = (0, 0),
        findings: Iterable[Finding] = (),
        inputs: pa.Table | None = None,
    ) -> Comparison:
        """All that was found; `findings` are those about rows that have no counterpart."""
        columns = [
            column.finish(self._all if column.plan.name == ERROR_COLUMN else self._answered)
            for column in self._columns
        ]
        # All rows fail a column that could not be compared, and so do those with an error on one side only.
        refused = any(not column.comparable for column in columns)
        failing, differing = (self._all, self._all) if refused else (self._failing, self._differing)
        return Comparison(
            expected_rows=expected_rows,
            obtained_rows=obtained_rows,
            rows=self._rows,
            columns=tuple(_with_inputs(column, inputs) for column in columns),
            findings=(
                *self._plan.findings,
                *findings,
                *self._plan.column_findings(),
                *self._texts.findings(),
            ),
            errors_expected=errors[0],
            errors_obtained=errors[1],
            failing_rows=failing.total(),
            differing_rows=differing.total(),
            failing=failing.count,
            differing=differing.count,
        )


def _with_inputs(column: ColumnComparison, inputs: pa.Table | None) -> ColumnComparison:
    """The column with the input row beside each of its worst rows."""
    if inputs is None or not column.worst:
        return column

    def given(row: WorstRow) -> WorstRow:
        return replace(row, input={name: cell(inputs, name, row.row) for name in inputs.column_names})

    return replace(column, worst=tuple(map(given, column.worst)))
