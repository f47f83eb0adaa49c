"""What a run gives: answers and errors, both tied to the rows of the input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from parity.batch import Batch
from parity.column import Column, spread
from parity.errors import RowError, RowsError
from parity.schema import Schema

ERROR_COLUMN = "_error"
ERROR_TYPE = pa.struct([(name, pa.string()) for name in ("kind", "stage", "field", "message")])


@dataclass(frozen=True)
class Result:
    """Answers aligned with the rows that went in.

    Attributes:
        num_rows: the number of input rows.
        outputs: the answers of the rows that have one, in row order.
        index: int64, for each answer the position of its input row.
        errors: one `RowError` for each other row, in row order.
        timings: seconds spent in each stage.
        buckets: int32, for each answer the number of rows that inference saw at once, padding included.
        stages: for each row range what the stages returned, when asked for; see `StageValues`.
    """

    num_rows: int
    outputs: Batch
    index: np.ndarray[Any, np.dtype[np.int64]]
    errors: tuple[RowError, ...] = ()
    timings: Mapping[str, float] = field(default_factory=dict[str, float])
    buckets: np.ndarray[Any, np.dtype[np.int32]] = field(default_factory=lambda: np.empty(0, np.int32))
    stages: tuple[StageValues, ...] = ()

    def to_table(self) -> pa.Table:
        """One row for each input row: the output fields, null where the row failed, and `_error`.

        `_error` is a struct of kind, stage, field and message, null where the row has an answer.
        """
        schema = self.outputs.schema
        fields = [item.to_arrow(name, nullable=True) for name, item in schema.items()]
        fields.append(pa.field(ERROR_COLUMN, ERROR_TYPE))
        columns = [*self.output_arrays().values(), self._error_array()]
        return pa.Table.from_arrays(columns, schema=pa.schema(fields))

    def output_arrays(self) -> dict[str, pa.Array[Any]]:
        """The outputs with one value for each input row, null where the row failed."""
        columns = {name: column.arrow for name, column in self.outputs.items()}
        if self.errors:
            take = np.full(self.num_rows, -1, dtype=np.int64)
            take[self.index] = np.arange(len(self.index))
            columns = {name: spread(column, take) for name, column in columns.items()}
        return columns

    def raise_for_errors(self, handler: str = "") -> None:
        """Raise RowsError when a row failed, naming the first few."""
        if self.errors:
            raise rows_error(self.errors, self.num_rows, handler)

    def _error_array(self) -> pa.Array[Any]:
        if not self.errors:
            return pa.nulls(self.num_rows, ERROR_TYPE)
        found: list[dict[str, str | None] | None] = [None] * self.num_rows
        for error in self.errors:
            found[error.row] = {
                "kind": error.kind,
                "stage": error.stage,
                "field": error.field,
                "message": error.message,
            }
        return pa.array(found, type=ERROR_TYPE)

    @staticmethod
    def concat(results: Sequence[Result], outputs: Schema) -> Result:
        """The rows of several results, one after the other; rows are renumbered."""
        if not results:
            return Result(0, empty_batch(outputs), np.empty(0, np.int64))
        starts = np.cumsum([0, *[result.num_rows for result in results]])
        timings: dict[str, float] = {}
        for result in results:
            for stage, seconds in result.timings.items():
                timings[stage] = timings.get(stage, 0.0) + seconds
        pairs = list(zip(results, (int(start) for start in starts[:-1]), strict=True))
        return Result(
            num_rows=int(starts[-1]),
            outputs=Batch.concat([result.outputs for result in results]),
            index=np.concatenate([result.index + start for result, start in pairs]),
            errors=tuple(error.at(error.row + start) for result, start in pairs for error in result.errors),
            timings=timings,
            buckets=np.concatenate([result.buckets for result in results]),
            stages=tuple(value.shifted(start) for result, start in pairs for value in result.stages),
        )


@dataclass(frozen=True)
class StageValues:
    """What the stages returned for some rows, as they returned it, without the padding.

    Attributes:
        rows: int64, the input rows in the order of the values.
        preprocess: what `preprocess` returned.
        inference: what `inference` returned.
    """

    rows: np.ndarray[Any, np.dtype[np.int64]]
    preprocess: Any
    inference: Any

    def shifted(self, start: int) -> StageValues:
        """The same values for rows renumbered from `start`."""
        return StageValues(self.rows + start, self.preprocess, self.inference)


def rows_error(errors: Sequence[RowError], num_rows: int, handler: str = "") -> RowsError:
    """A RowsError whose message names the first five rows that failed."""
    lines = [f"row {error.row} ({error.kind}): {error.message}" for error in errors[:5]]
    if len(errors) > 5:
        lines.append(f"and {len(errors) - 5} more")
    of = f"handler {handler}: " if handler else ""
    return RowsError(f"{of}{len(errors)} of {num_rows} rows failed\n  " + "\n  ".join(lines), errors)


def empty_batch(schema: Schema) -> Batch:
    """A batch of no rows."""
    columns = {name: Column(item, arrow=pa.array([], type=item.arrow_type)) for name, item in schema.items()}
    return Batch(schema, columns, 0)
