"""One V2 tensor and one column: datatypes and shapes, elements flat, values both ways."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any, cast

import numpy as np

from parity.codec.rejection import ValueRejectedError, brief
from parity.codec.rows import dumps, loads
from parity.codec.tensors import TensorDecoder
from parity.codec.values import Decode, compile_value
from parity.column import Column
from parity.errors import MalformedError, SchemaError, shown
from parity.schema import Field, Image, List, Schema, Struct, Tensor

_DATATYPES = {"bool": "BOOL", "float16": "FP16", "bfloat16": "BF16", "float32": "FP32", "float64": "FP64"}
_MOST_OF_A_DIMENSION = 2**31 - 1
_MOST_EMPTY_ROWS = 65_536
"""Rows that cost the sender nothing still cost the reader; this many may come in a request of a few bytes."""


def describe(schema: Schema) -> list[dict[str, Any]]:
    """The schema as V2 tensor metadata: name, datatype, and shape with -1 for the rows and what may vary."""
    return [
        {"name": name, "datatype": datatype(field), "shape": [-1, *_dims(field)]}
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


@dataclass(frozen=True, slots=True)
class SentTensor:
    """One tensor of a body, its elements flat."""

    rows: int
    dims: tuple[int, ...]
    elements: list[Any]


@lru_cache(maxsize=64)
def decoders(schema: Schema) -> tuple[Decode | TensorDecoder, ...]:
    """What reads the elements of each field; kept, since a server asks for the same few schemas forever."""
    found: list[Decode | TensorDecoder] = []
    for field in schema.values():
        tensor = _as_tensor(field)
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


def read_tensor(name: str, field: Field, tensor: dict[str, Any], role: str) -> SentTensor:
    """One tensor of a body, checked against its field but for its elements' values.

    Raises:
        MalformedError: it has another datatype or shape, or not as many elements as its shape says.
    """
    expected = datatype(field)
    if tensor.get("datatype") != expected:
        raise MalformedError(
            f"inference {role} {name!r} data-type is {brief(tensor.get('datatype'))}, but the schema says "
            f"{expected!r} ({field.describe()})"
        )
    shape = tensor.get("shape")
    if not isinstance(shape, list) or not all(
        type(size) is int and size >= 0 for size in cast("list[Any]", shape)
    ):
        raise MalformedError(f"{role} {name!r} has shape {brief(shape)}; expected a list of sizes")
    sizes = cast("list[int]", shape)
    if max(sizes, default=0) > _MOST_OF_A_DIMENSION:
        raise MalformedError(
            f"{role} {name!r} has shape {shown(sizes)}; a dimension is at most {_MOST_OF_A_DIMENSION}"
        )
    dims = _dims(field)
    if not sizes or not _fits(sizes[1:], dims):
        raise MalformedError(
            f"unexpected shape for {role} {name!r}. Expected {[-1, *dims]}, got {shown(sizes)}. "
            "The first dimension is the rows, and has to be there for a single row too"
        )
    if "data" not in tensor:
        parameters = tensor.get("parameters")
        binary = isinstance(parameters, dict) and "binary_data_size" in parameters
        hint = "binary tensor data is not read here, send JSON" if binary else "send its elements as a list"
        raise MalformedError(f"{role} {name!r} has no 'data'; {hint}")
    data = tensor["data"]
    if not isinstance(data, list):
        raise MalformedError(f"{role} {name!r} has data {brief(data)}; expected a list")
    elements = cast("list[Any]", data)
    while elements and type(elements[0]) is list:
        if set(map(type, elements)) != {list}:
            raise MalformedError(f"{role} {name!r} has data that mixes lists with elements")
        elements = list(chain.from_iterable(elements))
    wanted = math.prod(sizes)
    if len(elements) != wanted:
        raise MalformedError(
            f"{role} {name!r} has {len(elements)} elements in 'data', but its shape {shown(sizes)} "
            f"needs {wanted}"
        )
    if not wanted and sizes[0] > _MOST_EMPTY_ROWS:
        raise MalformedError(
            f"{role} {name!r} has {sizes[0]} rows without an element; at most {_MOST_EMPTY_ROWS} are taken"
        )
    return SentTensor(sizes[0], tuple(sizes[1:]) if dims else (), elements)


def _fits(given: list[int], dims: list[int]) -> bool:
    if not dims:
        return given in ([], [1])
    return len(given) == len(dims) and all(want in (-1, got) for want, got in zip(dims, given, strict=True))


Values = Column | list[Any]
"""A column, or canonical values to make one of, in which rows at fault hold None."""


def column_of(
    field: Field, decode: Decode | TensorDecoder, sent: SentTensor
) -> tuple[Values, dict[int, ValueRejectedError]]:
    """The values of one tensor, and the rows that do not fit."""
    if not isinstance(decode, TensorDecoder):
        return _each(decode, sent.elements)
    try:
        whole = decode.from_flat(sent.elements, (sent.rows, *sent.dims))
    except ValueRejectedError:
        size = math.prod(sent.dims)
        rows = [sent.elements[row * size : (row + 1) * size] for row in range(sent.rows)]
        return _each(lambda elements: _tensor_row(field, decode, elements, sent.dims), rows)
    return (Column(field, numpy=whole) if field.row_shape is not None else list(whole)), {}


def _each(decode: Decode, values: list[Any]) -> tuple[list[Any], dict[int, ValueRejectedError]]:
    found: list[Any] = []
    faults: dict[int, ValueRejectedError] = {}
    for row, value in enumerate(values):
        try:
            found.append(decode(value))
        except ValueRejectedError as exc:
            faults[row] = exc
            found.append(None)
    return found, faults


def _tensor_row(field: Field, decoder: TensorDecoder, elements: list[Any], dims: tuple[int, ...]) -> Any:
    if field.nullable and elements and all(element is None for element in elements):
        return None
    return decoder.from_flat(elements, dims)


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
    tensor = _as_tensor(field)
    if tensor is None:
        return [], values
    shapes = {array.shape for array in column.arrays() if array is not None}
    if len(shapes) > 1:
        raise SchemaError(
            f"field {name!r}: tensors of shapes {sorted(map(list, shapes))[:4]} cannot share a V2 request or "
            "response, which has one shape for all rows; send rows of one shape at a time, or rows as objects"
        )
    dims = next(iter(shapes)) if shapes else tuple(size or 0 for size in tensor.shape)
    size = math.prod(dims)
    if column.null_count and not size:
        raise SchemaError(
            f"field {name!r}: V2 cannot tell a null tensor from an empty one; send rows as objects"
        )
    if values and all(isinstance(value, np.ndarray) for value in values):
        return list(dims), np.concatenate([value.reshape(-1) for value in values])
    return list(dims), [[None] * size if value is None else _flattened(value, len(dims)) for value in values]


def _flattened(value: Any, depth: int) -> list[Any]:
    flat = list(value.reshape(-1)) if isinstance(value, np.ndarray) else cast("list[Any]", value)
    for _ in range(0 if isinstance(value, np.ndarray) else depth - 1):
        flat = list(chain.from_iterable(flat))
    return flat


def _dims(field: Field) -> list[int]:
    tensor = _as_tensor(field)
    return [] if tensor is None else [-1 if size is None else size for size in tensor.shape]


def _as_tensor(field: Field) -> Tensor | None:
    if isinstance(field, Image) and field.form == "array":
        return field.as_tensor
    return field if isinstance(field, Tensor) else None
