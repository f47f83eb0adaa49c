"""Write a part: a Parquet file whose bytes follow from its rows alone.

Micro-batches are gathered into row groups by size, never by time or by worker.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self, cast

import pyarrow as pa
import pyarrow.parquet as pq

from parity.codec.arrow_sizes import decoded_bytes
from parity.errors import DatasetError
from parity_batch.encodings import dictionary_columns
from parity_batch.storage import Draft, StoredFile

ROW_GROUP_BYTES = 64 * 1024 * 1024
ROW_GROUP_ROWS = 256 * 1024
"""A row group is written with the micro-batch that reaches one of them; until then its rows are in memory.

With a million rows a job took a tenth more memory where units were large than where they were small.
"""

_COMPRESSION, _COMPRESSION_LEVEL = "zstd", 1
_LOOSE_BATCHES = 16


class PartWriter:
    """Writes one Parquet file that appears under its name when it is whole.

    A context manager: leaving without `commit` removes what was written. Two writers of one part, as when
    an engine runs a unit again, do not meet: each has a temporary name of its own, and both write the same
    bytes.

    Args:
        file: the file.
        schema: of the file, with its key-value metadata.
    """

    def __init__(self, file: StoredFile, schema: pa.Schema) -> None:
        self.file = file
        self.rows = 0
        self._draft: Draft | None = None
        self._schema = schema
        self._held: list[pa.Table] = []
        self._loose: list[pa.Table] = []
        self._held_rows = 0
        self._held_bytes = 0.0
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
        if self._draft is not None:
            self.file.discard(self._draft)

    def write(self, rows: pa.Table, lengths: Iterable[int] | None = None) -> None:
        """Add rows.

        Args:
            rows: of one or more micro-batches.
            lengths: how many are of each; all are of one when not given. Where row groups and pages end
                follows from these, however many come at once.

        Raises:
            DatasetError: they cannot be written: a disk is full, for instance, or its mount was lost.
        """
        start = 0
        for length in (rows.num_rows,) if lengths is None else lengths:
            self._add(rows.slice(start, length))
            start += length

    def _add(self, rows: pa.Table) -> None:
        self.rows += rows.num_rows
        self._loose.append(rows)
        self._held_rows += rows.num_rows
        # Of the values, and not of the memory, which has room for nulls where a row beside it failed.
        self._held_bytes += sum(
            decoded_bytes(column) for batch in rows.to_batches() for column in batch.columns
        )
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
            if self._draft is not None:
                self._draft.publish()
        except OSError as exc:
            raise _unwritable(self.file, exc) from exc

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
        table = pa.concat_tables(self._held or [self._schema.empty_table()])
        table = table.unify_dictionaries()  # and not one chunk: that is a copy
        try:
            if self._writer is None:
                self._draft = self.file.draft()
                self._writer = pq.ParquetWriter(
                    self._draft.path,
                    self._schema,
                    compression=_COMPRESSION,
                    compression_level=_COMPRESSION_LEVEL,
                    use_dictionary=cast("Any", dictionary_columns(table)),  # the stubs know no lists
                )
            else:
                self.file.check()
            if self._held:
                self._held, self._held_rows, self._held_bytes = [], 0, 0.0
                self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        except OSError as exc:
            raise _unwritable(self.file, exc) from exc


def _close_quietly(writer: pq.ParquetWriter) -> None:
    """Close a writer whose file is thrown away: on a full disk closing fails too, and says nothing new."""
    with contextlib.suppress(OSError, pa.ArrowException):
        writer.close()


def _unwritable(file: StoredFile, exc: Exception) -> DatasetError:
    try:
        with contextlib.suppress(OSError):  # of a disk that cannot be asked: what was told first stands
            file.check()
    except DatasetError as lost:  # which is why
        return lost
    return DatasetError(
        f"{file.shown}: cannot be written: {' '.join(str(exc).split())}; the parts that are finished stay, "
        "and the same command continues"
    )
