"""Fields told from an Arrow schema: by parity's own metadata where it is there, by the types where not."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from parity.codec.layouts import is_list_like
from parity.errors import SchemaError
from parity.schema import (
    BFloat16,
    Bool,
    Bytes,
    Date,
    Decimal,
    Field,
    Float16,
    Float32,
    Float64,
    Image,
    Int8,
    Int16,
    Int32,
    Int64,
    List,
    String,
    Struct,
    Tensor,
    Timestamp,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
)

_SIMPLE: dict[pa.DataType, type[Field]] = {
    pa.bool_(): Bool,
    pa.int8(): Int8,
    pa.int16(): Int16,
    pa.int32(): Int32,
    pa.int64(): Int64,
    pa.uint8(): UInt8,
    pa.uint16(): UInt16,
    pa.uint32(): UInt32,
    pa.uint64(): UInt64,
    pa.float16(): Float16,
    pa.float32(): Float32,
    pa.float64(): Float64,
    pa.string(): String,
    pa.binary(): Bytes,
    pa.date32(): Date,
}


def field_of(given: pa.Field[Any]) -> Field | None:
    """The field whose canonical Arrow type is that of `given`; None when no field type has it."""
    told = {key.decode(): value.decode() for key, value in (given.metadata or {}).items()}
    for found in (_from_metadata(given, told), _from_type(given)):
        if found is not None and found.arrow_type == given.type:
            return found
    return None


def _from_metadata(given: pa.Field[Any], told: dict[str, str]) -> Field | None:
    name = told.get("parity.type")
    try:
        if name == "Tensor":
            return Tensor(told["parity.dtype"], json.loads(told["parity.shape"]), nullable=given.nullable)
        if name == "Image" and told.get("parity.form") == "array":
            size = given.type.field(1).type.list_size
            return Image(form="array", nullable=given.nullable) if size == 3 else None
    except (KeyError, ValueError, TypeError, AttributeError, SchemaError):
        return None  # somebody else's metadata: the type is all there is to go by
    if name == "BFloat16":
        return BFloat16(nullable=given.nullable)
    return Image(nullable=given.nullable) if name == "Image" else None


def _from_type(given: pa.Field[Any]) -> Field | None:
    kind: Any = given.type
    nullable = given.nullable
    simple = _SIMPLE.get(kind)
    if simple is not None:
        return simple(nullable=nullable)
    if pa.types.is_timestamp(kind):
        try:
            return Timestamp(unit=kind.unit, tz=kind.tz, nullable=nullable)
        except (SchemaError, TypeError):
            return None
    if pa.types.is_decimal(kind):
        fits = 0 <= kind.scale <= kind.precision
        return Decimal(precision=kind.precision, scale=kind.scale, nullable=nullable) if fits else None
    if pa.types.is_list(kind) or is_list_like(kind):
        item = field_of(kind.value_field)
        return None if item is None else List(item, nullable=nullable)
    if pa.types.is_struct(kind):
        members = {kind.field(at).name: field_of(kind.field(at)) for at in range(kind.num_fields)}
        try:
            return Struct(nullable=nullable, **members)  # type: ignore[arg-type]
        except (SchemaError, TypeError):
            return None
    return None
