"""Untyped values, from JSON or Python alike, into canonical Python values: one compiled function per field.

Canonical values: bool, int, float (already rounded to the field's dtype), str, bytes, int ticks for
timestamps (UTC where zoned), int days for dates, decimal.Decimal with exactly `scale` digits, a read-only
numpy array for tensors, list, dict, and None for null. `parity.codec.build` makes columns of them.
"""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from parity.codec import texts
from parity.codec.numbers import finite_limit, float_of_int, nearest, plain_number
from parity.codec.rejection import ValueRejectedError, brief, wrong_type
from parity.codec.tensors import tensor_decoder
from parity.errors import SchemaError, did_you_mean, shown
from parity.schema import (
    MISSING,
    Bool,
    Bytes,
    Date,
    Decimal,
    Field,
    Floating,
    Image,
    Integer,
    List,
    Schema,
    String,
    Struct,
    Tensor,
    Timestamp,
)

Decode = Callable[[Any], Any]
"""Takes an untyped value, returns the canonical one; raises ValueRejectedError."""

_BEYOND_64_BITS: Final = float(2**63)
"""JSON integers of more than 64 bits are read as floats."""

MISSING_KEY: Final = "the key is missing"

NON_FINITE: Final = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
"""The only strings that a float field reads."""

_NUMBER_WANTED = "send a number; of strings, only 'NaN', 'Infinity' and '-Infinity' are read"


def compile_value(field: Field) -> Decode:
    """The function that reads values of `field`, null included where the field allows it.

    Raises:
        SchemaError: the default of a member does not fit it.
    """
    inner = _compile_required(field)
    if not field.nullable:
        return inner

    def decode(value: Any) -> Any:
        return None if value is None else inner(value)

    return decode


def compile_default(name: str, field: Field, decode: Decode) -> Any:
    """The field's default as a canonical value, or MISSING.

    Raises:
        SchemaError: the default does not fit the field.
    """
    if field.default is MISSING:
        return MISSING
    try:
        return decode(field.default)
    except ValueRejectedError as exc:
        raise SchemaError(f"the default of {exc.message(name)}") from None


def missing_key(field: Field) -> ValueRejectedError:
    """The refusal of a row that lacks a key."""
    null = " (null is allowed, and is not the same as a missing key)" if field.nullable else ""
    return ValueRejectedError(MISSING_KEY, field.describe(), f"send it, or declare a default{null}")


def _compile_required(field: Field) -> Decode:
    if isinstance(field, Bool):
        return _bool(field)
    if isinstance(field, Integer):
        return _integer(field)
    if isinstance(field, Floating):
        return _floating(field)
    if isinstance(field, String):
        return _string(field)
    if isinstance(field, Bytes):
        return _bytes(field)
    if isinstance(field, Image):
        return _encoded_image(field) if field.form == "encoded" else tensor_decoder(field.as_tensor).decode
    if isinstance(field, Timestamp):
        return _timestamp(field)
    if isinstance(field, Date):
        return _date(field)
    if isinstance(field, Decimal):
        return _decimal(field)
    if isinstance(field, Tensor):
        return tensor_decoder(field).decode
    if isinstance(field, List):
        return _list(field)
    if isinstance(field, Struct):
        return compile_struct(field, field.members)
    raise SchemaError(f"{shown(field)}: no codec reads this field type")


def _bool(field: Bool) -> Decode:
    def decode(value: Any) -> bool:
        if value is True or value is False:
            return value
        if isinstance(value, np.bool_):
            return bool(value)
        raise wrong_type(field, value, "send true or false" if value is not None else "")

    return decode


