"""Arrow types in the types that Spark SQL has, by one rule; values are widened or relabelled, never rounded.

uint8, uint16, uint32    int16, int32, int64
uint64                   decimal(20, 0)
float16                  float32
fixed-size and large lists, large text and bytes, views, dictionaries    their plain form
timestamps               microseconds; a zoned one in UTC, for Spark keeps instants and no zone
all else that Spark has  as it is

Durations, times of day, decimals of over 38 digits and extension types have no counterpart.
"""

from __future__ import annotations

from typing import Any, Final, cast

import pyarrow as pa

from parity.codec.layouts import is_list_like
from parity.errors import SchemaError

__all__ = ["spark_schema", "spark_table", "spark_type"]

_WIDER: Final[dict[pa.DataType, pa.DataType]] = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
}
_SAME: Final = frozenset(
    [
        pa.bool_(),
        pa.int8(),
        pa.int16(),
        pa.int32(),
        pa.int64(),
        pa.float32(),
        pa.float64(),
        pa.string(),
        pa.binary(),
        pa.date32(),
    ]
)
_DECIMAL_DIGITS: Final = 38


def spark_type(kind: Any) -> pa.DataType:
    """The Arrow form of the Spark type that holds every value of an Arrow type.

    Raises:
        SchemaError: there is none.
    """
    if kind in _SAME:
        return kind
    if kind in _WIDER:
        return _WIDER[kind]
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_dictionary(kind):
        return spark_type(kind.value_type)
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", tz=cast("Any", None if kind.tz is None else "UTC"))
    if pa.types.is_decimal(kind) and kind.precision <= _DECIMAL_DIGITS:
        return pa.decimal128(kind.precision, kind.scale)
    if is_list_like(kind):
        item = cast("Any", kind).value_field
        return pa.list_(pa.field("element", spark_type(item.type), nullable=item.nullable))
    if pa.types.is_struct(kind):
        members = [kind.field(at) for at in range(kind.num_fields)]
        return pa.struct([pa.field(m.name, spark_type(m.type), nullable=m.nullable) for m in members])
    raise SchemaError(f"Spark has no type for Arrow's {kind}")


def spark_schema(schema: pa.Schema) -> pa.Schema:
    """A schema in Spark's types, its fields' names and metadata kept.

    Raises:
        SchemaError: a column has no counterpart; the message names it.
    """
    fields: list[pa.Field[Any]] = []
    for field in schema:
        try:
            fields.append(field.with_type(spark_type(field.type)))
        except SchemaError as exc:
            raise SchemaError(f"column {field.name!r}: {exc}; leave it out or declare another type") from exc
    return pa.schema(fields)


def spark_table(table: pa.Table, schema: pa.Schema | None = None) -> pa.Table:
    """The table's columns in Spark's types: those of `schema`, or what `spark_schema` says.

    Raises:
        SchemaError: a column has no counterpart, or a value that Spark cannot hold exactly.
    """
    schema = spark_schema(table.schema) if schema is None else schema
    columns: list[Any] = []
    for field in schema:
        column = table.column(field.name)
        try:
            columns.append(column if column.type == field.type else column.cast(field.type))
        except pa.ArrowException as exc:
            text = " ".join(str(exc).split())
            raise SchemaError(f"column {field.name!r}: {column.type} as {field.type}: {text}") from exc
    return pa.Table.from_arrays(columns, schema=schema)
