"""Ranges, choices and lengths over whole columns: which rows break them, and what to say; no conversion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parity.codec.rejection import ValueRejectedError, brief_json
from parity.codec.texts import tick_limits
from parity.codec.values import compile_value, float_bounds, has_image_signature, not_an_image
from parity.schema import Bytes, Field, Floating, Image, Integer, String, Timestamp

Array = np.ndarray[Any, Any]
_pc: Any = pc  # the stubs know these functions for expressions only
Faults = dict[int, ValueRejectedError]
"""The rows at fault, and why each is."""


def numeric_faults(field: Field, values: Array) -> Faults:
    """The rows of a numpy column (timestamps as int64 ticks) outside the field's range or choices."""
    if isinstance(field, Integer):
        return _integer_faults(field, values)
    if isinstance(field, Floating):
        return _float_faults(field, values)
    if isinstance(field, Timestamp):
        low, high = tick_limits(field.unit)
        bad = values < low
        if field.unit == "s":
            bad |= values > high
        return _told(bad, lambda row: _tick_fault(field, int(values[row])))
    return {}


def array_faults(field: Field, array: pa.Array[Any]) -> Faults:
    """The rows of a string or binary Arrow column that break the field's choices, length or signature."""
    bad: Any = None
    if isinstance(field, String):
        if field.choices is not None:
            known = pa.array(cast("Any", list(field.choices)), type=pa.string())
            bad = pc.invert(pc.is_in(array, value_set=known))
        if field.max_length is not None:
            too_long = pc.greater(_pc.utf8_length(array), pa.scalar(field.max_length, pa.int32()))
            bad = too_long if bad is None else pc.or_(bad, too_long)
    elif isinstance(field, Bytes) and field.max_length is not None:
        bad = pc.greater(_pc.binary_length(array), pa.scalar(field.max_length, pa.int32()))
    elif isinstance(field, Image):
        heads = pc.binary_slice(array, 0, 12).to_pylist()
        return {
            row: not_an_image(head)
            for row, head in enumerate(heads)
            if head is not None and not has_image_signature(head)
        }
    if bad is None:
        return {}
    mask = _pc.fill_null(pc.and_(bad, pc.is_valid(array)), False).to_numpy(zero_copy_only=False)
    if not mask.any():
        return {}
    decode = compile_value(field)
    return _told(mask, lambda row: _refusal(decode, array[row].as_py()))


def _refusal(decode: Callable[[Any], Any], value: Any) -> ValueRejectedError:
    """What the decoder of single values says of a value that is known to be wrong."""
    try:
        decode(value)
    except ValueRejectedError as exc:
        return exc
    return ValueRejectedError(f"{brief_json(value)} does not fit")


def _integer_faults(field: Integer, values: Array) -> Faults:
    info = np.iinfo(values.dtype)
    low, high = field.limits
    bad: Any = None
    if low > info.min or high < info.max:
        if low > high:
            bad = np.ones(values.shape, dtype=np.bool_)
        else:
            bad = (values < values.dtype.type(low)) | (values > values.dtype.type(high))
    if field.choices is not None:
        allowed = np.array([c for c in field.choices if info.min <= c <= info.max], dtype=values.dtype)
        other = ~np.isin(values, allowed)
        bad = other if bad is None else bad | other
    if bad is None:
        return {}
    decode = compile_value(field)
    return _told(bad, lambda row: _refusal(decode, int(values[row])))


def _float_faults(field: Floating, values: Array) -> Faults:
    low, high = float_bounds(field)
    if low is None and high is None:
        return {}
    with np.errstate(invalid="ignore"):  # a signalling NaN
        wide = values.astype(np.float64, copy=False)
    good = np.ones(values.shape, dtype=np.bool_)
    if low is not None:
        good &= wide >= low
    if high is not None:
        good &= wide <= high
    decode = compile_value(field)
    return _told(~good, lambda row: _refusal(decode, float(values[row])))


def _tick_fault(field: Timestamp, tick: int) -> ValueRejectedError:
    if tick == -(2**63):
        return ValueRejectedError(
            "the least int64 is NaT, which is not a value",
            field.describe(),
            "use null where the field is nullable",
        )
    return ValueRejectedError(f"tick {tick} is out of the range of unit {field.unit}", field.describe())


def _told(bad: Array, tell: Callable[[int], ValueRejectedError]) -> Faults:
    return {row: tell(row) for row in np.flatnonzero(bad).tolist()}