def _integer(field: Integer) -> Decode:
    low, high = field.limits
    choices = None if field.choices is None else frozenset(field.choices)

    def decode(value: Any) -> int:
        if type(value) is not int:
            if isinstance(value, bool) or not isinstance(value, int | np.integer):
                if isinstance(value, float) and abs(value) >= _BEYOND_64_BITS and math.isfinite(value):
                    raise ValueRejectedError(
                        f"the integer {value:.17g} is out of range {low} to {high}", field.describe()
                    )
                raise wrong_type(
                    field, value, "" if value is None else "send an integer, without point or quotes"
                )
            value = int(value)
        if not low <= value <= high:
            raise ValueRejectedError(f"{brief(value)} is out of range {low} to {high}", field.describe())
        if choices is not None and value not in choices:
            raise ValueRejectedError(
                f"{value} is not one of the choices", f"one of {shown(list(field.choices or ()), 200)}"
            )
        return value

    return decode


def _floating(field: Floating) -> Decode:
    dtype = field.numpy_dtype
    limit = finite_limit(dtype)
    double = dtype == np.float64
    single = dtype == np.float32
    low, high = float_bounds(field)
    bounded = low is not None or high is not None

    def decode(value: Any) -> float:
        if type(value) is not float:
            number = NON_FINITE.get(value) if type(value) is str else plain_number(value)
            if number is None:
                raise wrong_type(field, value, "" if value is None else _NUMBER_WANTED)
            value = _float_from_int(number, field, double) if type(number) is int else number
        if not double:
            if value >= limit or value <= -limit:
                if value - value == 0:  # finite, so it is too great; an infinity is a value
                    raise ValueRejectedError(f"{value} is beyond the range of {dtype.name}", field.describe())
            else:
                value = float(np.float32(value)) if single else float(nearest(np.array(value), dtype))
        if bounded and not ((low is None or value >= low) and (high is None or value <= high)):
            raise ValueRejectedError(f"{value} is out of range", field.describe())
        return value

    return decode


def float_bounds(field: Floating) -> tuple[float | None, float | None]:
    """A float field's range, rounded to its dtype as its values are: a Float32 of at most 0.1 takes 0.1."""
    dtype = field.numpy_dtype

    def rounded(bound: Any) -> float | None:
        return None if bound is None else float(nearest(np.array(float(bound)), dtype))

    return rounded(field.ge), rounded(field.le)


def _float_from_int(value: int, field: Floating, double: bool) -> float:
    try:
        return float(value) if double else float_of_int(value)
    except OverflowError:
        raise ValueRejectedError("the integer is beyond the range of a float", field.describe()) from None


def _string(field: String) -> Decode:
    choices = None if field.choices is None else frozenset(field.choices)
    longest = field.max_length

    def decode(value: Any) -> str:
        if not isinstance(value, str):
            raise wrong_type(field, value)
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise ValueRejectedError(
                    f"{brief(value)} holds a lone surrogate, which is no Unicode text", field.describe()
                ) from None
        if longest is not None and len(value) > longest:
            raise ValueRejectedError(f"{brief(value)} has {len(value)} characters", field.describe())
        if choices is not None and value not in choices:
            raise ValueRejectedError(
                f"{brief(value)} is not one of the choices",
                field.describe(),
                did_you_mean(value[:200], choices),
            )
        return str(value)

    return decode


def _bytes(field: Bytes) -> Decode:
    longest = field.max_length

    def decode(value: Any) -> bytes:
        data = _data(field, value)
        if longest is not None and len(data) > longest:
            raise ValueRejectedError(f"{len(data)} bytes are more than {longest}", field.describe())
        return data

    return decode


def _encoded_image(field: Image) -> Decode:
    def decode(value: Any) -> bytes:
        data = _data(field, value)
        if not has_image_signature(data[:12]):
            raise not_an_image(data[:12])
        return data

    return decode


def _data(field: Field, value: Any) -> bytes:
    if isinstance(value, str):
        try:
            return texts.bytes_from_base64(value)
        except ValueError as exc:
            raise ValueRejectedError(
                f"{brief(value)} {exc}", f"{field.describe()}, as base64 in text"
            ) from None
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    if isinstance(value, memoryview):
        return value.tobytes()
    raise wrong_type(field, value, "" if value is None else "send base64 text in JSON, bytes in Python")


