"""Open Inference Protocol V2: a request or response is columns, each of flat elements, in JSON or as bytes.

Beyond the protocol's table: FP16 and BF16 travel as JSON numbers (Triton refuses them); NaN and infinities as
the strings "NaN", "Infinity", "-Infinity"; null stands for the null of a nullable field (a tensor of nulls
for a null tensor); timestamps, dates and decimals are BYTES holding their text, raw bytes BYTES holding
base64, lists and structs BYTES holding JSON. With the binary tensor extension, tensors may follow the JSON as
bytes instead (see `parity.codec.oip_binary`); a tensor with null rows stays JSON.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from parity.batch import Batch
from parity.codec.build import constant_array
from parity.codec.decoded import Decoded
from parity.codec.json_text import loads_body
from parity.codec.jsonable import encode_column
from parity.codec.oip_binary import bytes_of_column, element_dtype
from parity.codec.oip_tensors import SentTensor, Tail, column_of, read_tensor, tensor_parameters
from parity.codec.oip_values import Values, datatype, decoders, describe, dims_of, flat_elements
from parity.codec.rejection import brief_json
from parity.codec.rows import dumps, loads
from parity.codec.values import compile_default, compile_value
from parity.column import Column
from parity.errors import MalformedError, RowError, RowsError, did_you_mean, shown
from parity.schema import NonFinite, Schema

__all__ = [
    "InferRequest",
    "decode_request",
    "decode_response",
    "describe",
    "encode_binary_request",
    "encode_binary_response",
    "encode_request",
    "encode_response",
]


@dataclass(frozen=True, slots=True)
class InferRequest:
    """A decoded inference request.

    Attributes:
        id: the caller's id, to be echoed; None when there was none.
        decoded: the rows.
        outputs: the outputs asked for; None for all.
        parameters: the request's parameters, as sent.
        binary: for the outputs that say so, whether they are to come as bytes.
        binary_output: whether the other outputs are.
    """

    id: str | None
    decoded: Decoded
    outputs: tuple[str, ...] | None
    parameters: Mapping[str, Any]
    binary: Mapping[str, bool] = field(default_factory=dict[str, bool])
    binary_output: bool = False

    def wants_bytes(self, name: str) -> bool:
        """Whether an output is to come as bytes."""
        return self.binary.get(name, self.binary_output)


def decode_request(
    schema: Schema,
    body: bytes,
    *,
    outputs: Schema | None = None,
    json_length: int | None = None,
    most_rows: int | None = None,
) -> InferRequest:
    """An inference request's rows.

    Args:
        schema: the handler's inputs.
        body: the JSON body, with the tensors sent as bytes behind it.
        outputs: the handler's outputs, to refuse unknown names early; `encode_response` does so anyway.
        json_length: how many bytes of the body are JSON; None for all. 0 says that the body is one row of the
            one input, as bytes, and that all outputs are to come as bytes.
        most_rows: how many rows are taken; None for any number.

    Raises:
        TooManyRowsError: there are more.
        MalformedError: the body is not a V2 request, or an input is missing, unknown, there twice, or of
            another datatype, shape or number of rows. A value that does not fit is a row error instead.
    """
    if json_length == 0:
        return _decode_raw(schema, body)
    text, tail = _split(body, json_length)
    request = _object(loads_body(text, "a JSON object with 'inputs', a list of tensors"), "the request")
    identity = request.get("id")
    if identity is not None and not isinstance(identity, str):
        raise MalformedError(f"the request's id {brief_json(identity)} is not a string")
    parameters = request.get("parameters")
    known = {} if parameters is None else _object(parameters, "parameters")
    asked, binary = _asked(request.get("outputs"))
    if asked is not None and outputs is not None:
        check_outputs(outputs, asked)
    binary_output = known.get("binary_data_output", False)
    if not isinstance(binary_output, bool):
        raise MalformedError(
            f"parameters.binary_data_output is {brief_json(binary_output)}; expected true or false"
        )
    decoded = _decode_tensors(schema, _entries(request, "inputs"), "input", tail, most_rows)
    return InferRequest(identity, decoded, asked, known, binary, binary_output)


def encode_request(batch: Batch, id: str | None = None, outputs: Sequence[str] | None = None) -> bytes:
    """The rows as an inference request; NaN and infinities always travel.

    Raises:
        SchemaError: tensors differ in shape, so that they cannot share a request: send them one by one.
        RowsError: JSON cannot tell a value.
    """
    request: dict[str, Any] = {} if id is None else {"id": id}
    request["inputs"], _ = _encode_tensors(batch, batch.schema.names, "string")
    if outputs is not None:
        request["outputs"] = [{"name": name} for name in outputs]
    return dumps(request)


def encode_response(
    batch: Batch,
    model_name: str,
    model_version: str | None = None,
    id: str | None = None,
    outputs: Sequence[str] | None = None,
) -> bytes:
    """The rows as an inference response, in the schema's order whatever the order asked for.

    Raises:
        MalformedError: an output asked for is unknown.
        SchemaError: tensors of one response differ in shape.
        RowsError: JSON cannot tell some rows' values (see `Floating.non_finite`); it names them.
    """
    response, _ = _response(batch, model_name, model_version, id, outputs)
    return dumps(response)


def encode_binary_request(
    batch: Batch, id: str | None = None, outputs: Sequence[str] | None = None
) -> tuple[bytes, int]:
    """The rows as an inference request with bytes, which asks for bytes; and the length of its JSON.

    Raises:
        SchemaError: tensors differ in shape, so that they cannot share a request: send them one by one.
        RowsError: JSON cannot tell a value of a field that travels as JSON text.
    """
    request: dict[str, Any] = {} if id is None else {"id": id}
    request["parameters"] = {"binary_data_output": True}
    names = frozenset(batch.schema.names)
    request["inputs"], parts = _encode_tensors(batch, batch.schema.names, "string", names)
    if outputs is not None:
        request["outputs"] = [{"name": name} for name in outputs]
    text = dumps(request)
    return b"".join((text, *parts)), len(text)


def encode_binary_response(
    batch: Batch, request: InferRequest, model_name: str, model_version: str | None = None
) -> tuple[bytes, int | None]:
    """The rows as an inference response in the forms that the request asks for.

    Returns:
        The body, and how many bytes of it are JSON: None for all.

    Raises:
        MalformedError: an output asked for is unknown.
        SchemaError: tensors of one response differ in shape.
        RowsError: JSON cannot tell some rows' values (see `Floating.non_finite`); it names them.
    """
    wanted = frozenset(name for name in batch.schema.names if request.wants_bytes(name))
    response, parts = _response(batch, model_name, model_version, request.id, request.outputs, wanted)
    text = dumps(response)
    return (b"".join((text, *parts)), len(text)) if parts else (text, None)


def decode_response(schema: Schema, body: bytes, json_length: int | None = None) -> Batch:
    """An inference response's rows.

    Args:
        schema: the handler's outputs.
        body: the JSON body, with the tensors that came as bytes behind it.
        json_length: how many bytes of the body are JSON; None for all.

    Raises:
        MalformedError: the body is not a V2 response of this schema, or is an error report, or a value does
            not fit.
    """
    text, tail = _split(body, json_length)
    response = _object(loads(text), "the response")
    if "error" in response:
        raise MalformedError(f"the server answered with an error: {response['error']}")
    decoded = _decode_tensors(schema, _entries(response, "outputs"), "output", tail)
    if decoded.errors:
        first = decoded.errors[0]
        raise MalformedError(f"the response's row {first.row}: {first.message}")
    return decoded.batch


def decode_sent(schema: Schema, sent: Mapping[str, SentTensor], role: str) -> Decoded:
    """The rows of tensors that were checked one by one.

    Raises:
        MalformedError: one without a default is missing, or they differ in their number of rows.
    """
    counts = {name: tensor.rows for name, tensor in sent.items()}
    if len(set(counts.values())) > 1:
        raise MalformedError(f"{role}s differ in their number of rows (the first dimension): {counts}")
    if not counts:
        raise MalformedError(
            f"there is no {role}; expected {', '.join(schema.names) or 'none, as the schema is empty'}"
        )
    num_rows = next(iter(counts.values()))
    columns: dict[str, Values] = {}
    errors: dict[int, RowError] = {}
    for (name, item), decode in zip(schema.items(), decoders(schema), strict=True):
        if name not in sent:
            if not item.has_default:
                raise MalformedError(
                    f"{role} {name!r} ({item.describe()}) is missing; send it, or declare a default"
                )
            default = compile_default(name, item, compile_value(item))
            columns[name] = Column(item, arrow=constant_array(item, default, num_rows))
            continue
        columns[name], faults = column_of(item, decode, sent[name])
        for row, fault in faults.items():
            errors.setdefault(row, RowError(row, "invalid", fault.message(name), name))
    return Decoded.sifted(schema, columns, num_rows, errors)


def require_known(schema: Schema, name: object, role: str, seen: Mapping[str, Any]) -> str:
    """The name of a tensor; raises MalformedError where the schema has none of it, or it is there twice."""
    if not isinstance(name, str):
        raise MalformedError(f"an {role} has name {brief_json(name)}; expected a string")
    if name not in schema:
        raise MalformedError(f"unexpected inference {role} {shown(name)}; {did_you_mean(name, schema.names)}")
    if name in seen:
        raise MalformedError(f"{role} {name!r} is there twice")
    return name


def _split(body: bytes, json_length: int | None) -> tuple[bytes | memoryview, Tail | None]:
    if json_length is None:
        return body, None
    if not 0 < json_length <= len(body):
        raise MalformedError(
            f"Inference-Header-Content-Length is {json_length}; expected 0 to {len(body)}, the body's length"
        )
    view = memoryview(body)
    return view[:json_length], Tail(view[json_length:])


def _decode_raw(schema: Schema, body: bytes) -> InferRequest:
    """One row of the one input that has no default, as nothing but its bytes."""
    names = [name for name, item in schema.items() if not item.has_default] or list(schema.names)
    if len(names) != 1:
        raise MalformedError(
            f"a request without JSON is for models of one input, this one has {', '.join(schema.names)}; "
            "send a V2 request"
        )
    name = names[0]
    wanted = schema[name]
    dtype = element_dtype(wanted)
    what = f"input {name!r}"
    if dtype is None:  # the body is the element, and has no length of its own
        sent = SentTensor(what, 1, (), [body])
    else:
        dims = dims_of(wanted)
        varying = dims.count(-1)
        fixed = math.prod(size for size in dims if size != -1) * dtype.itemsize
        if varying > 1 or (varying and (not fixed or len(body) % fixed)):
            raise MalformedError(
                f"{what}: {len(body)} bytes do not tell a shape of {wanted.describe()}; send a V2 request"
            )
        free = len(body) // fixed if varying else 0
        shape = tuple(free if size == -1 else size for size in dims)
        sent = SentTensor(what, 1, shape, data=memoryview(body))
    return InferRequest(None, decode_sent(schema, {name: sent}, "input"), None, {}, binary_output=True)


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise MalformedError(f"{what} is {brief_json(value)}; expected a JSON object")
    return cast("dict[str, Any]", value)


def _entries(body: dict[str, Any], key: str) -> list[Any]:
    entries = body.get(key)
    if not isinstance(entries, list):
        hint = did_you_mean(key, body)
        got = f"got {brief_json(entries)}" if key in body else f"and is missing{f'; {hint}' if hint else ''}"
        raise MalformedError(f"{key!r} must be a list of tensors, {got}")
    return cast("list[Any]", entries)


def _asked(entries: Any) -> tuple[tuple[str, ...] | None, dict[str, bool]]:
    """The outputs asked for, and for those that say so whether they are to come as bytes."""
    if entries is None or entries == []:
        return None, {}
    if not isinstance(entries, list):
        raise MalformedError(f"'outputs' must be a list of objects with a name, got {brief_json(entries)}")
    names: list[str] = []
    binary: dict[str, bool] = {}
    for entry in cast("list[Any]", entries):
        output = _object(entry, "an entry of 'outputs'")
        name = output.get("name")
        if not isinstance(name, str):
            raise MalformedError(f"an entry of 'outputs' has name {brief_json(name)}; expected a string")
        names.append(name)
        parameters = tensor_parameters(f"output {name!r}", output)
        if "binary_data" in parameters:
            wanted = parameters["binary_data"]
            if not isinstance(wanted, bool):
                raise MalformedError(
                    f"output {name!r} has binary_data {brief_json(wanted)}; expected true or false"
                )
            binary[name] = wanted
    return tuple(names), binary


def check_outputs(schema: Schema, asked: Sequence[str]) -> None:
    """Raise MalformedError where an output asked for is unknown."""
    for name in asked:
        if name not in schema:
            raise MalformedError(
                f"unexpected inference output {shown(name)}; {did_you_mean(name, schema.names)}"
            )


def _decode_tensors(
    schema: Schema, entries: list[Any], role: str, tail: Tail | None, most_rows: int | None = None
) -> Decoded:
    sent: dict[str, SentTensor] = {}
    for entry in entries:
        tensor = _object(entry, f"an {role}")
        name = require_known(schema, tensor.get("name"), role, sent)
        sent[name] = read_tensor(name, schema[name], tensor, role, tail, most_rows)
    if tail is not None:
        tail.require_end()
    return decode_sent(schema, sent, role)


def _response(
    batch: Batch,
    model_name: str,
    model_version: str | None,
    id: str | None,
    outputs: Sequence[str] | None,
    binary: frozenset[str] = frozenset(),
) -> tuple[dict[str, Any], list[bytes]]:
    if outputs is not None:
        check_outputs(batch.schema, outputs)
    names = [name for name in batch.schema.names if outputs is None or name in outputs]
    response: dict[str, Any] = {"model_name": model_name}
    if model_version is not None:
        response["model_version"] = model_version
    if id is not None:
        response["id"] = id
    response["outputs"], parts = _encode_tensors(batch, names, None, binary)
    return response, parts


def _encode_tensors(
    batch: Batch, names: Sequence[str], non_finite: NonFinite | None, binary: frozenset[str] = frozenset()
) -> tuple[list[dict[str, Any]], list[bytes]]:
    """The tensors as JSON-ready objects, and the bytes of those that are told so."""
    tensors: list[dict[str, Any]] = []
    parts: list[bytes] = []
    errors: dict[int, RowError] = {}
    for name in names:
        column = batch[name]
        tensor: dict[str, Any] = {"name": name, "datatype": datatype(column.field)}
        tensors.append(tensor)
        if name in binary and not column.null_count:
            dims, data = bytes_of_column(name, column)
            tensor["shape"] = [batch.num_rows, *dims]
            tensor["parameters"] = {"binary_data_size": len(data)}
            parts.append(data)
            continue
        values, problems = encode_column(column, non_finite)
        for row, message in problems.items():
            errors.setdefault(row, RowError(row, "failed", f"field {name!r}: {message}", name))
        dims, data = flat_elements(name, column, values)
        tensor.update(shape=[batch.num_rows, *dims], data=data)
    if errors:
        rows = [errors[row] for row in sorted(errors)]
        raise RowsError(
            f"{len(rows)} rows cannot be told in JSON; row {rows[0].row}: {rows[0].message}", rows
        )
    return tensors, parts
