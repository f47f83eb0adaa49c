"""Columns as JSON-ready Python values: numpy scalars keep their dtype, and so their shortest digits."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pyarrow as pa

from parity.codec import texts
from parity.codec.layouts import numbers, present_mask
from parity.codec.numbers import is_float, shortest
from parity.column import Column
from parity.schema import (
    BFLOAT16,
    Bytes,
    Date,
    Decimal,
    Field,
    Floating,
    Image,
    List,
    NonFinite,
    Struct,
    Tensor,
    Timestamp,
)

Array = np.ndarray[Any, Any]
Encoded = tuple[list[Any], dict[int, str]]
"""One value for each row, and for the rows that JSON cannot tell, why."""


def encode_column(column: Column, non_finite: NonFinite | None = None) -> Encoded:
    """The rows of a column as values that `rows.dumps` writes."""
    field = column.field
    if isinstance(field, Image) and field.form == "array":
        return _tensors(field.as_tensor, column.arrays(), non_finite)
    if isinstance(field, Tensor):
        if field.row_shape is not None and column.null_count == 0:
            return _stacked(field, column.numpy(), non_finite)
        return _tensors(field, column.arrays(), non_finite)
    if field.numpy_dtype is not None and column.null_count == 0:
        return _scalars(field, column.numpy(), None, non_finite)
    return encode_array(field, column.arrow, non_finite)


def encode_array(field: Field, array: pa.Array[Any], non_finite: NonFinite | None) -> Encoded:
    """The rows of a canonical Arrow array as values that `rows.dumps` writes."""
    if isinstance(field, Tensor) or (isinstance(field, Image) and field.form == "array"):
        return (
            encode_column(Column(field, arrow=array), non_finite)
            if array.null_count == 0
            else _tensors(
                field.as_tensor if isinstance(field, Image) else field,
                Column(field, arrow=array).arrays(),
                non_finite,
            )
        )
    if isinstance(field, List):
        return _lists(field, array, non_finite)
    if isinstance(field, Struct):
        return _structs(field, array, non_finite)
    if field.numpy_dtype is not None:
        return _scalars(field, _memory(field, array), present_mask(array), non_finite)
    values = array.to_pylist()
    if isinstance(field, Bytes | Image):
        return [None if value is None else texts.base64_text(value) for value in values], {}
    if isinstance(field, Decimal):
        return [None if value is None else texts.decimal_text(value) for value in values], {}
    return values, {}


def _memory(field: Field, array: Any) -> Array:
    """A canonical scalar array in the field's numpy dtype; null rows hold anything."""
    if isinstance(field, Timestamp):
        return numbers(array, np.dtype(np.int64))
    if isinstance(field, Date):
        return numbers(array, np.dtype(np.int32)).astype(np.int64)
    values = numbers(array)
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return values.astype(BFLOAT16) if field.numpy_dtype == BFLOAT16 else values


def _scalars(field: Field, values: Array, present: Array | None, non_finite: NonFinite | None) -> Encoded:
    """Numbers and times; the rows that are not present hold anything."""
    if isinstance(field, Timestamp | Date):
        found, problems = _times(field, values.view(np.int64), present)
    elif is_float(values.dtype):
        found, problems = _floats(cast("Floating", field), values, present, non_finite)
    else:
        found, problems = values.tolist(), {}
    if present is not None:
        for row in np.flatnonzero(~present).tolist():
            found[row] = None
    return found, problems


def _floats(field: Floating, values: Array, present: Array | None, non_finite: NonFinite | None) -> Encoded:
    found: list[Any] = values.tolist() if values.dtype == np.float64 else list(_digits(values))
    odd = ~np.isfinite(values)
    if present is not None:
        odd &= present
    problems: dict[int, str] = {}
    if odd.any():
        policy = non_finite or field.non_finite
        for row in np.flatnonzero(odd).tolist():
            found[row] = non_finite_text(float(values[row]))
            if policy == "refuse":
                problems[row] = refused_text(found[row])
    return found, problems


def _times(field: Timestamp | Date, ticks: Array, present: Array | None) -> Encoded:
    per_day = texts.TICKS_PER_SECOND[field.unit] * 86_400 if isinstance(field, Timestamp) else 1
    if present is not None:
        ticks = np.where(present, ticks, 0)
    told = texts.has_text(ticks, per_day)
    problems: dict[int, str] = {}
    if not told.all():
        problems = {
            row: f"tick {ticks[row]} is outside the years 0000 to 9999, all that ISO 8601 text can tell; "
            "use a binary form"
            for row in np.flatnonzero(~told).tolist()
        }
        ticks = np.where(told, ticks, 0)
    if isinstance(field, Timestamp):
        return texts.timestamp_texts(ticks, field.unit, field.tz is not None), problems
    return texts.date_texts(ticks), problems


