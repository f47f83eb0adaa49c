"""Typed Arrow arrays into canonical ones: whole columns at a time, without a copy where nothing changes.

A typed column is held to more than an untyped value: whoever chose float64 meant it, so a number that float32
would round is refused, row by row. What cannot be the field's kind at all is refused as a column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from parity.codec.build import constant_array, offsets_of, primitive, validity
from parity.codec.constraints import Faults, array_faults, numeric_faults
from parity.codec.convert_tensors import convert_tensor
from parity.codec.layouts import Array, numbers, peel, plain, present_mask, relabelled
from parity.codec.numbers import exact_cast
from parity.codec.rejection import ValueRejectedError, brief, wrong_type
from parity.codec.texts import TICKS_PER_SECOND
from parity.codec.values import compile_default, compile_value
from parity.errors import SchemaError
from parity.schema import (
    BFLOAT16,
    Bool,
    Bytes,
    Date,
    Decimal,
    Field,
    Floating,
    Image,
    Integer,
    List,
    String,
    Struct,
    Tensor,
    Timestamp,
)

_MS_PER_DAY = 86_400_000


@dataclass(frozen=True, slots=True)
class Converted:
    """A column after conversion.

    Attributes:
        array: of the field's canonical type; what rows at fault hold does not matter.
        faults: the rows that do not fit, and why.
    """

    array: Any
    faults: Faults


def convert(field: Field, array: Any) -> Converted:
    """An Arrow array whose type `parity.codec.kinds.kind_problems` found no fault with, in canonical form.

    Raises:
        SchemaError: it is too large for one array, or in an encoding that this Arrow cannot undo.
    """
    array = plain(array)
    if pa.types.is_null(array.type):
        found = Converted(constant_array(field, None, len(array)), {})
    else:
        try:
            found = _converter(field)(field, array)
        except pa.ArrowNotImplementedError as exc:
            raise SchemaError(f"Arrow cannot read type {array.type}: {exc}; cast the column") from exc
    if not field.nullable and array.null_count:
        nothing = wrong_type(field, None)
        for row in np.flatnonzero(~array.is_valid().to_numpy(zero_copy_only=False)).tolist():
            found.faults.setdefault(row, nothing)
    return found


def is_canonical(field: Field, kind: pa.DataType) -> bool:
    """Whether `convert` gives arrays of this type back as they are, whatever their values."""
    if not isinstance(field, Integer | Floating) or field.numpy_dtype == BFLOAT16:
        return False
    free = field.ge is None and field.le is None and getattr(field, "choices", None) is None
    return free and kind.equals(field.arrow_type)


def _converter(field: Field) -> Callable[[Any, Any], Converted]:
    for kinds, function in _CONVERTERS:
        if isinstance(field, kinds):
            return function
    raise SchemaError(f"{field.describe()}: no codec reads this field type")


def _bool(_field: Bool, array: Any) -> Converted:
    return Converted(array, {})


def _number(field: Integer | Floating, array: Any) -> Converted:
    if pa.types.is_decimal(array.type):
        return _whole(field, array)
    dtype = field.numpy_dtype
    present = present_mask(array)
    values = numbers(array)
    same = array.type.equals(field.arrow_type)
    cast, exact = exact_cast(values, dtype)
    faults: Faults = {}
    if exact is not None:
        bad = ~exact if present is None else ~exact & present
        faults = {row: _inexact(field, values[row], values.dtype) for row in np.flatnonzero(bad).tolist()}
    _add_present(faults, numeric_faults, field, cast, present)
    if not same:
        array = primitive(field.arrow_type, cast, present)
    return Converted(array, faults)


def _whole(field: Integer | Floating, array: Any) -> Converted:
    """Decimals without digits behind the point, as integers."""
    dtype = field.numpy_dtype
    info = np.iinfo(dtype)
    faults: Faults = {}
    found = np.zeros(len(array), dtype)
    for row, value in enumerate(array.to_pylist()):
        if value is None:
            continue
        if info.min <= value <= info.max:
            found[row] = int(value)
        else:
            what = f"{value} is out of range {info.min} to {info.max}"
            faults[row] = ValueRejectedError(what, field.describe())
    present = present_mask(array)
    _add_present(faults, numeric_faults, field, found, present)
    return Converted(primitive(field.arrow_type, found, present), faults)


def _inexact(field: Field, value: Any, source: np.dtype[Any]) -> ValueRejectedError:
    number = value.item()
    if source.kind in "iu" and isinstance(field, Integer):
        low, high = field.limits
        return ValueRejectedError(f"{number} is out of range {low} to {high}", field.describe())
    name = "bfloat16" if field.numpy_dtype == BFLOAT16 else str(field.numpy_dtype)
    wider = {"float32": "Float32", "float64": "Float64", "float16": "Float16"}.get(source.name, "Float64")
    return ValueRejectedError(
        f"{number} of type {source.name} is no {name}, and a typed column is never rounded here",
        field.describe(),
        f"cast the column, as you mean it, or declare {wider}",
    )


def _add_present(faults: Faults, check: Any, field: Field, values: Array, present: Array | None) -> None:
    """Add what `check` finds in the rows that are not null."""
    if present is None:
        found = check(field, values)
    else:
        places = np.flatnonzero(present)
        found = {int(places[row]): fault for row, fault in check(field, values[places]).items()}
    for row, fault in found.items():
        faults.setdefault(row, fault)


def _string(field: String, array: Any) -> Converted:
    faults: Faults = {}
    try:
        array.validate(full=True)
        array = _cast(array, pa.string())
    except pa.ArrowInvalid:
        array, faults = _not_utf8(field, array)
    for row, fault in array_faults(field, array).items():
        faults.setdefault(row, fault)
    return Converted(array, faults)


def _not_utf8(field: String, array: Any) -> tuple[Any, Faults]:
    """Row by row what a text column holds, the rows that are not UTF-8 left out."""
    faults: Faults = {}
    texts: list[str | None] = []
    kinds = {
        pa.string(): pa.binary(),
        pa.large_string(): pa.large_binary(),
        pa.string_view(): pa.binary_view(),
    }
    for row, data in enumerate(array.view(kinds[array.type]).to_pylist()):
        try:
            texts.append(None if data is None else data.decode())
        except UnicodeDecodeError as exc:
            faults[row] = ValueRejectedError(f"{brief(data)} is not UTF-8 ({exc.reason})", field.describe())
            texts.append(None)
    return pa.array(texts, type=pa.string()), faults


def _binary(field: Bytes | Image, array: Any) -> Converted:
    array = _cast(array, pa.binary())
    return Converted(array, array_faults(field, array))


def _cast(array: Any, kind: pa.DataType) -> Any:
    if array.type.equals(kind):
        return array
    try:
        return array.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowCapacityError) as exc:
        raise SchemaError(
            f"a column of type {array.type} holds over 2 GiB; decode it in smaller pieces"
        ) from exc


def _timestamp(field: Timestamp, array: Any) -> Converted:
    ticks = numbers(array, np.dtype(np.int64))
    present = present_mask(array)
    have, want = TICKS_PER_SECOND[array.type.unit], TICKS_PER_SECOND[field.unit]
    faults: Faults = {}
    if have == want:
        array = relabelled(array, field.arrow_type)
    else:
        if have > want:
            scaled, rest = np.divmod(ticks, have // want)
            bad, why, remedy = rest != 0, "finer than", "round it first, or declare a finer unit"
        else:
            factor = want // have
            limit = (2**63 - 1) // factor
            scaled, bad = ticks * factor, (ticks > limit) | (ticks < -limit)
            why, remedy = "out of the range of", "declare a coarser unit"
        for row in np.flatnonzero(bad if present is None else bad & present).tolist():
            what = f"tick {ticks[row]} of unit {array.type.unit} is {why} the field's unit {field.unit}"
            faults[row] = ValueRejectedError(what, field.describe(), remedy)
        ticks, array = scaled, primitive(field.arrow_type, scaled, present)
    _add_present(faults, numeric_faults, field, ticks, present)
    return Converted(array, faults)


def _date(field: Date, array: Any) -> Converted:
    if pa.types.is_date32(array.type):
        return Converted(array, {})
    millis = numbers(array, np.dtype(np.int64))
    present = present_mask(array)
    days, rest = np.divmod(millis, _MS_PER_DAY)
    bad = (rest != 0) | (days < -(2**31)) | (days >= 2**31)
    faults: Faults = {
        row: ValueRejectedError(
            f"{millis[row]} ms is not a whole day in the range of a date", field.describe()
        )
        for row in np.flatnonzero(bad if present is None else bad & present).tolist()
    }
    return Converted(primitive(field.arrow_type, days.astype(np.int32), present), faults)


def _decimal(field: Decimal, array: Any) -> Converted:
    if array.type.equals(field.arrow_type):
        return Converted(array, {})
    try:
        return Converted(array.cast(field.arrow_type), {})
    except pa.ArrowException:
        pass  # some value does not fit, or Arrow has no cast: one by one
    decode = compile_value(field)
    faults: Faults = {}
    found: list[Any] = []
    for row, value in enumerate(array.to_pylist()):
        try:
            found.append(None if value is None else decode(value))
        except ValueRejectedError as exc:
            found.append(None)
            faults[row] = exc
    return Converted(pa.array(found, type=field.arrow_type), faults)


def _image(field: Image, array: Any) -> Converted:
    return _binary(field, array) if field.form == "encoded" else _tensor(field.as_tensor, array)


def _tensor(field: Tensor, array: Any) -> Converted:
    return Converted(*convert_tensor(field, array))


def _list(field: List, array: Any) -> Converted:
    lengths, items = peel(array)
    inner = convert(field.of, items)
    faults: Faults = {}
    if inner.faults:
        ends = np.cumsum(lengths)
        for place, fault in sorted(inner.faults.items()):
            row = int(np.searchsorted(ends, place, side="right"))
            start = int(ends[row] - lengths[row])
            faults.setdefault(row, fault.inside(f"[{place - start}]"))
    try:
        buffers = [validity(present_mask(array)), offsets_of(lengths)]
    except OverflowError as exc:
        raise SchemaError(str(exc)) from None
    found = pa.Array.from_buffers(field.arrow_type, len(array), buffers, children=[inner.array])
    return Converted(found, faults)


def _struct(field: Struct, array: Any) -> Converted:
    present = present_mask(array)
    given = {array.type.field(at).name: member for at, member in enumerate(array.flatten())}
    children: list[Any] = []
    faults: Faults = {}
    for name, member in field.members.items():
        if name not in given:
            default = compile_default(name, member, compile_value(member))
            children.append(constant_array(member, default, len(array)))
            continue
        inner = convert(member, given[name])
        children.append(inner.array)
        for row, fault in inner.faults.items():
            if present is None or present[row]:
                faults.setdefault(row, fault.inside(f".{name}"))
    found = pa.Array.from_buffers(field.arrow_type, len(array), [validity(present)], children=children)
    return Converted(found, faults)


_CONVERTERS: tuple[tuple[Any, Callable[[Any, Any], Converted]], ...] = (
    (Bool, _bool),
    (Integer | Floating, _number),
    (String, _string),
    (Bytes, _binary),
    (Image, _image),
    (Timestamp, _timestamp),
    (Date, _date),
    (Decimal, _decimal),
    (Tensor, _tensor),
    (List, _list),
    (Struct, _struct),
)