def has_image_signature(head: bytes) -> bool:
    """Whether the first 12 bytes are those of a JPEG, PNG, GIF, WebP, BMP or TIFF file."""
    return head.startswith(
        (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF87a", b"GIF89a", b"BM", b"II*\x00", b"MM\x00*")
    ) or (head[:4] == b"RIFF" and head[8:12] == b"WEBP")


def not_an_image(head: bytes) -> ValueRejectedError:
    """The refusal of bytes without an image file's signature."""
    return ValueRejectedError(
        f"bytes that start with {brief(head)} are no image file",
        "the bytes of a JPEG, PNG, GIF, WebP, BMP or TIFF file",
        "declare Image(form='array') for pixels, Bytes for anything else",
    )


def _timestamp(field: Timestamp) -> Decode:
    unit, zoned = field.unit, field.tz is not None

    def decode(value: Any) -> int:
        try:
            if isinstance(value, str):
                return texts.ticks_from_text(value, unit, zoned)
            if isinstance(value, datetime.datetime):
                return texts.ticks_from_datetime(value, unit, zoned)
            if isinstance(value, np.datetime64):
                return texts.ticks_from_datetime64(value, unit, zoned)
        except ValueError as exc:
            raise ValueRejectedError(f"{brief(value)} {exc}", field.describe()) from None
        raise wrong_type(
            field, value, "" if value is None else "send ISO 8601 text in JSON, a datetime in Python"
        )

    return decode


def _date(field: Date) -> Decode:
    def decode(value: Any) -> int:
        try:
            if isinstance(value, str):
                return texts.days_from_text(value)
            return texts.days_from_date(value)
        except ValueError as exc:
            raise ValueRejectedError(f"{brief(value)} {exc}", field.describe()) from None
        except TypeError:
            raise wrong_type(field, value, "" if value is None else "send 'YYYY-MM-DD'") from None

    return decode


def _decimal(field: Decimal) -> Decode:
    precision, scale = field.precision, field.scale

    def decode(value: Any) -> decimal.Decimal:
        try:
            if isinstance(value, str):
                return texts.decimal_from_text(value, precision, scale)
            if isinstance(value, decimal.Decimal):
                return texts.exact_decimal(value, precision, scale)
            if isinstance(value, int | np.integer) and not isinstance(value, bool):
                return texts.exact_decimal(int(value), precision, scale)
        except ValueError as exc:
            raise ValueRejectedError(f"{brief(value)} {exc}", field.describe()) from None
        remedy = "a float is not exact; send the digits as a string, such as '12.50'"
        raise wrong_type(field, value, remedy if isinstance(value, float) else "")

    return decode


def _list(field: List) -> Decode:
    decode_item = compile_value(field.of)

    def decode(value: Any) -> list[Any]:
        if not isinstance(value, list | tuple):
            if not isinstance(value, np.ndarray) or value.ndim != 1:
                raise wrong_type(field, value)
            value = list(value)
        position = 0
        try:
            found: list[Any] = []
            for position, item in enumerate(value):  # noqa: B007 - the error says where it was
                found.append(decode_item(item))
        except ValueRejectedError as exc:
            raise exc.inside(f"[{position}]") from None
        return found

    return decode


def compile_struct(field: Struct, members: Schema) -> Decode:
    """The function that reads objects with the given members into dicts in the members' order."""
    decoders = [(name, member, compile_value(member)) for name, member in members.items()]
    defaults = {name: compile_default(name, member, decode) for name, member, decode in decoders}
    known = frozenset(members)

    def decode(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise wrong_type(field, value)
        found: dict[str, Any] = {}
        name = ""
        try:
            for name, member, decode_member in decoders:
                if name in value:
                    found[name] = decode_member(value[name])
                elif (default := defaults[name]) is not MISSING:
                    found[name] = default
                else:
                    raise missing_key(member)
        except ValueRejectedError as exc:
            raise exc.inside(f".{name}") from None
        for key in value:
            if key not in known:
                raise ValueRejectedError(f"unknown key {brief(key)}", "", did_you_mean(str(key)[:200], known))
        return found

    return decode