def _digits(values: Array) -> Array:
    """Floats in the dtype whose shortest digits are those to write; 16-bit ones become float64."""
    return shortest(values) if values.dtype.itemsize == 2 else np.ascontiguousarray(values)


def _stacked(field: Tensor, values: Array, non_finite: NonFinite | None) -> Encoded:
    if not is_float(values.dtype):
        return list(np.ascontiguousarray(values)), {}
    digits = _digits(values)
    if bool(np.isfinite(values).all()):
        return list(digits), {}
    return _tensors(field, list(values), non_finite)


def _tensors(field: Tensor, arrays: list[Any], non_finite: NonFinite | None) -> Encoded:
    policy = non_finite or field.non_finite
    floating = is_float(field.numpy_dtype)
    found: list[Any] = []
    problems: dict[int, str] = {}
    for row, values in enumerate(arrays):
        if values is None:
            found.append(None)
            continue
        if hides_shape(field, values.shape):
            problems[row] = (
                f"nested lists cannot tell an empty tensor of shape {list(values.shape)}; use a binary form"
            )
        digits = _digits(values) if floating else np.ascontiguousarray(values)
        if not floating or bool(np.isfinite(values).all()):
            found.append(digits)
            continue
        if policy == "refuse":
            worst = values.reshape(-1)[~np.isfinite(values).reshape(-1)][0]
            problems[row] = refused_text(non_finite_text(float(worst)))
        found.append(_with_texts(digits).tolist())
    return found, problems


def _with_texts(digits: Array) -> Array:
    """An object array of numpy scalars in which NaN and infinities are strings."""
    mixed: Array = np.empty(digits.size, dtype=object)
    mixed[:] = [
        value if np.isfinite(value) else non_finite_text(float(value)) for value in digits.reshape(-1)
    ]
    return mixed.reshape(digits.shape)


def hides_shape(field: Tensor, shape: tuple[int, ...]) -> bool:
    """Whether nested lists lose the shape: a varying dimension that is not 0 inside an empty one."""
    if 0 not in shape:
        return False
    inner = shape.index(0) + 1
    return any(want is None and got for want, got in zip(field.shape[inner:], shape[inner:], strict=True))


def _lists(field: List, array: pa.Array[Any], non_finite: NonFinite | None) -> Encoded:
    items, faults = encode_array(field.of, cast("Any", array).flatten(), non_finite)
    found: list[Any] = []
    problems: dict[int, str] = {}
    start = 0
    for row, length in enumerate(cast("Any", array).value_lengths().to_pylist()):
        if length is None:
            found.append(None)
            continue
        found.append(items[start : start + length])
        if faults:
            fault = next((place for place in range(start, start + length) if place in faults), None)
            if fault is not None:
                problems[row] = f"item [{fault - start}]: {faults[fault]}"
        start += length
    return found, problems


def _structs(field: Struct, array: pa.Array[Any], non_finite: NonFinite | None) -> Encoded:
    present = array.is_valid().to_numpy(zero_copy_only=False)
    packed = cast("Any", array if bool(present.all()) else array.filter(array.is_valid()))
    columns: list[list[Any]] = []
    faults: dict[int, str] = {}
    for position, (name, member) in enumerate(field.members.items()):
        values, problems = encode_array(member, packed.field(position), non_finite)
        columns.append(values)
        for row, message in problems.items():
            faults.setdefault(row, f"member {name!r}: {message}")
    rows = [dict(zip(field.members.names, values, strict=True)) for values in zip(*columns, strict=True)]
    if packed is array:
        return rows, faults
    places = np.flatnonzero(present).tolist()
    found: list[Any] = [None] * len(array)
    for place, row in zip(places, rows, strict=True):
        found[place] = row
    return found, {places[row]: message for row, message in faults.items()}


def non_finite_text(value: float) -> str:
    """The text of a number that JSON has no token for: NaN, Infinity or -Infinity."""
    if value != value:  # NaN
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def refused_text(text: str) -> str:
    """Why an answer with a number that JSON has no token for is refused."""
    return (
        f"{text} has no token in JSON; declare the field with non_finite='string' to send it as a string, "
        "or ask for a binary form"
    )
