"""One V2 tensor of a body: checked against its field, then its values, whichever form they came in."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, cast

from parity.codec.decoded import require_rows
from parity.codec.oip_binary import bytes_decoder, values_of_bytes
from parity.codec.oip_values import Values, as_tensor, datatype, decode_each, dims_of
from parity.codec.rejection import ValueRejectedError, brief_json, wrong_type
from parity.codec.tensors import TensorDecoder
from parity.codec.values import Decode
from parity.column import Column
from parity.errors import MalformedError, shown
from parity.schema import Field

_MOST_OF_A_DIMENSION = 2**31 - 1
_MOST_EMPTY_ROWS = 65_536
"""Rows that cost the sender nothing still cost the reader; this many may come in a request of a few bytes."""

_UNREAD = {
    "shared_memory_region": "shared memory is not offered here; send the data in the request",
    "classification": "the classification extension is not offered here; ask for the scores",
}


class Tail:
    """The bytes behind a body's JSON, taken from the front."""

    def __init__(self, data: memoryview) -> None:
        self._data = data

    def take(self, what: str, size: int) -> memoryview:
        """The next `size` bytes; raises MalformedError when there are fewer."""
        if size > len(self._data):
            raise MalformedError(
                f"{what} says it has {size} bytes, but {len(self._data)} are left in the body"
            )
        found, self._data = self._data[:size], self._data[size:]
        return found

    def require_end(self) -> None:
        """Raise MalformedError when bytes are left over."""
        if len(self._data):
            raise MalformedError(
                f"unexpected additional input data: {len(self._data)} bytes behind the last tensor"
            )


@dataclass(frozen=True, slots=True)
class SentTensor:
    """One tensor of a body: its elements in one flat list, or its bytes; and which of its rows are null."""

    what: str
    rows: int
    dims: tuple[int, ...]
    elements: list[Any] = field(default_factory=list[Any])
    data: memoryview | None = None
    nulls: tuple[int, ...] = ()


def read_tensor(
    name: str,
    field: Field,
    tensor: dict[str, Any],
    role: str,
    tail: Tail | None,
    most_rows: int | None = None,
) -> SentTensor:
    """One tensor of a JSON body, checked against its field but for its elements' values.

    Args:
        name: its name.
        field: what it is read as.
        tensor: its JSON object.
        role: "input" or "output", for messages.
        tail: the bytes behind the JSON, from which it takes its own; None where there are none.
        most_rows: how many rows are taken; None for any number.

    Raises:
        TooManyRowsError: there are more.
        MalformedError: it has another datatype or shape, or not as many elements as its shape says.
    """
    sizes, dims = check_tensor(name, field, tensor.get("datatype"), tensor.get("shape"), role, most_rows)
    what = f"{role} {name!r}"
    parameters = tensor_parameters(what, tensor)
    if "binary_data_size" in parameters:
        return SentTensor(what, sizes[0], dims, data=_binary(what, tensor, parameters, tail))
    if "data" not in tensor:
        raise MalformedError(f"{what} has no 'data'; send its elements as a list, or as binary data")
    data = tensor["data"]
    if not isinstance(data, list):
        raise MalformedError(f"{what} has data {brief_json(data)}; expected a list")
    elements = cast("list[Any]", data)
    while elements and type(elements[0]) is list:
        if set(map(type, elements)) != {list}:
            raise MalformedError(f"{what} has data that mixes lists with elements")
        elements = list(chain.from_iterable(elements))
    return elements_sent(what, sizes, dims, elements)


def elements_sent(
    what: str, sizes: list[int], dims: tuple[int, ...], elements: list[Any], nulls: tuple[int, ...] = ()
) -> SentTensor:
    """A tensor whose elements came one by one; raises MalformedError where they are too few or many."""
    wanted = math.prod(sizes)
    if len(elements) != wanted:
        raise MalformedError(
            f"{what} has {len(elements)} elements in 'data', but its shape {shown(sizes)} needs {wanted}"
        )
    return SentTensor(what, sizes[0], dims, elements, nulls=nulls)


