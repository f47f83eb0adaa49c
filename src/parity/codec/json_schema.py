"""JSON Schema (2020-12, as OpenAPI 3.1 uses) of one row: what `parity.codec.rows` reads and writes.

The schema is for people and client generators. It cannot say everything (a Float32's nearest value, an
image's signature); `RowDecoder` decides.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from parity.codec.build import build_column
from parity.codec.jsonable import encode_column
from parity.codec.numbers import is_float
from parity.codec.rows import dumps, loads
from parity.codec.values import compile_default, compile_value
from parity.schema import (
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

_NON_FINITE = {"enum": ["NaN", "Infinity", "-Infinity"]}


def input_schema(schema: Schema) -> dict[str, Any]:
    """The JSON Schema of one input row: a field with a default may be left out, no other key may be there."""
    return _object(schema, reading=True)


def output_schema(schema: Schema) -> dict[str, Any]:
    """The JSON Schema of one row's answer: every field is there."""
    return _object(schema, reading=False)


def row_schema(schema: Schema) -> dict[str, Any]:
    """The JSON Schema of one input row; the same as `input_schema`."""
    return input_schema(schema)


def _object(schema: Schema, *, reading: bool) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: _field(name, field, reading=reading) for name, field in schema.items()},
        "required": [name for name, field in schema.items() if not (reading and field.has_default)],
        "additionalProperties": False,
    }


def _field(name: str, field: Field, *, reading: bool) -> dict[str, Any]:
    found = _required(field, reading=reading)
    if field.nullable:
        found = _or_null(found)
    if field.doc:
        found["description"] = field.doc
    if reading and field.has_default:
        found["default"] = _default(name, field)
    return found


def _default(name: str, field: Field) -> Any:
    """The default as JSON has it."""
    value = compile_default(name, field, compile_value(field))
    values, _ = encode_column(build_column(field, [value]), "string")
    return loads(dumps(values[0]))


def _or_null(found: dict[str, Any]) -> dict[str, Any]:
    if "enum" in found:
        return {**found, "type": [found["type"], "null"], "enum": [*found["enum"], None]}
    if isinstance(found.get("type"), str):
        return {**found, "type": [found["type"], "null"]}
    return {"anyOf": [found, {"type": "null"}]}


def _required(field: Field, *, reading: bool) -> dict[str, Any]:
    if isinstance(field, Bool):
        return {"type": "boolean"}
    if isinstance(field, Integer):
        return _integer(field)
    if isinstance(field, Floating):
        number = {"type": "number", "format": _float_format(field.numpy_dtype), **_bounds(field)}
        return _with_non_finite(number, reading or field.non_finite == "string")
    if isinstance(field, String):
        found: dict[str, Any] = {"type": "string"}
        if field.max_length is not None:
            found["maxLength"] = field.max_length
        if field.choices is not None:
            found["enum"] = list(field.choices)
        return found
    if isinstance(field, Bytes):
        return _base64()
    if isinstance(field, Image):
        if field.form == "array":
            return _nested(field.as_tensor, reading=reading)
        return _base64("a JPEG, PNG, GIF, WebP, BMP or TIFF file")
    if isinstance(field, Timestamp):
        return _timestamp(field)
    if isinstance(field, Date):
        return {"type": "string", "format": "date"}
    if isinstance(field, Decimal):
        return _decimal(field, reading=reading)
    if isinstance(field, Tensor):
        return _nested(field, reading=reading)
    if isinstance(field, List):
        return {"type": "array", "items": _field("item", field.of, reading=reading)}
    return _object(cast("Struct", field).members, reading=reading)


def _integer(field: Integer) -> dict[str, Any]:
    low, high = field.limits
    found: dict[str, Any] = {"type": "integer", "minimum": low, "maximum": high}
    if field.numpy_dtype.name in ("int32", "int64"):
        found["format"] = field.numpy_dtype.name
    if field.choices is not None:
        found["enum"] = list(field.choices)
    return found


def _float_format(dtype: np.dtype[Any]) -> str:
    return "double" if dtype == np.float64 else "float"


def _bounds(field: Floating) -> dict[str, Any]:
    found = {"minimum": field.ge, "maximum": field.le}
    return {key: bound for key, bound in found.items() if bound is not None}


def _with_non_finite(number: dict[str, Any], allowed: bool) -> dict[str, Any]:
    return {"anyOf": [number, dict(_NON_FINITE)]} if allowed else number


def _base64(what: str = "") -> dict[str, Any]:
    found = {"type": "string", "format": "byte", "contentEncoding": "base64"}
    return {**found, "title": what} if what else found


def _timestamp(field: Timestamp) -> dict[str, Any]:
    if field.tz is not None:
        return {"type": "string", "format": "date-time", "examples": ["2024-03-31T01:30:00Z"]}
    pattern = r"^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?$"
    return {"type": "string", "pattern": pattern, "examples": ["2024-03-31T01:30:00"]}


def _decimal(field: Decimal, *, reading: bool) -> dict[str, Any]:
    text = {
        "type": "string",
        "pattern": r"^[+-]?\d+(\.\d+)?([eE][+-]?\d+)?$",
        "title": f"at most {field.precision} digits, {field.scale} of them behind the point",
    }
    return {"anyOf": [text, {"type": "integer"}]} if reading else text


def _nested(field: Tensor, *, reading: bool) -> dict[str, Any]:
    dtype = field.numpy_dtype
    element: dict[str, Any]
    if dtype == np.bool_:
        element = {"type": "boolean"}
    elif is_float(dtype):
        number = {"type": "number", "format": _float_format(dtype)}
        element = _with_non_finite(number, reading or field.non_finite == "string")
    else:
        info = np.iinfo(dtype)
        element = {"type": "integer", "minimum": int(info.min), "maximum": int(info.max)}
    for size in reversed(field.shape):
        element = {"type": "array", "items": element}
        if size is not None:
            element["minItems"] = element["maxItems"] = size
    return element
