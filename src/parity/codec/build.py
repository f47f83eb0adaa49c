"""Columns from canonical Python values (see `parity.codec.values`), without a value changing on the way."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pyarrow as pa

from parity.column import Column
from parity.schema import BFLOAT16, Bool, Date, Field, Image, List, Schema, Struct, Tensor, Timestamp

Array = np.ndarray[Any, Any]


def build_column(field: Field, values: list[Any]) -> Column:
    """One column of canonical values, None for null; numpy-built where nothing is null (the fast path)."""
    dtype = field.numpy_dtype
    if dtype is not None and not (field.nullable and None in _nullity(field, values)):
        if isinstance(field, Tensor):
            if field.row_shape is not None:
                return Column(field, numpy=_stack(values, dtype, field.row_shape))
        elif isinstance(field, Timestamp | Date):
            return Column(field, numpy=np.array(values, dtype=np.int64).view(dtype))
        else:
            return Column(field, numpy=_scalars(values, dtype))
    return Column(field, arrow=build_array(field, values))


def build_array(field: Field, values: list[Any]) -> pa.Array[Any]:
    """The canonical Arrow array of canonical values."""
    if isinstance(field, Image) and field.form == "array":
        field = field.as_tensor
    if isinstance(field, Tensor):
        return _tensors(field, values)
    if isinstance(field, List):
        return _lists(field, values)
    if isinstance(field, Struct):
        return _structs(field, values)
    dtype = field.numpy_dtype
    if dtype is None or isinstance(field, Bool):
        return pa.array(cast("Any", values), type=field.arrow_type)
    present = np.array([value is not None for value in values], dtype=np.bool_)
    filled = [0 if value is None else value for value in values]
    if isinstance(field, Timestamp):
        flat = np.array(filled, dtype=np.int64)
    elif isinstance(field, Date):
        flat = np.array(filled, dtype=np.int32)
    else:
        flat = _scalars(filled, dtype)
    return primitive(field.arrow_type, flat, present)


def constant_array(field: Field, value: Any, rows: int) -> pa.Array[Any]:
    """`rows` times one canonical value."""
    return build_array(field, [value]).take(cast("Any", pa.array(np.zeros(rows, dtype=np.int64))))


def primitive(kind: pa.DataType, flat: Array, present: Array | None = None) -> pa.Array[Any]:
    """A flat Arrow array over the memory of a numpy one; bfloat16 is widened to float32."""
    flat = np.ascontiguousarray(flat)
    if flat.dtype == BFLOAT16:
        flat = flat.astype(np.float32)
    if pa.types.is_boolean(kind):
        return pa.array(flat, mask=None if present is None else ~present)
    return pa.Array.from_buffers(kind, len(flat), [validity(present), buffer_of(flat)])


def buffer_of(values: Array) -> pa.Buffer:
    """The memory of a contiguous numpy array as an Arrow buffer, not copied."""
    return pa.py_buffer(cast("Any", values))


def validity(present: Array | None) -> pa.Buffer | None:
    """The Arrow validity bitmap of a boolean mask; None when every row is present."""
    if present is None or bool(present.all()):
        return None
    return pa.py_buffer(np.packbits(present, bitorder="little").tobytes())


def offsets_of(lengths: Array) -> pa.Buffer:
    """int32 list offsets from lengths; raises OverflowError beyond 2**31 - 1 elements."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    if offsets[-1] >= 2**31:
        raise OverflowError("a column holds more than 2**31 - 1 elements; decode it in smaller pieces")
    return buffer_of(offsets.astype(np.int32))


def tensor_array(
    field: Tensor, flat: pa.Array[Any], lengths: Array, shapes: Array | None, present: Array | None
) -> pa.Array[Any]:
    """The canonical Arrow array of a tensor column from all its elements.

    Args:
        field: the tensor field.
        flat: the elements of all rows, row after row, of `field.value_type`.
        lengths: the number of elements in each row; for a fixed shape the field's size, in null rows too.
        shapes: int32 of shape (rows, ndim); needed where two or more dimensions vary.
        present: which rows are not null; None for all.
    """
    rows, kind = len(lengths), field.arrow_type
    valid = validity(present)
    if pa.types.is_fixed_size_list(kind):
        return pa.Array.from_buffers(kind, rows, [valid], children=[flat])
    if field.variable_dims < 2:
        return pa.Array.from_buffers(kind, rows, [valid, offsets_of(lengths)], children=[flat])
    struct = cast("pa.StructType", kind)
    data = pa.Array.from_buffers(struct.field(0).type, rows, [valid, offsets_of(lengths)], children=[flat])
    dims = primitive(pa.int32(), cast("Any", shapes).astype(np.int32).reshape(-1))
    shape = pa.Array.from_buffers(struct.field(1).type, rows, [valid], children=[dims])
    return pa.Array.from_buffers(kind, rows, [valid], children=[data, shape])


