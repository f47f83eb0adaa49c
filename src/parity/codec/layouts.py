"""Arrow's many layouts of one meaning, seen as few: encodings undone, lists peeled, numbers seen by numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parity.errors import SchemaError

Array = np.ndarray[Any, Any]
_pc: Any = pc  # the stubs know too few of these functions' overloads

_DTYPES: dict[pa.DataType, np.dtype[Any]] = {
    pa.from_numpy_dtype(np.dtype(name)): np.dtype(name)
    for name in "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()
}
_LIST_KINDS = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
)


def plain_type(kind: Any) -> Any:
    """The type of the values once dictionaries, run-end encodings and extension types are undone."""
    while True:
        if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
            kind = kind.value_type
        elif isinstance(kind, pa.BaseExtensionType):
            kind = kind.storage_type
        else:
            return kind


def plain(array: Any) -> Any:
    """The same values with dictionaries, run-end encodings and extension types undone."""
    while True:
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        elif pa.types.is_run_end_encoded(array.type):
            array = _pc.run_end_decode(array)
        elif isinstance(array.type, pa.BaseExtensionType):
            array = array.storage
        else:
            return array


def one_chunk(column: Any) -> Any:
    """A chunked column as one array, not copied when it is one already.

    Raises:
        SchemaError: it is too large for one array.
    """
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    if column.num_chunks == 0:
        return pa.nulls(0, plain_type(column.type))
    try:
        found: Any = column.combine_chunks()
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        found = pa.concat_arrays([plain(chunk) for chunk in column.chunks])
    if isinstance(found, pa.ChunkedArray):
        raise SchemaError("a column is too large for one Arrow array; decode the table in smaller pieces")
    return found


def is_list_like(kind: Any) -> bool:
    """Whether the type is one of Arrow's list layouts."""
    return any(test(kind) for test in _LIST_KINDS)


def peel(array: Any) -> tuple[Array, Any]:
    """The length of each list (0 where null), and the items of all lists, one after the other."""
    lengths = _pc.fill_null(_pc.list_value_length(array), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    try:
        return lengths, array.flatten()
    except pa.ArrowNotImplementedError:  # some dictionaries cannot be picked from
        return lengths, _with_plain_items(array).flatten()


def _with_plain_items(array: Any) -> Any:
    """The same lists, of the three usual layouts, with their items' encoding undone."""
    items = plain(array.values)
    if pa.types.is_fixed_size_list(array.type):
        kind: Any = pa.list_(items.type, array.type.list_size)
    else:
        kind = pa.large_list(items.type) if pa.types.is_large_list(array.type) else pa.list_(items.type)
    buffers = array.buffers()[: 1 if pa.types.is_fixed_size_list(kind) else 2]
    return pa.Array.from_buffers(kind, len(array), buffers, offset=array.offset, children=[items])


def present_mask(array: Any) -> Array | None:
    """Which rows are not null; None when all are. Arrow's `to_numpy` of bools would load pandas."""
    if array.null_count == 0:
        return None
    valid = array.is_valid()
    bits = np.unpackbits(np.frombuffer(valid.buffers()[1], np.uint8), bitorder="little")
    return bits[valid.offset : valid.offset + len(valid)].view(np.bool_)


def numpy_dtype(kind: Any) -> np.dtype[Any] | None:
    """The numpy dtype of a primitive Arrow type, bool included; None for other types."""
    return np.dtype(np.bool_) if pa.types.is_boolean(kind) else _DTYPES.get(kind)


def numbers(array: Any, dtype: np.dtype[Any] | None = None) -> Array:
    """A primitive array as numpy, null rows holding anything; a read-only view except for booleans.

    Args:
        array: a boolean, number, timestamp or date array.
        dtype: the dtype to see the memory as; by default the array's own.
    """
    if pa.types.is_boolean(array.type):
        return _pc.fill_null(array, False).to_numpy(zero_copy_only=False)
    seen = _DTYPES[array.type] if dtype is None else dtype
    buffer = array.buffers()[1]
    if buffer is None or len(array) == 0:
        return np.zeros(len(array), dtype=seen)
    return np.frombuffer(buffer, dtype=seen, count=len(array), offset=array.offset * seen.itemsize)


def relabelled(array: Any, kind: pa.DataType) -> Any:
    """The same memory under another type of the same layout (zone names, child names, nullability)."""
    if array.type.equals(kind, check_metadata=True):
        return array
    children = [array.values] if is_list_like(kind) else None
    buffers = array.buffers()[: 1 if pa.types.is_fixed_size_list(kind) else 2]
    return pa.Array.from_buffers(kind, len(array), buffers, offset=array.offset, children=children)
