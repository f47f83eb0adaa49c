"""What an Arrow stream takes in memory once its compression and encodings are undone, told before they are.

A few bytes may stand for any number: buffers are compressed, dictionaries, run ends and views say one value
many times, and nulls take nothing at all. Sizes are estimates, never far below what decoding takes.
"""

from __future__ import annotations

import struct
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parity.codec.layouts import is_list_like, numbers, present_mask

Array = np.ndarray[Any, np.dtype[np.float64]]
_pc: Any = pc  # the stubs know too few of these functions' overloads
_ipc: Any = pa.ipc

_NULL_BYTES = 8.0
_OFFSET_BYTES = 4.0


def unpacked_bytes(data: pa.Buffer) -> int:
    """How many bytes the compressed buffers of an IPC stream say that they hold; 0 where none is compressed.

    Arrow allocates what they say. The layout is that of Arrow's Message.fbs.

    Raises:
        ValueError: the stream is none.
    """
    total = 0
    for message in _ipc.MessageReader.open_stream(data):
        if message.type in ("record batch", "dictionary"):
            try:
                total += _unpacked_of(message)
            except struct.error as exc:
                raise ValueError(f"a message's metadata is cut short: {exc}") from None
    return total


def decoded_bytes(array: Any) -> float:
    """About how many bytes the plain values of a validated array take."""
    if _is_text(array.type) and (whole := _whole_span(array)) is not None:
        return _OFFSET_BYTES * len(array) + whole
    sizes = row_bytes(array)
    return float(sizes.sum()) if isinstance(sizes, np.ndarray) else sizes * len(array)


def row_bytes(array: Any) -> float | Array:
    """About how many bytes the plain value of each row takes: one number where all are alike."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return row_bytes(array.storage)
    if pa.types.is_null(kind):
        return _NULL_BYTES
    if pa.types.is_dictionary(kind):
        sizes = row_bytes(array.dictionary)
        if not isinstance(sizes, np.ndarray):
            return sizes
        if not len(sizes):
            return 0.0
        present = present_mask(array.indices)
        places = numbers(array.indices)
        if present is None:
            return sizes[places]
        return np.where(present, sizes[np.where(present, places, 0)], _OFFSET_BYTES)
    if pa.types.is_run_end_encoded(kind):
        sizes = row_bytes(array.values)
        return float(sizes.max(initial=0.0)) if isinstance(sizes, np.ndarray) else sizes
    if pa.types.is_fixed_size_list(kind):
        return _of_fixed_lists(array)
    if is_list_like(kind):
        return _of_lists(array, row_bytes(array.values))
    if pa.types.is_map(kind):
        return _of_lists(array, row_bytes(array.keys) + row_bytes(array.items))
    if pa.types.is_struct(kind):
        return sum((row_bytes(array.field(at)) for at in range(kind.num_fields)), 0.0)
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        views = np.frombuffer(array.buffers()[1] or b"", np.int32)[::4]
        lengths = views[array.offset : array.offset + len(array)].astype(np.float64)
        present = present_mask(array)
        return _OFFSET_BYTES + (lengths if present is None else np.where(present, lengths, 0.0))
    if pa.types.is_fixed_size_binary(kind) or pa.types.is_primitive(kind) or pa.types.is_decimal(kind):
        return kind.bit_width / 8
    if _is_text(kind):
        return _OFFSET_BYTES + _spans(array, array.buffers()[1])
    return array.nbytes / max(1, len(array))


def _unpacked_of(message: Any) -> int:
    meta, body = memoryview(message.metadata), memoryview(message.body or b"")
    batch = _follow(meta, _member(meta, _follow(meta, 0), 2))
    if message.type == "dictionary":
        batch = _follow(meta, _member(meta, batch, 1))
    buffers = _member(meta, batch, 2)
    if not _member(meta, batch, 3) or not buffers:
        return 0
    at = _follow(meta, buffers)
    (count,) = struct.unpack_from("<I", meta, at)
    total = 0
    for place in range(at + 4, at + 4 + 16 * count, 16):
        start, length = struct.unpack_from("<qq", meta, place)
        if length >= 8 and 0 <= start <= len(body) - 8:
            total += max(0, *struct.unpack_from("<q", body, start))
    return total


def _member(meta: memoryview, table: int, index: int) -> int:
    """Where a flatbuffer's table has a member; 0 where it has none."""
    vtable = table - struct.unpack_from("<i", meta, table)[0]
    size = struct.unpack_from("<H", meta, vtable)[0]
    place = 4 + 2 * index
    offset = struct.unpack_from("<H", meta, vtable + place)[0] if place + 2 <= size else 0
    return table + offset if offset else 0


def _follow(meta: memoryview, place: int) -> int:
    return place + struct.unpack_from("<I", meta, place)[0]


_TEXTS = (pa.types.is_string, pa.types.is_binary, pa.types.is_large_string, pa.types.is_large_binary)


def _is_text(kind: pa.DataType) -> bool:
    return any(test(kind) for test in _TEXTS)


def _whole_span(array: Any) -> float | None:
    """What the spans of a text array's rows come to, by two offsets; None if each must be looked at."""
    if array.null_count == len(array):
        return 0.0
    if array.null_count:
        return None
    offsets = np.frombuffer(array.buffers()[1], _offset_type(array.type))
    return float(offsets[array.offset + len(array)] - offsets[array.offset])


def _offset_type(kind: pa.DataType) -> type[np.int32 | np.int64]:
    wide = (pa.types.is_large_string, pa.types.is_large_binary, pa.types.is_large_list)
    return np.int64 if any(test(kind) for test in wide) else np.int32


def _of_fixed_lists(array: Any) -> float | Array:
    size: int = array.type.list_size
    sizes = row_bytes(array.values)
    if not isinstance(sizes, np.ndarray):
        return sizes * size
    start = array.offset * size
    return sizes[start : start + len(array) * size].reshape(len(array), size).sum(axis=1)


def _of_lists(array: Any, sizes: float | Array) -> Array:
    """The bytes of lists or maps, whose values have `sizes`."""
    lengths = _lengths(array)
    if not isinstance(sizes, np.ndarray):
        return _OFFSET_BYTES + lengths * sizes
    upto = np.concatenate([np.zeros(1), np.cumsum(sizes)])
    starts = np.where(lengths > 0, array.offsets.to_numpy()[: len(array)], 0)
    return _OFFSET_BYTES + upto[(starts + lengths).astype(np.int64)] - upto[starts.astype(np.int64)]


def _lengths(array: Any) -> Array:
    """How many values each list or map has; 0 where it is null."""
    if pa.types.is_list_view(array.type) or pa.types.is_large_list_view(array.type):
        return _pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64)
    return _spans(array, array.buffers()[1])


def _spans(array: Any, offsets: pa.Buffer | None) -> Array:
    """How far apart the offsets of an array's rows are; 0 where a row is null.

    Read as they lie: Arrow's `fill_null` would load pandas, which costs as much as the rest of a small job.
    """
    if offsets is None or not len(array):
        return np.zeros(len(array))
    every = np.frombuffer(cast("Any", offsets), _offset_type(array.type))
    found = np.diff(every[array.offset : array.offset + len(array) + 1]).astype(np.float64)
    present = present_mask(array) if array.null_count else None
    return found if present is None else np.where(present, found, 0.0)
