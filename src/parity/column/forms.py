"""One column's values in other forms: Arrow as numpy and back, as Python values, as one array for each row.

Memory is shared where the layouts agree; nothing is converted to another dtype.
"""

from __future__ import annotations

import contextlib
from typing import Any, cast

import numpy as np
import pyarrow as pa

from parity.schema import BFLOAT16, Date, Field, Image, List, Struct, Tensor, Timestamp


def flat_numpy(field: Field, arrow: pa.Array[Any]) -> np.ndarray[Any, Any]:
    """All elements of a column without nulls as one flat array; a view where the layouts agree."""
    return elements(field, cast("Any", arrow).flatten() if isinstance(field, Tensor) else arrow)


def elements(field: Field, flat: Any) -> np.ndarray[Any, Any]:
    """A flat Arrow array without nulls in the field's numpy dtype; a view where the layouts agree."""
    dtype = cast("np.dtype[Any]", field.numpy_dtype)
    if pa.types.is_boolean(flat.type):
        return flat.to_numpy(zero_copy_only=False)
    if pa.types.is_date32(flat.type):
        return flat.view(pa.int32()).to_numpy(zero_copy_only=False).astype(np.int64).view(dtype)
    stored = np.dtype(np.float32) if dtype == BFLOAT16 else dtype
    buffer = flat.buffers()[1]
    if buffer is None or len(flat) == 0:
        return np.empty(0, dtype=dtype)
    values = np.frombuffer(buffer, dtype=stored, count=len(flat), offset=flat.offset * stored.itemsize)
    if dtype != BFLOAT16:
        return values
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return values.astype(BFLOAT16)


def arrow_from_numpy(field: Field, values: np.ndarray[Any, Any]) -> pa.Array[Any]:
    """The canonical Arrow array of a numpy column, over its memory where the layouts agree."""
    rows = len(values)
    flat = np.ascontiguousarray(values).reshape(-1)
    if flat.dtype == BFLOAT16:
        flat = flat.astype(np.float32)
    if flat.dtype == np.dtype("datetime64[D]"):
        flat = flat.view(np.int64).astype(np.int32)
    value_type = field.value_type if isinstance(field, Tensor) else field.arrow_type
    if flat.dtype == np.bool_:
        items: pa.Array[Any] = pa.array(flat)
    else:
        items = pa.Array.from_buffers(value_type, len(flat), [None, pa.py_buffer(cast("Any", flat))])
    if not isinstance(field, Tensor):
        return items
    if not field.size:
        offsets = pa.py_buffer(cast("Any", np.zeros(rows + 1, dtype=np.int32)))
        return pa.Array.from_buffers(field.arrow_type, rows, [None, offsets], children=[items])
    return pa.Array.from_buffers(field.arrow_type, rows, [None], children=[items])


def python_values(field: Field, arrow: pa.Array[Any], *, zoned_as_text: bool = False) -> list[Any]:
    """The rows of a canonical Arrow array as `Column.to_pylist` gives them.

    Args:
        field: what the values are.
        arrow: the array.
        zoned_as_text: give ISO 8601 text, which has a zone, where a zoned time would be a numpy datetime64,
            which has none.
    """
    if isinstance(field, Image) and field.form == "array":
        field = field.as_tensor
    if isinstance(field, Tensor):
        return list(rows_as_arrays(field, arrow))
    if isinstance(field, List):
        items = python_values(field.of, cast("Any", arrow).flatten(), zoned_as_text=zoned_as_text)
        lengths = cast("Any", arrow).value_lengths().to_pylist()
        ends = np.cumsum([length or 0 for length in lengths]).tolist()
        return [
            None if length is None else items[end - length : end]
            for length, end in zip(lengths, ends, strict=True)
        ]
    if isinstance(field, Struct):
        members = [
            python_values(member, child, zoned_as_text=zoned_as_text)
            for member, child in zip(field.members.values(), cast("Any", arrow).flatten(), strict=True)
        ]
        present = arrow.is_valid().to_pylist()
        return [
            dict(zip(field.members, values, strict=True)) if valid else None
            for valid, values in zip(present, zip(*members, strict=True), strict=True)
        ]
    if isinstance(field, Timestamp | Date):
        return _times(field, arrow, zoned_as_text)
    return arrow.to_pylist()


def _times(field: Timestamp | Date, arrow: pa.Array[Any], zoned_as_text: bool) -> list[Any]:
    if not (isinstance(field, Timestamp) and field.unit == "ns"):
        try:
            return arrow.to_pylist()
        except (ValueError, OverflowError):
            pass  # a year that Python does not know is among them: value by value
    found: list[Any] = []
    unit = field.unit if isinstance(field, Timestamp) else "D"
    as_text = zoned_as_text and isinstance(field, Timestamp) and field.tz is not None
    for row, tick in enumerate(arrow.view(pa.int32() if unit == "D" else pa.int64()).to_pylist()):
        if tick is None:
            found.append(None)
            continue
        value: Any = None
        if unit != "ns":
            with contextlib.suppress(ValueError, OverflowError):
                value = arrow[row].as_py()
        if value is None:
            value = np.datetime64(tick, unit)
            value = f"{np.datetime_as_string(value)}Z" if as_text else value
        found.append(value)
    return found


def rows_as_arrays(field: Tensor, arrow: pa.Array[Any]) -> list[np.ndarray[Any, Any] | None]:
    """One view for each row that is not null, out of one flat array of all elements."""
    whole = cast("Any", arrow)
    present = np.ones(len(arrow), np.bool_) if arrow.null_count == 0 else _is_valid(arrow)
    rows = np.flatnonzero(present).tolist()
    if field.variable_dims > 1:
        data, shapes = (child.filter(arrow.is_valid()) for child in whole.flatten())
        dims = shapes.flatten().to_numpy(zero_copy_only=False).reshape(-1, len(field.shape)).tolist()
    else:
        data, dims = whole, None
    flat = elements(field, data.flatten()).view()
    flat.flags.writeable = False
    found: list[np.ndarray[Any, Any] | None] = [None] * len(arrow)
    start = 0
    lengths = [field.size] * len(rows) if field.row_shape is not None else _lengths(data)
    for place, (row, length) in enumerate(zip(rows, lengths, strict=True)):
        if dims is not None:
            shape = dims[place]
        else:
            shape = [length // field.size if size is None else size for size in field.shape]
        found[row] = flat[start : start + length].reshape(shape)
        start += length
    return found


def _is_valid(arrow: pa.Array[Any]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    return arrow.is_valid().to_numpy(zero_copy_only=False)


def _lengths(lists: Any) -> list[int]:
    return [length for length in lists.value_lengths().to_pylist() if length is not None]
