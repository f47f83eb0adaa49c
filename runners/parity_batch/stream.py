"""Read a unit's rows as micro-batches of constant size, in bounded memory whatever the row-group size.

Pages are read through a small buffer when they are needed (`buffer_size`, `pre_buffer=False`): pyarrow
otherwise loads the whole row group, which takes 1 to 2.6 GB for one of 1 GB.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from parity.codec.rebatch import BATCH_BYTES, rebatch
from parity_batch.containers import PROBLEM, PROBLEM_FIELD, explained, problems_of, read_rows
from parity_batch.deleted_rows import DeletedFlags, Positions
from parity_batch.footers import SourceFile
from parity_batch.formats import PARQUET
from parity_batch.layout import Layout, with_partition
from parity_batch.lost import UnreadableError, check_there, damaged
from parity_batch.places import file_system, open_file
from parity_batch.plan import Unit

ROW = pa.field("\0row", pa.int64(), nullable=False)
"""Where rows are chosen, the column of their positions in the source; no source has one of this name."""

_LOCAL_BUFFER_BYTES = 256 * 1024
_REMOTE_BUFFER_BYTES = 1024 * 1024
"""For each column that is read: on a disk small, for there may be many; behind a URL each is a request."""

READ_BYTES = 8 * 1024 * 1024
_MICRO_BATCHES_A_READ = 16
_ENDLESS = 2**62


def read_unit(
    unit: Unit,
    layout: Layout,
    batch_rows: int,
    most_bytes: int = BATCH_BYTES,
    together: Callable[[], int] | None = None,
    most_read_rows: int = _ENDLESS,
) -> Generator[pa.RecordBatch, None, None]:
    """The rows of a unit, `batch_rows` at a time across row-group borders; the last batch may be smaller.

    A batch of several rows has at most `most_bytes`, and several batches may come as one, see `rebatch`. They
    have the layout's columns under the layout's types; a column that the file lacks is not there, see
    `with_absent`. Reading ends after about `most_read_rows` of the file, those that are left out included.

    Raises:
        UnreadableError: a page cannot be read, or the file has changed since it was planned.
    """
    if unit.source.format != PARQUET:
        yield from _read_container(unit, layout, batch_rows, most_bytes, together, most_read_rows)
        return
    source, where = unit.source, layout.where
    deleted = source.deleted.unpacked() if source.deleted is not None else None
    groups = list(range(unit.first_group, unit.end_group))
    buffer_bytes = _LOCAL_BUFFER_BYTES if isinstance(source.path, Path) else _REMOTE_BUFFER_BYTES
    try:
        with (
            open_file(source.path, buffer_bytes) as file,
            pq.ParquetFile(file, buffer_size=buffer_bytes, pre_buffer=False) as parquet,
        ):
            schema = parquet.schema_arrow
            columns = layout.columns_of(schema) or schema.names[:1]
            starts = _starts(parquet.metadata, unit)
            if where is not None:
                groups = _promising(source, layout, schema, groups)
            if deleted is not None:
                groups = [group for group in groups if not _all_deleted(deleted, *starts[group])]
            read = parquet.iter_batches(
                batch_size=_rows_a_read(unit, batch_rows),
                row_groups=groups,
                columns=columns,
                use_threads=False,
            )
            counted = _at_most(_counted(read, unit, groups, starts), most_read_rows)
            if where is None and deleted is None:
                rows = (laid_out(batch, layout, source) for batch in counted)
            else:
                rows = _chosen(counted, layout, source, [starts[group] for group in groups], deleted)
            yield from rebatch(rows, batch_rows, most_bytes, together)
    except (OSError, pa.ArrowException) as exc:
        check_there(source, exc)
        text = " ".join(str(exc).split())
        raise UnreadableError(
            f"{source.name}: row groups {unit.first_group} to {unit.end_group - 1} cannot be read: {text}; "
            f"{damaged(exc)}"
        ) from exc
    check_there(unit.source)


def _read_container(
    unit: Unit,
    layout: Layout,
    batch_rows: int,
    most_bytes: int,
    together: Callable[[], int] | None,
    most_read_rows: int,
) -> Generator[pa.RecordBatch, None, None]:
    source = unit.source
    read = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal read
        names = dict.fromkeys(
            [*layout.schema.names, *(layout.where.columns if layout.where is not None else ())]
        )
        for batch in read_rows(source, names, layout.text):
            read += batch.num_rows
            if read > unit.num_rows:
                return
            yield batch

    try:
        rows = kept_rows(_at_most(counted(), most_read_rows), layout, source, unit.num_rows)
        yield from rebatch(rows, batch_rows, most_bytes, together)
    except (OSError, pa.ArrowException) as exc:
        check_there(source, exc)
        raise UnreadableError(
            f"{source.name}: cannot be read as {source.format}: {explained(exc)}; {damaged(exc)}"
        ) from exc
    check_there(unit.source)
    if read != unit.num_rows and read < most_read_rows:
        raise UnreadableError(
            f"{source.name}: the file holds {read} rows and held {unit.num_rows} when the job was planned; "
            "start with --restart"
        )


def kept_rows(
    batches: Iterable[pa.RecordBatch], layout: Layout, source: SourceFile, num_rows: int | None
) -> Iterator[pa.RecordBatch]:
    """All rows of a source, or those for which the condition holds, with a layout's columns and types."""
    if layout.where is None:
        return (laid_out(batch, layout, source) for batch in batches)
    return _chosen(batches, layout, source, [(0, num_rows if num_rows is not None else _ENDLESS)])


