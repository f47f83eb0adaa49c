"""What is written for a unit: its part, and the rows that failed. The bytes follow from the rows alone.

Micro-batches are gathered into row groups by size, never by time or by worker.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import pyarrow as pa
import pyarrow.parquet as pq

from parity.durable import publish, temporary
from parity.errors import DatasetError, RowError
from parity.handler import LoadedHandler
from parity.result import ERROR_COLUMN, Result

ROW_GROUP_BYTES = 64 * 1024 * 1024
ROW_GROUP_ROWS = 1024 * 1024
_COMPRESSION, _COMPRESSION_LEVEL = "zstd", 1
_LOOSE_BATCHES = 16

PLACE_FIELDS = (
    pa.field("_file", pa.string(), nullable=False),
    pa.field("_row", pa.int64(), nullable=False),
    pa.field("_kind", pa.string(), nullable=False),
    pa.field("_stage", pa.string()),
    pa.field("_field", pa.string()),
    pa.field("_type", pa.string()),
    pa.field("_message", pa.string(), nullable=False),
)
"""The errors dataset's own columns, before those that were read from the source."""


def part_schema(
    source: pa.Schema, columns: Sequence[str], handler: LoadedHandler, metadata: Mapping[str, str]
) -> pa.Schema:
    """The schema of a part: pass-through columns as they are in the source, outputs, `_error`."""
    fields = [source.field(name) for name in columns]
    fields += [field.to_arrow(name, nullable=True) for name, field in handler.outputs.items()]
    fields.append(pa.field(ERROR_COLUMN, pa.string()))
    return pa.schema(fields, metadata=cast("Any", metadata))


def errors_schema(source: pa.Schema, columns: Sequence[str], metadata: Mapping[str, str]) -> pa.Schema:
    """The schema of an errors file: place and reason, then the columns read, as they are in the source."""
    own = {field.name for field in PLACE_FIELDS}
    found = [source.field(name) for name in columns if name not in own]
    return pa.schema([*PLACE_FIELDS, *found], metadata=cast("Any", metadata))


def part_rows(rows: pa.RecordBatch, result: Result, schema: pa.Schema) -> pa.Table:
    """A micro-batch's rows of the part: every input row, in order, failed ones with null outputs."""
    answers = result.to_table()
    errors: pa.Array[Any] = pa.nulls(result.num_rows, pa.string())
    if result.errors:
        texts: list[str | None] = [None] * result.num_rows
        for error in result.errors:
            texts[error.row] = f"{error.kind}: {error.message}"
        errors = pa.array(texts, pa.string())
    passed = [rows.column(name) for name in schema.names if name not in answers.column_names]
    outputs = [answers.column(name) for name in answers.column_names if name != ERROR_COLUMN]
    return pa.Table.from_arrays([*passed, *outputs, errors], schema=schema)


def error_rows(
    rows: pa.RecordBatch, errors: Sequence[RowError], name: str, first_row: int, schema: pa.Schema
) -> pa.Table:
    """A micro-batch's rows of the errors file.

    Args:
        rows: the micro-batch.
        errors: the errors of some of its rows.
        name: the source's name.
        first_row: the position in the source of the micro-batch's first row.
        schema: of the errors file.
    """
    places: list[Sequence[Any]] = [
        [name] * len(errors),
        [first_row + error.row for error in errors],
        [error.kind for error in errors],
        [error.stage for error in errors],
        [error.field for error in errors],
        [error.type for error in errors],
        [error.message for error in errors],
    ]
    arrays = [pa.array(values, field.type) for values, field in zip(places, PLACE_FIELDS, strict=True)]
    # Slices, since `take` does not know every type that a pass-through column may have.
    taken = pa.Table.from_batches([rows.slice(error.row, 1) for error in errors])
    columns = [taken.column(name) for name in schema.names[len(PLACE_FIELDS) :]]
    return pa.Table.from_arrays([*arrays, *columns], schema=schema)


class PartWriter:
    """Writes one Parquet file that appears under its name when it is whole.

    A context manager: leaving without `commit` removes what was written.

    Args:
        path: the file's final name; its folder must be there.
        schema: of the file, with its key-value metadata.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.path = path
        self.rows = 0
        self._schema = schema
        self._held: list[pa.Table] = []
        self._loose: list[pa.Table] = []
        self._held_rows = 0
        self._held_bytes = 0
        self._writer: pq.ParquetWriter | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writer is not None:
            if exc is None:
                self._writer.close()
            else:
                _close_quietly(self._writer)
            self._writer = None
        temporary(self.path).unlink(missing_ok=True)

    def write(self, rows: pa.Table) -> None:
        """Add rows; raises DatasetError when they cannot be written, on a full disk for instance."""
        self.rows += rows.num_rows
        self._loose.append(rows)
        self._held_rows += rows.num_rows
        self._held_bytes += rows.nbytes
        if self._held_bytes >= ROW_GROUP_BYTES or self._held_rows >= ROW_GROUP_ROWS:
            self._flush()
        elif len(self._loose) >= _LOOSE_BATCHES:
            self._gather()

    def commit(self) -> None:
        """Write what is held and the footer, and give the file its name."""
        if self._held_rows or self._writer is None:
            self._flush()
        try:
            if self._writer is not None:
                self._writer.close()
                self._writer = None
            publish(self.path)
        except OSError as exc:
            raise _unwritable(self.path, exc) from exc

    def _gather(self) -> None:
        """Copy loose batches into memory of our own.

        They hold small pieces of the handler's and the reader's memory. Kept for a whole row group, each
        splits a large free block of the heap in two: that cost a megabyte a batch with a small torch model.
        """
        if self._loose:
            self._held.append(pa.concat_tables(self._loose).unify_dictionaries().combine_chunks())
            self._loose = []

    def _flush(self) -> None:
        self._gather()
        try:
            if self._writer is None:
                self._writer = pq.ParquetWriter(
                    temporary(self.path),
                    self._schema,
                    compression=_COMPRESSION,
                    compression_level=_COMPRESSION_LEVEL,
                )
            if self._held:
                table = pa.concat_tables(self._held).unify_dictionaries().combine_chunks()
                self._held, self._held_rows, self._held_bytes = [], 0, 0
                self._writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
        except OSError as exc:
            raise _unwritable(self.path, exc) from exc


def _close_quietly(writer: pq.ParquetWriter) -> None:
    """Close a writer whose file is thrown away: on a full disk closing fails too, and says nothing new."""
    with contextlib.suppress(OSError, pa.ArrowException):
        writer.close()


def _unwritable(path: Path, exc: Exception) -> DatasetError:
    return DatasetError(
        f"{path}: cannot be written: {exc}; the parts that are finished stay, and the same command continues"
    )
