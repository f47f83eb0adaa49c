"""One column of whatever kind: numpy arrays, pandas and Polars series, Arrow arrays, lists of Python values.

Typed columns are held to the typed rule (nothing is rounded); lists and object columns are read value by
value.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pyarrow as pa

from parity.codec.build import primitive
from parity.codec.constraints import Faults
from parity.codec.convert import convert
from parity.codec.foreign import as_numpy, library_of
from parity.codec.kinds import kind_problems
from parity.codec.layouts import one_chunk
from parity.codec.numbers import exact_cast, kind_problem
from parity.codec.rejection import ValueRejectedError, brief, wrong_type
from parity.codec.tensors import TensorDecoder
from parity.codec.values import Decode, compile_value
from parity.column import Column
from parity.errors import SchemaError
from parity.schema import BFLOAT16, Field, Image, Tensor

Array = np.ndarray[Any, Any]
Read = tuple[Column | list[Any], Faults]
"""A column, or canonical values to make one of, and the rows that do not fit (which hold anything)."""


def read_column(name: str, field: Field, value: Any) -> Read:
    """The values of one column.

    Raises:
        SchemaError: it is no column, or cannot be of the field's kind at all.
    """
    if isinstance(value, Column):
        value = value.arrow
    if isinstance(value, pa.Array | pa.ChunkedArray):
        return _typed(name, field, value)
    library = library_of(value)
    if library == "pandas":
        return _pandas(name, field, value)
    if library == "polars":
        if str(value.dtype) == "Object":
            return read_values(field, value.to_list())
        return _typed(name, field, value.to_arrow())
    values = as_numpy(value)
    if values is not None:
        mask = np.ma.getmaskarray(value) if isinstance(value, np.ma.MaskedArray) else None
        return _numpy(name, field, np.asarray(values), cast("Any", mask))
    if isinstance(value, list | tuple):
        return read_values(field, cast("Any", value))
    raise SchemaError(
        f"column {name!r} is {brief(value)} of type {type(value).__name__}; expected an array or a list with "
        "one value for each row (a single row goes in a list: [row])"
    )


def column_length(value: Any) -> int | None:
    """The number of rows of a column; None when it is a single value."""
    if isinstance(value, str | bytes | dict):
        return None
    if getattr(value, "ndim", 1) == 0:
        return None
    try:
        return len(value)
    except TypeError:
        return None


def read_values(field: Field, values: Any, decode: Decode | None = None) -> tuple[list[Any], Faults]:
    """Untyped values one by one; a row at fault holds None."""
    decode = compile_value(field) if decode is None else decode
    found: list[Any] = []
    faults: Faults = {}
    for row, value in enumerate(values):
        try:
            found.append(decode(value))
        except ValueRejectedError as exc:
            faults[row] = exc
            found.append(None)
    return found, faults


def _typed(name: str, field: Field, value: Any) -> Read:
    problems = list(kind_problems(name, field, value.type))
    if problems:
        raise SchemaError(" | ".join(problems))
    found = convert(field, one_chunk(value))
    return Column(field, arrow=found.array), found.faults


def _pandas(name: str, field: Field, series: Any) -> Read:
    dtype = series.dtype
    if not isinstance(dtype, np.dtype):
        if hasattr(series, "sparse"):
            return _numpy(name, field, np.asarray(series.array), None)
        return _typed(name, field, pa.array(series))
    values: Array = series.to_numpy()
    if values.dtype == object:
        return read_values(field, [_none_for_na(value) for value in values])
    mask = np.isnat(values) if values.dtype.kind == "M" else None  # pandas has no other null there
    return _numpy(name, field, values, mask)


def _none_for_na(value: Any) -> Any:
    """None for pandas' own nulls, NA and NaT; NaN is a float and stays."""
    return None if type(value).__name__ in ("NAType", "NaTType") else value


def _numpy(name: str, field: Field, values: Array, mask: Array | None) -> Read:
    """A numpy array; where `mask` is True, the row is null."""
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    tensor = field.as_tensor if isinstance(field, Image) and field.form == "array" else field
    if values.dtype == object or values.dtype.kind in "UST":
        return read_values(field, _with_nulls(values.tolist(), mask))
    if isinstance(tensor, Tensor):
        return _numpy_tensors(name, field, tensor, values, mask)
    if values.ndim != 1:
        raise SchemaError(
            f"column {name!r} is an array of shape {values.shape}; expected {field.describe()} for each row"
            f"{'; use .squeeze(-1)' if values.shape[1:] == (1,) else ''}"
        )
    if values.dtype.kind == "M":
        return _numpy_times(name, field, values, mask)
    if values.dtype == BFLOAT16:
        values = values.astype(np.float32)
    try:
        kind = pa.from_numpy_dtype(values.dtype)
    except pa.ArrowException:
        raise SchemaError(
            f"column {name!r} is an array of dtype {values.dtype}; expected {field.describe()}"
        ) from None
    if pa.types.is_duration(kind):
        raise SchemaError(next(kind_problems(name, field, kind)))
    return _typed(name, field, primitive(kind, values, None if mask is None else ~mask))


def _numpy_times(name: str, field: Field, values: Array, mask: Array | None) -> Read:
    unit, count = np.datetime_data(values.dtype)
    present = None if mask is None else ~mask
    ticks = values.view(np.int64)
    if count == 1 and unit in ("s", "ms", "us", "ns"):
        return _typed(name, field, primitive(pa.timestamp(cast("Any", unit)), ticks, present))
    if count == 1 and unit == "D" and bool(((ticks >= -(2**31)) & (ticks < 2**31)).all()):
        return _typed(name, field, primitive(pa.date32(), ticks.astype(np.int32), present))
    return read_values(field, _with_nulls(list(values), mask))


def _with_nulls(values: list[Any], mask: Array | None) -> list[Any]:
    if mask is None:
        return values
    return [None if missing else value for value, missing in zip(values, mask.tolist(), strict=True)]


def _numpy_tensors(name: str, field: Field, tensor: Tensor, values: Array, mask: Array | None) -> Read:
    shape = values.shape[1:]
    fits = len(shape) == len(tensor.shape) and all(
        want is None or want == got for want, got in zip(tensor.shape, shape, strict=True)
    )
    problem = kind_problem(values.dtype, tensor.numpy_dtype)
    if not fits or problem:
        raise SchemaError(
            f"column {name!r} is an array of dtype {values.dtype} and shape {values.shape}; expected rows of "
            f"{field.describe()}{f', and it {problem}' if problem else ''}"
        )
    cast_values, exact = exact_cast(values, tensor.numpy_dtype)
    faults: Faults = {}
    if exact is not None:
        decoder = TensorDecoder(tensor)
        for row in np.flatnonzero(~exact.reshape(len(values), -1).all(axis=1)).tolist():
            try:
                decoder.decode(values[row])
            except ValueRejectedError as exc:
                faults[row] = exc
    missing = None if mask is None else mask.reshape(len(values), -1).any(axis=1)
    if missing is not None and missing.any():
        if not field.nullable:
            faults.update({row: wrong_type(field, None) for row in np.flatnonzero(missing).tolist()})
        return _with_nulls(list(np.ascontiguousarray(cast_values)), cast("Array", missing)), faults
    if field.row_shape is None:
        return list(np.ascontiguousarray(cast_values)), faults
    return Column(field, numpy=np.ascontiguousarray(cast_values)), faults