def laid_out(rows: pa.RecordBatch, layout: Layout, source: SourceFile) -> pa.RecordBatch:
    """The same rows with a layout's columns and types; columns that are not there stay away."""
    if rows.schema.equals(layout.schema):
        return rows
    arrays: list[Any] = []
    fields: list[pa.Field[Any]] = []
    partition = source.partition
    for field in layout.schema:
        if (place := rows.schema.get_field_index(field.name)) >= 0:
            found: Any = rows.column(place)
            arrays.append(found if found.type == field.type else _cast(found, field, source))
        elif field.name in partition:
            arrays.append(_constant(partition[field.name], field.type, rows.num_rows))
        else:
            continue
        fields.append(field)
    for field in (PROBLEM, PROBLEM_FIELD):
        if (place := rows.schema.get_field_index(field.name)) >= 0:
            arrays.append(rows.column(place))
            fields.append(field)
    return _batch(arrays, fields, rows.num_rows)


def with_absent(rows: pa.RecordBatch, layout: Layout) -> pa.RecordBatch:
    """The rows with nulls for each column that their file lacks: to be written, and not to be scored.

    A field of the handler whose column a file lacks takes its default there.
    """
    names = rows.schema.names
    if names == layout.schema.names:
        return rows
    there = set(names)
    lacking = [field for field in layout.schema if field.name not in there]
    arrays = [*rows.columns, *(pa.nulls(rows.num_rows, field.type) for field in lacking)]
    names += [field.name for field in lacking]
    return pa.RecordBatch.from_arrays(arrays, names=names) if lacking else rows


def _batch(arrays: list[Any], fields: list[pa.Field[Any]], num_rows: int) -> pa.RecordBatch:
    if arrays:
        return cast("Any", pa.RecordBatch).from_arrays(arrays, schema=pa.schema(fields))
    # A handler all of whose fields take their defaults: a batch without columns would have no rows.
    return pa.RecordBatch.from_arrays([pa.nulls(num_rows)], names=["_"])


def _constant(value: str | None, kind: pa.DataType, rows: int) -> Any:
    if value is None:
        return pa.nulls(rows, cast("Any", kind))
    return cast("Any", pa).repeat(pa.scalar(value, pa.string()).cast(kind), rows)


def _starts(metadata: pq.FileMetaData, unit: Unit) -> dict[int, tuple[int, int]]:
    """For each row group of a unit the position of its first row, and its rows."""
    found: dict[int, tuple[int, int]] = {}
    start = unit.first_row
    for group in range(unit.first_group, unit.end_group):
        rows = metadata.row_group(group).num_rows
        found[group] = (start, rows)
        start += rows
    return found


def _counted(
    batches: Iterable[pa.RecordBatch], unit: Unit, groups: list[int], starts: dict[int, tuple[int, int]]
) -> Iterator[pa.RecordBatch]:
    expected, read = sum(starts[group][1] for group in groups), 0
    for batch in batches:
        read += batch.num_rows
        yield batch
    if read != expected:
        raise UnreadableError(
            f"{unit.source.name}: row groups {unit.first_group} to {unit.end_group - 1} hold {read} "
            f"rows, their footer says {expected}; the file is damaged: write it anew"
        )


