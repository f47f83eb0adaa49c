"""A trace: what a few rows became in each stage, for people to look at and for code to read."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa

from parity.batch import Batch
from parity.column import Column
from parity.errors import RowError, shown
from parity.profile import Profile
from parity.result import Result, StageValues
from parity.schema import Floating
from parity_notebook import markup
from parity_notebook.leaves import Leaf, leaves

_LEAF_HEADER = ("value", "type", "dtype", "shape", "range", "first elements")
_SHOWN_ELEMENTS = 6


@dataclass(frozen=True)
class Trace:
    """What a few rows became on their way through a handler.

    Attributes:
        handler: name and version.
        profile: what the handler ran with.
        inputs: the decoded rows that fit the schema, as the handler's preprocess saw them.
        index: for each row of `inputs` its position in what was given.
        result: answers, errors, timings, buckets and stage values.
    """

    handler: str
    profile: Profile
    inputs: Batch
    index: tuple[int, ...]
    result: Result

    @property
    def num_rows(self) -> int:
        """How many rows were traced, refused ones included."""
        return self.result.num_rows

    @property
    def stages(self) -> tuple[StageValues, ...]:
        """The stages' values and their rows: one item, or more where a failing row split the batch."""
        return self.result.stages

    @property
    def preprocess(self) -> Any:
        """What `preprocess` returned for the rows that have an answer; None when there is none.

        Where a failing row split the batch for good, this is the first piece's; `stages` has all.
        """
        return self._of_stage("preprocess")

    @property
    def inference(self) -> Any:
        """What `inference` returned, without the padding; as `preprocess` otherwise."""
        return self._of_stage("inference")

    @property
    def outputs(self) -> pa.Table:
        """One row for each traced row: the output fields, null where it failed, and `_error`."""
        return self.result.to_table()

    @property
    def errors(self) -> tuple[RowError, ...]:
        """Why rows have no answer."""
        return self.result.errors

    @property
    def timings(self) -> Mapping[str, float]:
        """Seconds spent in each stage."""
        return self.result.timings

    @property
    def buckets(self) -> tuple[int, ...]:
        """For each answer the number of rows that inference saw at once, padding included."""
        return tuple(self.result.buckets.tolist())

    def leaves(self, stage: str) -> tuple[Leaf, ...]:
        """Every array in the value of "preprocess" or "inference", with dtype, shape and range."""
        value = self._of_stage(stage)
        return () if value is None else leaves(value)

    def __repr__(self) -> str:
        lines = [self._title()]
        for section in self._sections():
            lines += ["", section.caption, *_aligned([section.header, *section.rows])]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        parts = [markup.paragraph(self._title(), "lead")]
        parts += [
            markup.table(section.caption, section.header, section.rows, bad=section.bad)
            for section in self._sections()
        ]
        return markup.page(parts)

    def _of_stage(self, stage: str) -> Any:
        return getattr(self.stages[0], stage) if self.stages else None

    def _title(self) -> str:
        profile = self.profile
        padded = sorted(set(self.buckets))
        bucket = f", inference on {' and '.join(map(str, padded))} rows" if padded else ""
        return (
            f"Trace of {self.num_rows} rows through {self.handler}, profile {profile.name} "
            f"({profile.device}, {profile.precision}){bucket}"
        )

    def _sections(self) -> Iterator[_Section]:
        names = self.inputs.schema.names
        yield _Section("decoded inputs", ("row", *names), _batch_rows(self.index, self.inputs))
        for stage in ("preprocess", "inference"):
            seconds = self.timings.get(stage)
            took = "" if seconds is None else f", {seconds * 1000:.3f} ms"
            for values in self.stages:
                rows = _span(values.rows.tolist())
                found = [_leaf_row(leaf) for leaf in leaves(getattr(values, stage))]
                yield _Section(f"{stage} of rows {rows}{took}", _LEAF_HEADER, found)
        outputs = self.result.outputs
        took = f", postprocess {self.timings['postprocess'] * 1000:.3f} ms" if self.timings else ""
        answers = _batch_rows(self.result.index.tolist(), outputs)
        yield _Section(f"outputs{took}", ("row", *outputs.schema.names), answers)
        if self.errors:
            header = ("row", "kind", "stage", "field", "message")
            told = [
                (str(error.row), error.kind, error.stage or "", error.field or "", error.message)
                for error in self.errors
            ]
            yield _Section("rows without an answer", header, told, bad=range(len(told)))


@dataclass(frozen=True)
class _Section:
    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    bad: Sequence[int] = ()


def _batch_rows(index: Sequence[int], batch: Batch) -> list[tuple[str, ...]]:
    columns = [_column_cells(column) for column in batch.values()]
    return [(str(row), *(cells[position] for cells in columns)) for position, row in enumerate(index)]


def _column_cells(column: Column) -> list[str]:
    """A column's values as text; floats with the fewest digits that tell them apart in their dtype."""
    values, dtype = column.to_pylist(), column.field.numpy_dtype
    if isinstance(column.field, Floating) and dtype is not None:
        return [str(None if value is None else dtype.type(value)) for value in values]
    return [_cell(value) for value in values]


def _cell(value: Any) -> str:
    """One value of a row on one line; of an array its dtype and shape, and its elements or their range."""
    if isinstance(value, np.ndarray):
        (leaf,) = leaves(cast("np.ndarray[Any, Any]", value))
        few = value.size <= _SHOWN_ELEMENTS or not leaf.range_text
        return f"{leaf.dtype} {leaf.shape} {leaf.sample if few else leaf.range_text}"
    return value.isoformat() if isinstance(value, datetime.date) else shown(value)


def _leaf_row(leaf: Leaf) -> tuple[str, ...]:
    shape = "" if leaf.shape is None else str(tuple(leaf.shape))
    return leaf.path or "(value)", leaf.kind, leaf.dtype, shape, leaf.range_text, leaf.sample


def _span(rows: Sequence[int]) -> str:
    if len(rows) > 2 and list(rows) == list(range(rows[0], rows[-1] + 1)):
        return f"{rows[0]} to {rows[-1]}"
    return ", ".join(map(str, rows))


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
