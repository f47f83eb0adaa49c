"""Arrow tables in the form of other libraries, exact to the bit; pandas and Polars are imported on demand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from parity.codec.inferred import field_of
from parity.codec.layouts import one_chunk
from parity.column import Column, python_values
from parity.errors import SchemaError
from parity.schema import Date, Decimal, Field, Floating, Image, String, Tensor, Timestamp

Array = np.ndarray[Any, Any]


def to_pandas(table: pa.Table, index: Any = None) -> Any:
    """A pandas DataFrame; see `parity.codec.frames.encode` for its dtypes."""
    import pandas as pd

    columns = {
        name: _pandas_column(pd, field_of(given), one_chunk(column))
        for name, given, column in zip(table.column_names, table.schema, table.columns, strict=True)
    }
    series = {name: pd.Series(values, index=index) for name, values in columns.items()}
    if index is None:
        index = pd.RangeIndex(table.num_rows)
    return pd.DataFrame(series, index=index, columns=pd.Index(list(columns), dtype=object))


def to_polars(table: pa.Table) -> Any:
    """A Polars DataFrame; zones that are an offset, which Polars does not know, become UTC.

    Raises:
        SchemaError: a decimal has more digits than Polars holds.
    """
    import polars as pl

    for given in table.schema:
        if _has_wide_decimal(given.type):
            raise SchemaError(
                f"column {given.name!r} is of type {given.type}, and Polars holds decimals of at most 38 "
                "digits; ask for pandas or Arrow"
            )
    fields = [given.with_type(_polars_type(given.type)) for given in table.schema]
    return pl.from_arrow(table.cast(pa.schema(fields)))


def to_arrays(table: pa.Table) -> dict[str, Any]:
    """A dict of numpy arrays: masked where there are nulls, of objects for what numpy has no dtype for.

    Zoned timestamps are object arrays of aware datetimes, texts where a datetime cannot hold them.
    """
    return {
        name: _numpy_column(field_of(given), one_chunk(column))
        for name, given, column in zip(table.column_names, table.schema, table.columns, strict=True)
    }


def to_rows(table: pa.Table) -> list[dict[str, Any]]:
    """A list of dicts of Python values and numpy arrays, as `Column.to_pylist` gives them.

    Zoned timestamps that a datetime cannot hold are texts.
    """
    columns = [
        _python(field_of(given), one_chunk(column))
        for given, column in zip(table.schema, table.columns, strict=True)
    ]
    if not columns:
        return [{} for _ in range(table.num_rows)]
    return [dict(zip(table.column_names, values, strict=True)) for values in zip(*columns, strict=True)]


def _python(field: Field | None, array: Any) -> list[Any]:
    """The rows as Python values that `parity.codec.rows` reads back."""
    return array.to_pylist() if field is None else python_values(field, array, zoned_as_text=True)


def _objects(values: list[Any]) -> Array:
    found: Array = np.empty(len(values), dtype=object)
    # One by one: assigning the whole list would spread arrays of one shape over axes.
    for row, value in enumerate(values):
        found[row] = value
    return found


def _pandas_column(pd: Any, field: Field | None, array: Any) -> Any:
    if field is None or isinstance(field, Tensor | Image):
        return _objects(_python(field, array))
    dtype = field.numpy_dtype
    if isinstance(field, String):
        return pd.StringDtype("pyarrow", na_value=pd.NA).__from_arrow__(pa.chunked_array([array]))
    if isinstance(field, Timestamp):
        return array.to_pandas()
    if isinstance(field, Date | Decimal) or (isinstance(field, Floating) and field.nullable):
        return pd.arrays.ArrowExtensionArray(pa.chunked_array([array]))
    if dtype is None:
        return _objects(_python(field, array))
    if not field.nullable:
        return Column(field, arrow=array).numpy().astype(_pandas_float(dtype))
    name = dtype.name if dtype.name == "bool" else dtype.name.replace("int", "Int").replace("uInt", "UInt")
    return pd.api.types.pandas_dtype("boolean" if name == "bool" else name).__from_arrow__(array)


def _pandas_float(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype itself; float32 for bfloat16, which pandas does not know."""
    return np.dtype(np.float32) if dtype.name == "bfloat16" else dtype


def _polars_type(kind: Any) -> Any:
    """The type with zones such as "+05:30" replaced by UTC, which moves no instant."""
    if pa.types.is_timestamp(kind) and (kind.tz or "").startswith(("+", "-")):
        return pa.timestamp(kind.unit, "UTC")
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(_polars_type(kind.value_type)), kind.list_size)
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_polars_type(kind.value_type)))
    if pa.types.is_struct(kind):
        members = [kind.field(at) for at in range(kind.num_fields)]
        return pa.struct([member.with_type(_polars_type(member.type)) for member in members])
    return kind


def _has_wide_decimal(kind: Any) -> bool:
    if pa.types.is_decimal256(kind):
        return True
    return any(_has_wide_decimal(kind.field(at).type) for at in range(kind.num_fields))


def _numpy_column(field: Field | None, array: Any) -> Any:
    zoned = isinstance(field, Timestamp) and field.tz is not None
    if field is None or zoned or field.numpy_dtype is None:
        return _objects(_python(field, array))
    if array.null_count == 0:
        if field.row_shape is None:
            return _objects(_python(field, array))
        return Column(field, arrow=array).numpy()
    if isinstance(field, Tensor | Image):
        return _objects(_python(field, array))
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    data = np.zeros(len(array), dtype=field.numpy_dtype)
    data[valid] = Column(field, arrow=array.filter(array.is_valid())).numpy()
    return np.ma.MaskedArray(data, mask=~valid)
