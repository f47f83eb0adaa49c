"""Open Inference Protocol V2 as protobuf messages: raw or typed contents in, raw contents out.

Bytes are those of `parity.codec.oip_binary`. They have no null: a tensor whose parameter `null_rows` lists
rows, as in "0,3", has null there, whatever its contents say. That is parity's own: answers hold it only for a
request with the parameter `null_rows` set to true, and any other request for a null is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from parity.batch import Batch
from parity.codec.oip import InferRequest, check_outputs, decode_sent, require_known
from parity.codec.oip_binary import bytes_of_column
from parity.codec.oip_messages import DecodeError, message_type
from parity.codec.oip_tensors import SentTensor, check_tensor, elements_sent
from parity.codec.oip_values import datatype
from parity.errors import MalformedError, RowError, RowsError, shown
from parity.schema import Schema

NULL_ROWS = "null_rows"

_CONTENTS = {
    "BOOL": "bool_contents",
    "INT8": "int_contents",
    "INT16": "int_contents",
    "INT32": "int_contents",
    "INT64": "int64_contents",
    "UINT8": "uint_contents",
    "UINT16": "uint_contents",
    "UINT32": "uint_contents",
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "BYTES": "bytes_contents",
}
"""Where each datatype's elements ride; the 16-bit floats have no place and travel raw only."""

_UNREAD = ("shared_memory_region", "classification")


def read_message(name: str, data: bytes) -> Any:
    """The message `name` in these bytes.

    Raises:
        MalformedError: they are none.
    """
    try:
        return message_type(name).FromString(data)
    except DecodeError as exc:
        raise MalformedError(f"not a {name}: {exc}") from None


def decode_request(
    schema: Schema, message: Any, *, outputs: Schema | None = None, most_rows: int | None = None
) -> InferRequest:
    """The rows of a ModelInferRequest.

    Args:
        schema: the handler's inputs.
        message: the request.
        outputs: the handler's outputs, to refuse unknown names early.
        most_rows: how many rows are taken; None for any number.

    Raises:
        TooManyRowsError: there are more.
        MalformedError: an input is missing, unknown, there twice, or of another datatype, shape or number of
            rows, or its contents do not fit its shape. A value that does not fit is a row error instead.
    """
    asked: tuple[str, ...] | None = None
    if message.outputs:
        asked = tuple(output.name for output in message.outputs)
        for output in message.outputs:
            _plain(output.parameters, f"output {output.name!r}")
        if outputs is not None:
            check_outputs(outputs, asked)
    parameters = _plain(message.parameters, "the request")
    sent = _sent(schema, message.inputs, message.raw_input_contents, "input", most_rows)
    decoded = decode_sent(schema, sent, "input")
    return InferRequest(message.id or None, decoded, asked, parameters)


def encode_request(batch: Batch, model_name: str, id: str = "", model_version: str = "") -> Any:
    """The rows as a ModelInferRequest with raw contents, which asks for null rows.

    Raises:
        SchemaError: tensors differ in shape, so that they cannot share a request: send them one by one.
        RowsError: JSON cannot tell a value of a field that travels as JSON text.
    """
    request = message_type("ModelInferRequest")(model_name=model_name, id=id, model_version=model_version)
    request.parameters[NULL_ROWS].bool_param = True
    _write(batch, batch.schema.names, request.inputs, request.raw_input_contents, nulls=True)
    return request


def encode_response(
    batch: Batch, request: InferRequest, model_name: str, model_version: str | None = None
) -> Any:
    """The rows as a ModelInferResponse with raw contents.

    Raises:
        MalformedError: an output asked for is unknown.
        SchemaError: tensors of one response differ in shape.
        RowsError: a row is null and the request does not take `null_rows`, or JSON cannot tell a value of a
            field that travels as JSON text.
    """
    if request.outputs is not None:
        check_outputs(batch.schema, request.outputs)
    names = [name for name in batch.schema.names if request.outputs is None or name in request.outputs]
    response = message_type("ModelInferResponse")(
        model_name=model_name, model_version=model_version or "", id=request.id or ""
    )
    nulls = request.parameters.get(NULL_ROWS) is True
    _write(batch, names, response.outputs, response.raw_output_contents, nulls=nulls)
    return response


