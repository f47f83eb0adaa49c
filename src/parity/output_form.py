"""Which Arrow types scored columns are written as: for tensors, and for readers that lack some types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

import pyarrow as pa
import pyarrow.compute as pc

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
    if _has_nanoseconds(column.type):
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        column = cast("Any", pa).chunked_array([_floored(chunk) for chunk in chunks], column.type)
    return column.cast(kind, safe=False)


def _has_nanoseconds(kind: Any) -> bool:
    if _is_list(kind) or pa.types.is_map(kind) or pa.types.is_struct(kind):
        return any(_has_nanoseconds(kind.field(at).type) for at in range(kind.num_fields))
    return pa.types.is_timestamp(kind) and kind.unit == "ns"


def _is_list(kind: Any) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _floored(array: Any) -> Any:
    """The same values, times in nanoseconds brought down to whole microseconds, which a cast then keeps."""
    kind = array.type
    if not _has_nanoseconds(kind):
        return array
    if pa.types.is_timestamp(kind):
        times = array.cast(pa.int64())
        whole = pc.multiply(pc.divide(times, 1000), 1000)  # towards 1970
        least = pa.scalar(-(2**63) + 1000, pa.int64())
        down = pc.and_(pc.greater(whole, times), pc.greater(times, least))  # no lower one fits
        below = pc.if_else(down, 1000, 0)
        return pc.subtract(whole, below).cast(kind)
    if pa.types.is_struct(kind):
        fields = [kind.field(at) for at in range(kind.num_fields)]
        inner = [_floored(array.field(at)) for at in range(kind.num_fields)]
        return pa.StructArray.from_arrays(inner, fields=fields, mask=array.is_null())
    if pa.types.is_map(kind):
        made: Any = pa.StructArray.from_arrays(
            [_floored(array.keys), _floored(array.items)], fields=[kind.key_field, kind.item_field]
        )
    else:
        made = _floored(array.values)
    buffers = array.buffers()[: 1 if pa.types.is_fixed_size_list(kind) else 2]
    return cast("Any", pa.Array).from_buffers(kind, len(array), buffers, offset=array.offset, children=[made])


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
    if pa.types.is_map(kind):
        key, item = spark_type(kind.key_type), spark_type(kind.item_type)
        if key is None or item is None:
            return None
        return cast("Any", pa).map_(
            kind.key_field.with_type(key), kind.item_field.with_type(item), keys_sorted=kind.keys_sorted
        )
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
