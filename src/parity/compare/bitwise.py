"""Whether two arrays hold the same bits, told from their buffers at the speed of memory.

A "no" means "look closer": null slots may hold other rubbish, and one list may begin elsewhere.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from parity.compare.dtypes import is_list


def same_bits(one: pa.Array[Any], other: pa.Array[Any]) -> bool:
    """Whether both arrays have one type and provably the same values, bit by bit."""
    if one.type != other.type or len(one) != len(other) or one.null_count != other.null_count:
        return False
    if not len(one):
        return True
    if one.null_count and not _same_validity(one, other):
        return False
    kind = one.type
    if pat.is_null(kind):
        return True
    if isinstance(kind, pa.BaseExtensionType):
        return same_bits(cast("Any", one).storage, cast("Any", other).storage)
    if pat.is_struct(kind):
        ours, theirs = cast("Any", one), cast("Any", other)
        return all(same_bits(ours.field(i), theirs.field(i)) for i in range(kind.num_fields))
    if pat.is_fixed_size_list(kind):
        return same_bits(_fixed_items(one), _fixed_items(other))
    if pat.is_list(kind) or pat.is_large_list(kind):
        return _same_lists(one, other)
    if pat.is_string(kind) or pat.is_binary(kind) or pat.is_large_string(kind) or pat.is_large_binary(kind):
        return _same_texts(one, other)
    if pat.is_dictionary(kind):
        ours, theirs = cast("Any", one), cast("Any", other)
        return same_bits(ours.dictionary, theirs.dictionary) and same_bits(ours.indices, theirs.indices)
    if pat.is_boolean(kind) or is_list(kind) or not _has_width(kind):
        return not pat.is_nested(kind) and one.equals(other)
    width = kind.bit_width // 8
    return _slice(one, 1, one.offset * width, len(one) * width).equals(
        _slice(other, 1, other.offset * width, len(other) * width)
    )


def float_leaves(values: pa.Array[Any]) -> int:
    """How many float values that are not null an array holds, at any depth."""
    kind = values.type
    if isinstance(kind, pa.BaseExtensionType):
        return float_leaves(cast("Any", values).storage)
    if pat.is_floating(kind):
        return len(values) - values.null_count
    if pat.is_struct(kind):
        return sum(float_leaves(field) for field in cast("Any", values).flatten())
    if is_list(kind):
        return float_leaves(cast("Any", values).flatten())
    if pat.is_dictionary(kind) and pat.is_floating(kind.value_type):
        return float_leaves(cast("Any", values).dictionary_decode())
    return 0


def _has_width(kind: pa.DataType) -> bool:
    try:
        return kind.bit_width % 8 == 0
    except ValueError:
        return False


def _same_validity(one: pa.Array[Any], other: pa.Array[Any]) -> bool:
    ours, theirs = (cast("Any", side.is_valid()).to_numpy(zero_copy_only=False) for side in (one, other))
    return bool(np.array_equal(ours, theirs))


def _fixed_items(lists: Any) -> pa.Array[Any]:
    size = lists.type.list_size
    return lists.values.slice(lists.offset * size, len(lists) * size)


def _same_lists(one: pa.Array[Any], other: pa.Array[Any]) -> bool:
    ours, theirs = _offsets(one), _offsets(other)
    if not _same_steps(ours, theirs):
        return False
    items = [
        cast("Any", side).values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
        for side, offsets in ((one, ours), (other, theirs))
    ]
    return same_bits(items[0], items[1])


def _same_texts(one: pa.Array[Any], other: pa.Array[Any]) -> bool:
    ours, theirs = _offsets(one), _offsets(other)
    if not _same_steps(ours, theirs):
        return False
    size = int(ours[-1] - ours[0])
    return not size or _slice(one, 2, int(ours[0]), size).equals(_slice(other, 2, int(theirs[0]), size))


def _same_steps(ours: Any, theirs: Any) -> bool:
    if ours[0] != theirs[0]:
        ours, theirs = ours - ours[0], theirs - theirs[0]
    return bool(np.array_equal(ours, theirs))


def _offsets(values: pa.Array[Any]) -> Any:
    kind = values.type
    wide = pat.is_large_string(kind) or pat.is_large_binary(kind) or pat.is_large_list(kind)
    dtype = np.dtype(np.int64 if wide else np.int32)
    buffer = cast("Any", values.buffers()[1])
    return np.frombuffer(buffer, dtype, len(values) + 1, values.offset * dtype.itemsize)


def _slice(values: pa.Array[Any], buffer: int, start: int, size: int) -> pa.Buffer:
    return cast("pa.Buffer", values.buffers()[buffer]).slice(start, size)