def columns_of_rows(schema: Schema, rows: list[tuple[Any, ...]]) -> dict[str, Column]:
    """One column per field from rows of canonical values."""
    if not rows:
        return {name: build_column(field, []) for name, field in schema.items()}
    return {
        name: build_column(field, list(values))
        for (name, field), values in zip(schema.items(), zip(*rows, strict=True), strict=True)
    }


def _nullity(field: Field, values: list[Any]) -> list[Any]:
    """What `None in ...` may be asked of; arrays compare element by element, so they are not asked."""
    return [None for value in values if value is None] if isinstance(field, Tensor) else values


def _stack(values: list[Any], dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    if not values:
        return np.empty((0, *shape), dtype=dtype)
    return np.frombuffer(b"".join(values), dtype=dtype).reshape(len(values), *shape)


def _scalars(values: list[Any], dtype: np.dtype[Any]) -> Array:
    # The values are bfloat16 already, so going through float32 is exact.
    return (
        np.array(values, dtype=np.float32).astype(dtype)
        if dtype == BFLOAT16
        else np.array(values, dtype=dtype)
    )


def _tensors(field: Tensor, values: list[Any]) -> pa.Array[Any]:
    dtype = field.numpy_dtype
    present = np.array([value is not None for value in values], dtype=np.bool_)
    fixed = field.row_shape
    blank = np.zeros(fixed if fixed is not None else 0, dtype=dtype)
    arrays = [blank if value is None else value for value in values]
    flat = np.concatenate([a.reshape(-1) for a in arrays]) if arrays else np.empty(0, dtype=dtype)
    lengths = np.array([a.size for a in arrays], dtype=np.int64)
    shapes = None
    if field.variable_dims > 1:
        none = (0,) * len(field.shape)
        shapes = np.array([none if v is None else v.shape for v in values], dtype=np.int32).reshape(
            -1, len(field.shape)
        )
    return tensor_array(field, primitive(field.value_type, flat), lengths, shapes, present)


def _lists(field: List, values: list[Any]) -> pa.Array[Any]:
    present = np.array([value is not None for value in values], dtype=np.bool_)
    lengths = np.array([0 if value is None else len(value) for value in values], dtype=np.int64)
    items = build_array(field.of, [item for value in values if value is not None for item in value])
    return pa.Array.from_buffers(
        field.arrow_type, len(values), [validity(present), offsets_of(lengths)], children=[items]
    )


def _structs(field: Struct, values: list[Any]) -> pa.Array[Any]:
    present = np.array([value is not None for value in values], dtype=np.bool_)
    children = [
        build_array(member, [stand_in(member) if value is None else value[name] for value in values])
        for name, member in field.members.items()
    ]
    return pa.Array.from_buffers(field.arrow_type, len(values), [validity(present)], children=children)


def stand_in(field: Field) -> Any:
    """A canonical value to stand beneath a null parent, where the member itself may not be null."""
    if field.nullable:
        return None
    if isinstance(field, Image) and field.form == "array":
        return np.zeros(tuple(size or 0 for size in field.as_tensor.shape), dtype=np.uint8)
    if isinstance(field, Tensor):
        return np.zeros(tuple(size or 0 for size in field.shape), dtype=field.numpy_dtype)
    if isinstance(field, List):
        return []
    if isinstance(field, Struct):
        return {name: stand_in(member) for name, member in field.members.items()}
    if isinstance(field, Bool):
        return False
    if field.numpy_dtype is not None:
        return 0
    if pa.types.is_string(field.arrow_type):
        return ""
    return b"" if pa.types.is_binary(field.arrow_type) else 0