def _at_most(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The batches up to the one with this row."""
    read = 0
    for batch in batches:
        yield batch
        read += batch.num_rows
        if read >= rows:
            return


def _promising(source: SourceFile, layout: Layout, schema: pa.Schema, groups: list[int]) -> list[int]:
    """The row groups that may hold a row for which the condition holds, by their statistics."""
    import pyarrow.dataset as pads
    from pyarrow.fs import LocalFileSystem

    assert layout.where is not None
    known = with_partition(schema, source, layout.partition)
    condition = layout.where.bind_for_statistics(known)
    if condition is None:
        return groups
    guarantee: Any = pc.scalar(True)
    for key, value in source.partition.items():
        if schema.get_field_index(key) < 0 and value is not None:
            guarantee = guarantee & (pc.field(key) == pa.scalar(value).cast(known.field(key).type))
    files, path = (
        (LocalFileSystem(), str(source.path)) if isinstance(source.path, Path) else file_system(source.path)
    )
    dataset = cast("Any", pads)
    fragment = dataset.ParquetFileFormat().make_fragment(
        path, filesystem=files, partition_expression=guarantee, row_groups=groups
    )
    try:
        return sorted(group.id for group in fragment.subset(filter=condition, schema=known).row_groups)
    except pa.ArrowException:  # a type that statistics are not kept of
        return groups


def _all_deleted(deleted: DeletedFlags, start: int, rows: int) -> bool:
    return rows > 0 and deleted.count(start, start + rows) == rows


def _chosen(
    batches: Iterable[pa.RecordBatch],
    layout: Layout,
    source: SourceFile,
    ranges: list[tuple[int, int]],
    deleted: DeletedFlags | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows for which the condition holds and that are not deleted, with their positions as `ROW`."""
    left = [run for run in reversed(ranges) if run[1]]
    for batch in batches:
        positions: list[Positions] = []
        needed = batch.num_rows
        while needed:
            start, rows = left.pop()
            taken = min(rows, needed)
            positions.append(np.arange(start, start + taken, dtype=np.int64))
            needed -= taken
            if rows > taken:
                left.append((start + taken, rows - taken))
        kept = _kept(batch, layout, source)
        if deleted is not None and positions:
            gone = [deleted.between(int(run[0]), int(run[-1]) + 1) for run in positions]
            kept = kept[~np.concatenate(gone)[kept]]
        if len(kept):
            rows_kept = laid_out(_taken(batch, kept), layout, source)
            places = pa.array(np.concatenate(positions)[kept])
            yield _batch([*rows_kept.columns, places], [*rows_kept.schema, ROW], len(kept))


def _kept(batch: pa.RecordBatch, layout: Layout, source: SourceFile) -> Positions:
    """The rows of a batch for which the condition holds; all without one."""
    if layout.where is None:
        return np.arange(batch.num_rows, dtype=np.int64)
    where, schema = layout.where, with_partition(batch.schema, source, layout.partition)
    columns: dict[str, Any] = {}
    for name in where.columns:
        there = batch.schema.get_field_index(name) >= 0
        value = None if there else source.partition[name]
        columns[name] = (
            batch.column(name) if there else _constant(value, schema.field(name).type, batch.num_rows)
        )
    columns[ROW.name] = pa.array(np.arange(batch.num_rows, dtype=np.int64))
    table = pa.table(columns)
    condition = where.bind(table.schema)
    kept = table.filter(condition).column(ROW.name).to_numpy()
    if problems := problems_of(batch):
        # Of a row that could not be read the condition may be null for that: it must not get lost.
        fails = table.filter(~condition).column(ROW.name).to_numpy()
        kept = np.union1d(kept, np.setdiff1d(np.array(list(problems), np.int64), fails))
    return kept


def _taken(batch: pa.RecordBatch, kept: Positions) -> pa.RecordBatch:
    if len(kept) == batch.num_rows:
        return batch
    try:
        return batch.take(cast("Any", pa.array(kept)))
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError):  # `take` does not know every type
        return cast("Any", pa).concat_batches([batch.slice(int(row), 1) for row in kept])


def _cast(array: Any, field: pa.Field[Any], source: SourceFile) -> Any:
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    try:
        return array.cast(field.type)
    except pa.ArrowInvalid as exc:
        raise UnreadableError(
            f"{source.name}: column {field.name!r} is {array.type} and {field.type} in other files, which "
            f"cannot hold its values: {' '.join(str(exc).split())}; cast one of them first"
        ) from exc


def _rows_a_read(unit: Unit, batch_rows: int) -> int:
    """Rows to decode at once: few enough to be small, enough that the cost of a call does not show."""
    row_bytes = max(1, unit.size_bytes // max(1, unit.num_rows))
    return max(1, min(_MICRO_BATCHES_A_READ * batch_rows, READ_BYTES // row_bytes))
