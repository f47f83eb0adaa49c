"""Read a unit's rows as micro-batches of constant size, in bounded memory whatever the row-group size.

Pages are read through a small buffer when they are needed (`buffer_size`, `pre_buffer=False`): pyarrow
otherwise loads the whole row group, which takes 1 to 2.6 GB for one of 1 GB.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from parity.errors import DatasetError
from parity_batch.layout import Layout
from parity_batch.plan import Unit

BUFFER_BYTES = 1024 * 1024
READ_BYTES = 8 * 1024 * 1024
_MICRO_BATCHES_A_READ = 16
BATCH_BYTES = 32 * 1024 * 1024
"""A micro-batch of more bytes is cut short, unless it is a single row."""


class UnreadableError(DatasetError):
    """A unit whose file cannot be read, or is not the one that was planned with any more."""


def read_unit(
    unit: Unit, layout: Layout, batch_rows: int, most_bytes: int = BATCH_BYTES
) -> Generator[pa.RecordBatch, None, None]:
    """The rows of a unit, `batch_rows` at a time across row-group borders; the last batch may be smaller.

    A batch of several rows has at most `most_bytes`. They have the layout's columns under the layout's
    types; a pass-through column that the file lacks is null, and any other that it lacks is not there.

    Raises:
        UnreadableError: a page cannot be read, or the file has changed since it was planned.
    """
    source = unit.source
    try:
        with pq.ParquetFile(source.path, buffer_size=BUFFER_BYTES, pre_buffer=False) as parquet:
            columns = layout.columns_of(parquet.schema_arrow)
            read = parquet.iter_batches(
                batch_size=_rows_a_read(unit, batch_rows),
                row_groups=list(range(unit.first_group, unit.end_group)),
                columns=columns,
                use_threads=False,
            )
            yield from rebatch((laid_out(batch, layout) for batch in read), batch_rows, most_bytes)
    except (OSError, pa.ArrowException) as exc:
        if not source.unchanged():
            raise _changed(unit) from exc
        text = " ".join(str(exc).split())
        raise UnreadableError(
            f"{source.name}: row groups {unit.first_group} to {unit.end_group - 1} cannot be read: {text}; "
            "the file is damaged: write it anew and start with --restart, or leave it out"
        ) from exc
    check_unchanged(unit)


def laid_out(rows: pa.RecordBatch, layout: Layout) -> pa.RecordBatch:
    """The same rows with a layout's columns and types; input columns that are not there stay away."""
    arrays: list[Any] = []
    fields: list[pa.Field[Any]] = []
    for field in layout.schema:
        if (place := rows.schema.get_field_index(field.name)) >= 0:
            found: Any = rows.column(place)
            arrays.append(found if found.type == field.type else _cast(found, field.type))
        elif field.name in layout.columns:
            arrays.append(pa.nulls(rows.num_rows, field.type))
        else:
            continue
        fields.append(field)
    return cast("Any", pa.RecordBatch).from_arrays(arrays, schema=pa.schema(fields))


def _cast(array: Any, kind: pa.DataType) -> Any:
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array.cast(kind)


def check_unchanged(unit: Unit) -> None:
    """Raise UnreadableError when a unit's file is not the one that was planned with any more."""
    if not unit.source.unchanged():
        raise _changed(unit)


def rebatch(
    batches: Iterable[pa.RecordBatch], rows: int, most_bytes: int = BATCH_BYTES
) -> Iterator[pa.RecordBatch]:
    """The same rows cut into batches of exactly `rows` rows, but for the last one and for large rows.

    A batch of several rows has at most `most_bytes`; where the cuts fall follows from the rows alone.
    """
    held: list[pa.RecordBatch] = []
    held_rows = held_bytes = 0
    for batch in batches:
        start = 0
        while start < batch.num_rows:
            piece = batch.slice(start, min(rows - held_rows, batch.num_rows - start))
            while piece.num_rows > 1 and held_bytes + piece.nbytes > most_bytes:
                piece = piece.slice(0, piece.num_rows // 2)
            if held and held_bytes + piece.nbytes > most_bytes:
                yield _joined(held)
                held, held_rows, held_bytes = [], 0, 0
                continue
            start += piece.num_rows
            held.append(piece)
            held_rows += piece.num_rows
            held_bytes += piece.nbytes
            if held_rows == rows:
                yield _joined(held)
                held, held_rows, held_bytes = [], 0, 0
    if held:
        yield _joined(held)


def _joined(pieces: list[pa.RecordBatch]) -> pa.RecordBatch:
    return pieces[0] if len(pieces) == 1 else cast("Any", pa).concat_batches(pieces)


def _rows_a_read(unit: Unit, batch_rows: int) -> int:
    """Rows to decode at once: few enough to be small, enough that the cost of a call does not show."""
    row_bytes = max(1, unit.size_bytes // max(1, unit.num_rows))
    return max(1, min(_MICRO_BATCHES_A_READ * batch_rows, READ_BYTES // row_bytes))


def _changed(unit: Unit) -> UnreadableError:
    return UnreadableError(
        f"{unit.source.name}: the file was changed while it was scored; start again with --restart when "
        "it is complete"
    )
