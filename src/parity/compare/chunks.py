"""Which columns of two row groups are the same bytes on disk, so that they need to be decoded once only.

Two runs of a deterministic job write such files: the columns that agree in every bit agree in every byte, and
comparing bytes is far cheaper than decoding them twice.
"""

from __future__ import annotations

import os
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from parity.compare.dtypes import is_list, plain_type

_PIECE_BYTES = 1 << 20


def same_columns(one: pq.ParquetFile, other: pq.ParquetFile, group: int, files: tuple[int, int]) -> set[str]:
    """The columns whose chunks in row group `group` of both files are equal to the byte.

    `files` are descriptors of the two. The row groups have equally many rows.
    """
    ours, theirs = _leaves(one), _leaves(other)
    schemas = one.schema_arrow, other.schema_arrow
    same: set[str] = set()
    for name in ours:
        if name not in theirs or schemas[0].field(name).type != schemas[1].field(name).type:
            continue
        pairs = zip(ours[name], theirs[name], strict=True)
        metadata = one.metadata.row_group(group), other.metadata.row_group(group)
        if all(_same_chunk(metadata[0].column(i), metadata[1].column(j), files) for i, j in pairs):
            same.add(name)
    return same


def _leaves(file: pq.ParquetFile) -> dict[str, list[int]]:
    """The places of each column's leaves in the file; nothing where they cannot be told."""
    schema = file.schema_arrow
    found: dict[str, list[int]] = {}
    start = 0
    for field in schema:
        count = _count(field.type)
        found[field.name] = list(range(start, start + count))
        start += count
    return found if start == file.metadata.num_columns and len(found) == len(schema) else {}


def _count(kind: pa.DataType) -> int:
    kind = plain_type(kind)
    if pat.is_struct(kind):
        return sum(_count(kind.field(i).type) for i in range(kind.num_fields))
    if pat.is_map(kind):
        return _count(kind.key_type) + _count(kind.item_type)
    return _count(cast("Any", kind).value_type) if is_list(kind) else 1


def _same_chunk(one: Any, other: Any, files: tuple[int, int]) -> bool:
    ours, theirs = _described(one), _described(other)
    if ours != theirs:
        return False
    size = one.total_compressed_size
    starts = _start(one), _start(other)
    for at in range(0, size, _PIECE_BYTES):
        length = min(_PIECE_BYTES, size - at)
        pieces = [os.pread(file, length, start + at) for file, start in zip(files, starts, strict=True)]
        if len(pieces[0]) != length or pieces[0] != pieces[1]:
            return False
    return True


def _described(chunk: Any) -> tuple[object, ...]:
    return (
        chunk.physical_type,
        str(chunk.path_in_schema),
        chunk.num_values,
        chunk.compression,
        chunk.encodings,
        chunk.total_compressed_size,
        chunk.total_uncompressed_size,
    )


def _start(chunk: Any) -> int:
    """Where a chunk begins: with its dictionary, where it has one."""
    offset = chunk.dictionary_page_offset
    return chunk.data_page_offset if offset is None else min(offset, chunk.data_page_offset)
