"""Which Arrow types scored columns are written as: for tensors, and for readers that lack some types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

import pyarrow as pa

from parity.errors import ConfigError, DatasetError, shown
from parity.fields import Field, Tensor


@dataclass(frozen=True)
class OutputForm:
    """How columns are written.

    Attributes:
        tensors: "list" writes tensors of one shape as flat fixed-size lists with the shape in the field's
            metadata, "arrow" as the extension type arrow.fixed_shape_tensor, which fewer readers know.
        spark: write types that Spark reads: float16 as float32, nanoseconds as microseconds (rounded down),
            views as plain text and bytes, decimal256 as decimal128; other types that Spark lacks are refused.

    Raises:
        ConfigError: `tensors` is neither.
    """

    tensors: Literal["list", "arrow"] = "list"
    spark: bool = False

    def __post_init__(self) -> None:
        if self.tensors not in ("list", "arrow"):
            raise ConfigError(f"tensor type {shown(self.tensors)} is neither 'list' nor 'arrow'")
        if self.spark and self.tensors == "arrow":
            raise ConfigError("Spark does not know arrow.fixed_shape_tensor; write tensors as lists")

    def passed(self, field: pa.Field[Any]) -> pa.Field[Any]:
        """A pass-through column's field.

        Raises:
            DatasetError: Spark lacks its type.
        """
        if not self.spark:
            return field
        kind = spark_type(field.type)
        if kind is None:
            raise DatasetError(
                f"column {field.name!r} is {field.type}, which Spark cannot read; cast it first, leave it "
                "out of --columns, or write without --spark-compatible"
            )
        return field.with_type(kind)

    def output(self, name: str, field: Field) -> pa.Field[Any]:
        """An output column's field."""
        found = field.to_arrow(name, nullable=True)
        if self.tensors == "arrow" and isinstance(field, Tensor) and pa.types.is_fixed_size_list(found.type):
            made = cast("Any", pa).fixed_shape_tensor(
                found.type.value_type, [int(n or 0) for n in field.shape]
            )
            return found.with_type(made)
        return self.passed(found)


def formed(column: Any, kind: pa.DataType) -> Any:
    """A column as the type that a form gave its field; the column itself where it has that type."""
    if column.type == kind:
        return column
    if isinstance(kind, pa.BaseExtensionType):
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        made = [pa.ExtensionArray.from_storage(kind, chunk.cast(kind.storage_type)) for chunk in chunks]
        return cast("Any", pa).chunked_array(made, kind)
    return column.cast(kind, safe=False)


def spark_type(kind: Any) -> pa.DataType | None:
    """The type that Spark reads in place of `kind`; None where there is none."""
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_decimal256(kind):
        return pa.decimal128(kind.precision, kind.scale) if kind.precision <= 38 else None
    if pa.types.is_time(kind) or isinstance(kind, pa.BaseExtensionType):
        return None
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        inner = spark_type(kind.value_type)
        if inner is None or inner == kind.value_type:
            return None if inner is None else kind
        value = kind.value_field.with_type(inner)
        if pa.types.is_fixed_size_list(kind):
            return pa.list_(value, kind.list_size)
        return pa.list_(value) if pa.types.is_list(kind) else pa.large_list(value)
    if pa.types.is_struct(kind):
        fields = [kind.field(at) for at in range(kind.num_fields)]
        made: list[pa.Field[Any]] = []
        for field in fields:
            member = spark_type(field.type)
            if member is None:
                return None
            made.append(field.with_type(member))
        return pa.struct(made)
    return kind
