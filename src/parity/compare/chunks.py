"""Which columns of two row groups are the same bytes on disk, so that they need to be decoded once only.

Two runs of a deterministic job write such files: the columns that agree in every bit agree in every byte, and
comparing bytes is far cheaper than decoding them twice.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from parity.compare.dtypes import is_list, plain_type

_PIECE_BYTES = 1 << 20
_FLOATS = ("FLOAT", "DOUBLE", "FIXED_LEN_BYTE_ARRAY")
"""Physical types that may be floats; float16 is of fixed length."""


def same_columns(one: pq.ParquetFile, other: pq.ParquetFile, group: int, files: tuple[int, int]) -> set[str]:
    """The columns whose chunks in row group `group` of both files are equal to the byte.

    `files` are descriptors of the two. The row groups have equally many rows.
    """
    ours, theirs = _leaves(one), _leaves(other)
    schemas = one.schema_arrow, other.schema_arrow
    same: set[str] = set()
    for name in ours:
        if name not in theirs or not schemas[0].field(name).equals(schemas[1].field(name)):
            continue
        pairs = zip(ours[name], theirs[name], strict=True)
        metadata = one.metadata.row_group(group), other.metadata.row_group(group)
        if all(_same_chunk(metadata[0].column(i), metadata[1].column(j), files) for i, j in pairs):
            same.add(name)
    return same


def float_count(file: pq.ParquetFile, name: str, groups: Sequence[int]) -> int | None:
    """How many float values a column holds that are not null, in some row groups.

    None where the footer does not tell: for floats in lists and structs, or without statistics.
    """
    places = _leaves(file)[name]
    metadata = file.metadata
    if not any(metadata.schema.column(place).physical_type in _FLOATS for place in places):
        return 0
    if pat.is_nested(plain_type(file.schema_arrow.field(name).type)):
        return None
    total = 0
    for group in groups:
        chunk = metadata.row_group(group).column(places[0])
        statistics: Any = chunk.statistics
        if statistics is None or not statistics.has_null_count:
            return None
        total += chunk.num_values - (statistics.null_count or 0)
    return total


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
    pieces = [bytearray(min(size, _PIECE_BYTES)) for _ in files]
    for at in range(0, size, _PIECE_BYTES):
        length = min(_PIECE_BYTES, size - at)
        for piece, file, chunk in zip(pieces, files, (one, other), strict=True):
            del piece[length:]  # of the last piece
            if os.preadv(file, [piece], _start(chunk) + at) != length:
                return False
        if pieces[0] != pieces[1]:
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
