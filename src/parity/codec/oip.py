"""Open Inference Protocol V2, tensors as JSON: a request or response is columns, each of flat elements.

Beyond the protocol's table: FP16 and BF16 travel as JSON numbers (Triton refuses them); NaN and infinities as
the strings "NaN", "Infinity", "-Infinity"; null stands for the null of a nullable field (a tensor of nulls
for a null tensor); timestamps, dates and decimals are BYTES holding their text, raw bytes BYTES holding
base64, lists and structs BYTES holding JSON. Binary tensor data is not read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from parity.batch import Batch
from parity.codec.build import constant_array
from parity.codec.decoded import Decoded
from parity.codec.jsonable import encode_column
from parity.codec.oip_tensors import (
    SentTensor,
    Values,
    column_of,
    datatype,
    decoders,
    describe,
    flat_elements,
    read_tensor,
)
from parity.codec.rejection import brief
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
    """

    id: str | None
    decoded: Decoded
    outputs: tuple[str, ...] | None
    parameters: Mapping[str, Any]


def decode_request(schema: Schema, body: bytes, *, outputs: Schema | None = None) -> InferRequest:
    """An inference request's rows.

    Args:
        schema: the handler's inputs.
        body: the JSON body.
        outputs: the handler's outputs, to refuse unknown names early; `encode_response` does so anyway.

    Raises:
        MalformedError: the body is not a V2 request, or an input is missing, unknown, there twice, or of
            another datatype, shape or number of rows. A value that does not fit is a row error instead.
    """
    request = _object(loads(body), "the request")
    identity = request.get("id")
    if identity is not None and not isinstance(identity, str):
        raise MalformedError(f"the request's id {brief(identity)} is not a string")
    parameters = request.get("parameters")
    asked = _asked(request.get("outputs"))
    if asked is not None and outputs is not None:
        _check_outputs(outputs, asked)
    decoded = _decode_tensors(schema, _entries(request, "inputs"), "input")
    return InferRequest(
        identity, decoded, asked, {} if parameters is None else _object(parameters, "parameters")
    )


def encode_request(batch: Batch, id: str | None = None, outputs: Sequence[str] | None = None) -> bytes:
    """The rows as an inference request; NaN and infinities always travel.

    Raises:
        SchemaError: tensors differ in shape, so that they cannot share a request: send them one by one.
        RowsError: JSON cannot tell a value.
    """
    request: dict[str, Any] = {} if id is None else {"id": id}
    request["inputs"] = _encode_tensors(batch, batch.schema.names, "string")
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
    if outputs is not None:
        _check_outputs(batch.schema, outputs)
    names = [name for name in batch.schema.names if outputs is None or name in outputs]
    response: dict[str, Any] = {"model_name": model_name}
    if model_version is not None:
        response["model_version"] = model_version
    if id is not None:
        response["id"] = id
    response["outputs"] = _encode_tensors(batch, names, None)
    return dumps(response)


def decode_response(schema: Schema, body: bytes) -> Batch:
    """An inference response's rows.

    Raises:
        MalformedError: the body is not a V2 response of this schema, or is an error report, or a value does
            not fit.
    """
    response = _object(loads(body), "the response")
    if "error" in response:
        raise MalformedError(f"the server answered with an error: {response['error']}")
    decoded = _decode_tensors(schema, _entries(response, "outputs"), "output")
    if decoded.errors:
        first = decoded.errors[0]
        raise MalformedError(f"the response's row {first.row}: {first.message}")
    return decoded.batch


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise MalformedError(f"{what} is {brief(value)}; expected a JSON object")
    return cast("dict[str, Any]", value)


def _entries(body: dict[str, Any], key: str) -> list[Any]:
    entries = body.get(key)
    if not isinstance(entries, list):
        hint = "" if key in body else f"; {did_you_mean(key, body) or 'it is missing'}"
        raise MalformedError(f"{key!r} must be a list of tensors, got {brief(entries)}{hint}")
    return cast("list[Any]", entries)


def _asked(entries: Any) -> tuple[str, ...] | None:
    if entries is None or entries == []:
        return None
    if not isinstance(entries, list):
        raise MalformedError(f"'outputs' must be a list of objects with a name, got {brief(entries)}")
    names: list[str] = []
    for entry in cast("list[Any]", entries):
        name = _object(entry, "an entry of 'outputs'").get("name")
        if not isinstance(name, str):
            raise MalformedError(f"an entry of 'outputs' has name {brief(name)}; expected a string")
        names.append(name)
    return tuple(names)


def _check_outputs(schema: Schema, asked: Sequence[str]) -> None:
    for name in asked:
        if name not in schema:
            raise MalformedError(
                f"unexpected inference output {shown(name)}; {did_you_mean(name, schema.names)}"
            )


def _decode_tensors(schema: Schema, entries: list[Any], role: str) -> Decoded:
    sent: dict[str, SentTensor] = {}
    for entry in entries:
        tensor = _object(entry, f"an {role}")
        name = tensor.get("name")
        if not isinstance(name, str):
            raise MalformedError(f"an {role} has name {brief(name)}; expected a string")
        if name not in schema:
            raise MalformedError(
                f"unexpected inference {role} {shown(name)}; {did_you_mean(name, schema.names)}"
            )
        if name in sent:
            raise MalformedError(f"{role} {name!r} is there twice")
        sent[name] = read_tensor(name, schema[name], tensor, role)
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
    for (name, field), decode in zip(schema.items(), decoders(schema), strict=True):
        if name not in sent:
            if not field.has_default:
                raise MalformedError(
                    f"{role} {name!r} ({field.describe()}) is missing; send it, or declare a default"
                )
            default = compile_default(name, field, compile_value(field))
            columns[name] = Column(field, arrow=constant_array(field, default, num_rows))
            continue
        columns[name], faults = column_of(field, decode, sent[name])
        for row, fault in faults.items():
            errors.setdefault(row, RowError(row, "invalid", fault.message(name), name))
    return Decoded.sifted(schema, columns, num_rows, errors)


def _encode_tensors(batch: Batch, names: Sequence[str], non_finite: NonFinite | None) -> list[dict[str, Any]]:
    tensors: list[dict[str, Any]] = []
    errors: dict[int, RowError] = {}
    for name in names:
        field = batch.schema[name]
        values, problems = encode_column(batch[name], non_finite)
        for row, message in problems.items():
            errors.setdefault(row, RowError(row, "failed", f"field {name!r}: {message}", name))
        dims, data = flat_elements(name, batch[name], values)
        tensors.append(
            {"name": name, "datatype": datatype(field), "shape": [batch.num_rows, *dims], "data": data}
        )
    if errors:
        rows = [errors[row] for row in sorted(errors)]
        raise RowsError(
            f"{len(rows)} rows cannot be told in JSON; row {rows[0].row}: {rows[0].message}", rows
        )
    return tensors