def decode_response(schema: Schema, message: Any) -> Batch:
    """The rows of a ModelInferResponse.

    Raises:
        MalformedError: the message is not a response of this schema, or a value does not fit.
    """
    sent = _sent(schema, message.outputs, message.raw_output_contents, "output")
    decoded = decode_sent(schema, sent, "output")
    if decoded.errors:
        first = decoded.errors[0]
        raise MalformedError(f"the response's row {first.row}: {first.message}")
    return decoded.batch


def _sent(
    schema: Schema, tensors: Any, raw: Sequence[bytes], role: str, most_rows: int | None = None
) -> dict[str, SentTensor]:
    if raw and len(raw) != len(tensors):
        raise MalformedError(
            f"there are {len(raw)} raw contents for {len(tensors)} {role}s; send one for each, or typed "
            "contents for all"
        )
    found: dict[str, SentTensor] = {}
    for place, tensor in enumerate(tensors):
        name = require_known(schema, tensor.name, role, found)
        what = f"{role} {name!r}"
        sizes, dims = check_tensor(name, schema[name], tensor.datatype, list(tensor.shape), role, most_rows)
        nulls = _null_rows(what, _plain(tensor.parameters, what), sizes[0])
        typed = tensor.HasField("contents")
        if raw:
            if typed:
                raise MalformedError(f"{what} has both raw and typed contents; send one of them")
            found[name] = SentTensor(what, sizes[0], dims, data=memoryview(raw[place]), nulls=nulls)
            continue
        place_of = _CONTENTS.get(tensor.datatype)
        if place_of is None:
            raise MalformedError(f"{what} is {tensor.datatype}, which has no typed contents; send it raw")
        elements = list(getattr(tensor.contents, place_of))
        found[name] = elements_sent(what, sizes, dims, elements, nulls)
    return found


def _write(batch: Batch, names: Sequence[str], tensors: Any, raw: Any, *, nulls: bool) -> None:
    errors: dict[int, RowError] = {}
    for name in names:
        column = batch[name]
        rows: list[int] = np.flatnonzero(~column.valid).tolist() if column.null_count else []
        if rows and not nulls:
            for row in rows:
                said = (
                    "is null, which gRPC's tensors cannot tell; ask by HTTP, or with the parameter null_rows"
                )
                errors.setdefault(row, RowError(row, "failed", f"field {name!r}: {said}", name))
            continue
        dims, data = bytes_of_column(name, column, nulls=True)
        tensor = tensors.add(name=name, datatype=datatype(column.field), shape=[batch.num_rows, *dims])
        if rows:
            tensor.parameters[NULL_ROWS].string_param = ",".join(map(str, rows))
        raw.append(data)
    if errors:
        found = [errors[row] for row in sorted(errors)]
        raise RowsError(f"{len(found)} rows cannot be told; row {found[0].row}: {found[0].message}", found)


def _plain(parameters: Any, what: str) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for name, parameter in parameters.items():
        if name in _UNREAD:
            raise MalformedError(f"{what} has the parameter {name!r}, which is not offered here")
        choice = parameter.WhichOneof("parameter_choice")
        found[name] = None if choice is None else getattr(parameter, choice)
    return found


def _null_rows(what: str, parameters: Mapping[str, Any], num_rows: int) -> tuple[int, ...]:
    text = parameters.get(NULL_ROWS)
    if text is None:
        return ()
    parts = str(text).split(",")
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise MalformedError(f"{what} has {NULL_ROWS} {shown(text)}; expected row numbers such as '0,3'")
    rows = sorted({int(part) for part in parts})
    if rows[-1] >= num_rows:
        raise MalformedError(f"{what} has {NULL_ROWS} {rows[-1]}, but only {num_rows} rows")
    return tuple(rows)
