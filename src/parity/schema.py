"""Schemas: named fields in order, and the struct, a field that holds a schema.

The field types are defined in `parity.fields` and exported here too, so that a schema is written with one
import.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, cast

import pyarrow as pa

from parity.errors import SchemaError, did_you_mean, shown
from parity.fields import (
    BFLOAT16,
    DTYPE_NAMES,
    MISSING,
    BFloat16,
    Bool,
    Bytes,
    Date,
    Decimal,
    Field,
    Float16,
    Float32,
    Float64,
    Floating,
    Image,
    Int8,
    Int16,
    Int32,
    Int64,
    Integer,
    List,
    NonFinite,
    String,
    Tensor,
    Timestamp,
    TimeUnit,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    arrow_scalar_type,
    dtype_of,
)

__all__ = [
    "BFLOAT16",
    "DTYPE_NAMES",
    "MISSING",
    "BFloat16",
    "Bool",
    "Bytes",
    "Date",
    "Decimal",
    "Field",
    "Float16",
    "Float32",
    "Float64",
    "Floating",
    "Image",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "Integer",
    "List",
    "NonFinite",
    "Schema",
    "String",
    "Struct",
    "Tensor",
    "TimeUnit",
    "Timestamp",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "arrow_scalar_type",
    "dtype_of",
]


class Struct(Field):
    """A record with named members, each a field: `Struct(lat=Float64(), lon=Float64(), nullable=True)`."""

    members: Schema

    def __init__(
        self, *, nullable: bool = False, default: Any = MISSING, doc: str = "", **members: Field
    ) -> None:
        super().__init__(nullable=nullable, default=default, doc=doc)
        if not members:
            raise SchemaError("Struct: needs at least one member; Parquet cannot hold a record of nothing")
        object.__setattr__(self, "members", Schema(**members))

    @property
    def arrow_type(self) -> pa.DataType:
        return pa.struct([_member(name, field) for name, field in self.members.items()])

    def describe(self) -> str:
        inner = ", ".join(f"{name}: {field.describe()}" for name, field in self.members.items())
        return f"Struct({inner}){' or null' if self.nullable else ''}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Struct) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash((self.nullable, self.doc, self.members))

    def __repr__(self) -> str:
        return f"Struct({', '.join(f'{n}={f!r}' for n, f in self.members.items())})"

    def _identity(self) -> tuple[Any, ...]:
        return (self.nullable, self.default, self.doc, self.members)


class Schema(Mapping[str, Field]):
    """An ordered mapping of names to fields.

    Raises:
        SchemaError: a value is not a field, or a name is empty, starts with "_" or is not an identifier.
    """

    def __init__(self, **fields: Field) -> None:
        for name, field in fields.items():
            if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
                raise SchemaError(
                    f"field name {shown(name)} must start with a letter and hold only letters, digits "
                    "and '_'; names with a leading '_' are kept for parity's own columns"
                )
            if not isinstance(field, Field):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
                item = cast("object", field)
                raise SchemaError(
                    f"field {name!r}: {shown(field)} is not a field type{_field_hint(name, item)}"
                )
        self._fields = dict(fields)
        self._arrow: pa.Schema | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The field names in order."""
        return tuple(self._fields)

    def __getitem__(self, name: str) -> Field:
        """The field called `name`; raises SchemaError with near names when there is none."""
        try:
            return self._fields[name]
        except KeyError:
            raise SchemaError(f"no field {shown(name)}; {did_you_mean(str(name), self._fields)}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._fields

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Schema) and list(self._fields.items()) == list(other._fields.items())
        )

    def __hash__(self) -> int:
        return hash(tuple((name, type(field)) for name, field in self._fields.items()))

    def __repr__(self) -> str:
        return f"Schema({', '.join(f'{name}={field!r}' for name, field in self._fields.items())})"

    def to_arrow(self) -> pa.Schema:
        """The canonical Arrow schema, with what Arrow does not know in the fields' metadata."""
        if self._arrow is None:
            self._arrow = pa.schema([field.to_arrow(name) for name, field in self._fields.items()])
        return self._arrow

    def digest_text(self) -> str:
        """A stable text of everything that decides how values are read, for digests."""
        return json.dumps({name: _plain(field) for name, field in self._fields.items()}, sort_keys=False)


_FIELDS_OF_PYTHON = {
    "int": "Int64",
    "float": "Float32",
    "str": "String",
    "bool": "Bool",
    "bytes": "Bytes",
    "datetime": "Timestamp",
    "date": "Date",
    "list": "List",
    "dict": "Struct",
}


def _field_hint(name: str, item: object) -> str:
    """What to write instead of a class, where it is a field type or has one."""
    if not isinstance(item, type):
        return ""
    known = item.__name__ if issubclass(item, Field) else _FIELDS_OF_PYTHON.get(item.__name__, "")
    if known in ("List", "Struct"):
        return f"; use parity.{known}"
    return f"; write {name}={known}()" if known else ""


def _member(name: str, field: Field) -> pa.Field[Any]:
    """A struct's member in Arrow; fixed-size lists are nullable there, whatever the field says.

    pyarrow writes a null struct that has a non-nullable fixed-size list to Parquet, then fails to read it.
    """
    return field.to_arrow(name, nullable=True if pa.types.is_fixed_size_list(field.arrow_type) else None)


def _plain(field: Field) -> Any:
    if isinstance(field, Struct):
        members = {name: _plain(member) for name, member in field.members.items()}
        return {"type": "Struct", "nullable": field.nullable, "members": members}
    found: dict[str, Any] = {"type": field.type_name}
    for item in fields(field):
        value = getattr(field, item.name)
        if item.name == "doc":
            continue
        found[item.name] = _plain(value) if isinstance(value, Field) else repr(value)
    return found