def check_tensor(
    name: str, field: Field, kind: Any, shape: Any, role: str, most_rows: int | None = None
) -> tuple[list[int], tuple[int, ...]]:
    """The sizes sent, and the dimensions of one row.

    Raises:
        TooManyRowsError: there are more rows than `most_rows`.
        MalformedError: datatype or shape are not the field's.
    """
    expected = datatype(field)
    if kind != expected:
        raise MalformedError(
            f"inference {role} {name!r} data-type is {brief_json(kind)}, but the schema says "
            f"{expected!r} ({field.describe()})"
        )
    if not isinstance(shape, list) or not all(
        type(size) is int and size >= 0 for size in cast("list[Any]", shape)
    ):
        raise MalformedError(f"{role} {name!r} has shape {brief_json(shape)}; expected a list of sizes")
    sizes = cast("list[int]", shape)
    if max(sizes, default=0) > _MOST_OF_A_DIMENSION:
        raise MalformedError(
            f"{role} {name!r} has shape {shown(sizes)}; a dimension is at most {_MOST_OF_A_DIMENSION}"
        )
    dims = dims_of(field)
    if not sizes or not _fits(sizes[1:], dims):
        raise MalformedError(
            f"unexpected shape for {role} {name!r}. Expected {[-1, *dims]}, got {shown(sizes)}. "
            "The first dimension is the rows, and has to be there for a single row too"
        )
    if not math.prod(sizes) and sizes[0] > _MOST_EMPTY_ROWS:
        raise MalformedError(
            f"{role} {name!r} has {sizes[0]} rows without an element; at most {_MOST_EMPTY_ROWS} are taken"
        )
    require_rows(sizes[0], most_rows)
    return sizes, tuple(sizes[1:]) if dims else ()


def tensor_parameters(what: str, tensor: dict[str, Any]) -> dict[str, Any]:
    """A tensor's parameters; raises MalformedError where they are none, or ask for what is not offered."""
    parameters = tensor.get("parameters")
    if parameters is None:
        return {}
    if not isinstance(parameters, dict):
        raise MalformedError(f"{what} has parameters {brief_json(parameters)}; expected a JSON object")
    for name, hint in _UNREAD.items():
        if name in parameters:
            raise MalformedError(f"{what} has the parameter {name!r}: {hint}")
    return cast("dict[str, Any]", parameters)


def column_of(
    field: Field, decode: Decode | TensorDecoder, sent: SentTensor
) -> tuple[Values, dict[int, ValueRejectedError]]:
    """The values of one tensor, and the rows that do not fit.

    Raises:
        MalformedError: its bytes are not as many as its shape needs.
    """
    if sent.nulls:
        return _with_nulls(field, *column_of(field, decode, replace(sent, nulls=())), sent.nulls)
    if sent.data is not None:
        scalar = cast("Decode", decode)
        return values_of_bytes(sent.what, field, scalar, sent.rows, sent.dims, sent.data)
    if not isinstance(decode, TensorDecoder):
        if sent.elements and type(sent.elements[0]) is bytes:
            decode = bytes_decoder(field, decode)
        return decode_each(decode, sent.elements)
    try:
        whole = decode.from_flat(sent.elements, (sent.rows, *sent.dims))
    except ValueRejectedError:
        size = math.prod(sent.dims)
        rows = [sent.elements[row * size : (row + 1) * size] for row in range(sent.rows)]
        return decode_each(lambda elements: _tensor_row(field, decode, elements, sent.dims), rows)
    return (Column(field, numpy=whole) if field.row_shape is not None else list(whole)), {}


def _with_nulls(
    field: Field, values: Values, faults: dict[int, ValueRejectedError], nulls: tuple[int, ...]
) -> tuple[Values, dict[int, ValueRejectedError]]:
    if isinstance(values, Column):
        values = list(values.numpy()) if as_tensor(field) is not None else values.arrow.to_pylist()
    for row in nulls:
        values[row] = None
        faults.pop(row, None)
        if not field.nullable:
            faults[row] = wrong_type(field, None)
    return values, faults


def _binary(what: str, tensor: dict[str, Any], parameters: dict[str, Any], tail: Tail | None) -> memoryview:
    size = parameters["binary_data_size"]
    if "data" in tensor:
        raise MalformedError(f"{what} has both 'data' and 'binary_data_size'; send one of them")
    if type(size) is not int or size < 0:
        raise MalformedError(f"{what} has binary_data_size {brief_json(size)}; expected a number of bytes")
    if tail is None:
        raise MalformedError(
            f"{what} has binary_data_size {size}, but the request has no header "
            "Inference-Header-Content-Length to say where the JSON ends"
        )
    return tail.take(what, size)


def _fits(given: list[int], dims: list[int]) -> bool:
    if not dims:
        return given in ([], [1])
    return len(given) == len(dims) and all(want in (-1, got) for want, got in zip(dims, given, strict=True))


def _tensor_row(field: Field, decoder: TensorDecoder, elements: list[Any], dims: tuple[int, ...]) -> Any:
    if field.nullable and elements and all(element is None for element in elements):
        return None
    return decoder.from_flat(elements, dims)
