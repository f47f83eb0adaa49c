"""One V2 column: its datatype and shape, what reads its elements, and its elements flat."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import chain
from typing import Any, cast

import numpy as np

from parity.codec.rejection import ValueRejectedError, brief
from parity.codec.rows import dumps, loads
from parity.codec.tensors import TensorDecoder
from parity.codec.values import Decode, compile_value
from parity.column import Column
from parity.errors import MalformedError, SchemaError
from parity.schema import Field, Image, List, Schema, Struct, Tensor

_DATATYPES = {"bool": "BOOL", "float16": "FP16", "bfloat16": "BF16", "float32": "FP32", "float64": "FP64"}

Values = Column | list[Any]
"""A column, or canonical values to make one of, in which rows at fault hold None."""


def describe(schema: Schema) -> list[dict[str, Any]]:
    """The schema as V2 tensor metadata: name, datatype, and shape with -1 for the rows and what may vary."""
    return [
        {"name": name, "datatype": datatype(field), "shape": [-1, *dims_of(field)]}
        for name, field in schema.items()
    ]


def datatype(field: Field) -> str:
    """The V2 datatype of a field."""
    dtype = field.numpy_dtype
    if isinstance(field, Image) and field.form == "array":
        return "UINT8"
    if dtype is None or dtype.kind == "M":
        return "BYTES"
    return _DATATYPES.get(dtype.name, dtype.name.upper())


@lru_cache(maxsize=64)
def decoders(schema: Schema) -> tuple[Decode | TensorDecoder, ...]:
    """What reads the elements of each field; kept, since a server asks for the same few schemas forever."""
    found: list[Decode | TensorDecoder] = []
    for field in schema.values():
        tensor = as_tensor(field)
        if tensor is not None:
            found.append(TensorDecoder(tensor))
        else:
            decode = compile_value(field)
            found.append(_of_json_text(decode) if isinstance(field, List | Struct) else decode)
    return tuple(found)


def _of_json_text(decode: Decode) -> Decode:
    def decode_text(value: Any) -> Any:
        if not isinstance(value, str):
            return decode(value)  # which takes null, or says what is wrong
        try:
            return decode(loads(value))
        except MalformedError as exc:
            raise ValueRejectedError(f"{brief(value)} is {exc}", "JSON text") from None

    return decode_text


def decode_each(decode: Decode, values: list[Any]) -> tuple[list[Any], dict[int, ValueRejectedError]]:
    """Each value decoded, None where it does not fit, and why those do not."""
    found: list[Any] = []
    faults: dict[int, ValueRejectedError] = {}
    for row, value in enumerate(values):
        try:
            found.append(decode(value))
        except ValueRejectedError as exc:
            faults[row] = exc
            found.append(None)
    return found, faults


def flat_elements(name: str, column: Column, values: list[Any]) -> tuple[list[int], Any]:
    """The dimensions of one row, and the elements of all rows in one flat list, nested by row, or array.

    Args:
        name: the column's name, for messages.
        column: the column.
        values: its rows as `parity.codec.jsonable.encode_column` gives them.

    Raises:
        SchemaError: the rows' tensors differ in shape, or a null cannot be told.
    """
    field = column.field
    if isinstance(field, List | Struct):
        return [], [None if value is None else dumps(value).decode() for value in values]
    tensor = as_tensor(field)
    if tensor is None:
        return [], values
    dims = row_dims(name, column)
    size = math.prod(dims)
    if column.null_count and not size:
        raise SchemaError(
            f"field {name!r}: V2 cannot tell a null tensor from an empty one; send rows as objects"
        )
    if values and all(isinstance(value, np.ndarray) for value in values):
        return list(dims), np.concatenate([value.reshape(-1) for value in values])
    return list(dims), [[None] * size if value is None else _flattened(value, len(dims)) for value in values]


def row_dims(name: str, column: Column) -> tuple[int, ...]:
    """The dimensions that all rows of a column share.

    Raises:
        SchemaError: they differ.
    """
    tensor = as_tensor(column.field)
    if tensor is None:
        return ()
    if column.field.row_shape is not None:
        return column.field.row_shape
    shapes = {array.shape for array in column.arrays() if array is not None}
    if len(shapes) > 1:
        raise SchemaError(
            f"field {name!r}: tensors of shapes {sorted(map(list, shapes))[:4]} cannot share a V2 request or "
            "response, which has one shape for all rows; send rows of one shape at a time, or rows as objects"
        )
    return next(iter(shapes)) if shapes else tuple(size or 0 for size in tensor.shape)


def _flattened(value: Any, depth: int) -> list[Any]:
    flat = list(value.reshape(-1)) if isinstance(value, np.ndarray) else cast("list[Any]", value)
    for _ in range(0 if isinstance(value, np.ndarray) else depth - 1):
        flat = list(chain.from_iterable(flat))
    return flat


def dims_of(field: Field) -> list[int]:
    """The dimensions of one row, -1 for what may vary."""
    tensor = as_tensor(field)
    return [] if tensor is None else [-1 if size is None else size for size in tensor.shape]


def as_tensor(field: Field) -> Tensor | None:
    """The tensor that a field travels as; None for scalars."""
    if isinstance(field, Image) and field.form == "array":
        return field.as_tensor
    return field if isinstance(field, Tensor) else None
