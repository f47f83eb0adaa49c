"""TF Serving's and KServe V1's JSON: `instances`, a list of rows, or `inputs`, a list for each field.

A row is an object keyed by field; where the schema has one field only, its value may stand alone. Values are
those of `parity.codec.rows`, and {"b64": ...} stands for the bytes of a Bytes or Image field, or the UTF-8 of
a String. Answers are in the form of the request: `predictions` or `outputs`; a single output stands alone;
bytes are {"b64": ...}.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any, Literal, cast

from parity.batch import Batch
from parity.codec.decoded import Decoded, RowInvalidError, require_rows
from parity.codec.json_text import loads_body
from parity.codec.jsonable import encode_column
from parity.codec.rejection import brief_json
from parity.codec.rows import RowDecoder, dumps, loads
from parity.errors import MalformedError, RowError, RowsError, did_you_mean
from parity.schema import Bytes, Field, Image, List, NonFinite, Schema, String

Form = Literal["row", "column"]
SIGNATURE = "serving_default"


@dataclass(frozen=True, slots=True)
class PredictRequest:
    """A decoded request, and the form that its answer takes."""

    decoded: Decoded
    form: Form


def decode_request(decoder: RowDecoder, body: bytes, *, most_rows: int | None = None) -> PredictRequest:
    """The rows of a `:predict` request.

    Args:
        decoder: of the handler's inputs.
        body: the JSON body.
        most_rows: how many rows are taken; None for any number.

    Raises:
        TooManyRowsError: there are more.
        MalformedError: it is not such a request. A row that does not fit is a row error instead.
    """
    request = loads_body(body, "a JSON object with 'instances' or 'inputs'")
    if not isinstance(request, dict):
        raise MalformedError(
            f"the body is {brief_json(request)}; expected an object with 'instances' or 'inputs'"
        )
    asked = cast("dict[str, Any]", request)
    signature = asked.get("signature_name", SIGNATURE)
    if signature not in (SIGNATURE, ""):
        raise MalformedError(f"signature_name is {brief_json(signature)}; there is {SIGNATURE!r} only")
    if ("instances" in asked) == ("inputs" in asked):
        hint = did_you_mean("instances", asked) if "instances" not in asked else ""
        raise MalformedError(f"send either 'instances' or 'inputs'{f'; {hint}' if hint else ''}")
    form: Form = "row" if "instances" in asked else "column"
    rows = (
        _instances(decoder.schema, asked["instances"], most_rows)
        if form == "row"
        else _columns(decoder.schema, asked["inputs"], most_rows)
    )
    good: list[Any] = []
    errors: dict[int, RowError] = {}
    for place, row in enumerate(rows):
        try:
            good.append(decoder.decode_one(row))
        except RowInvalidError as exc:
            errors[place] = exc.at(place)
    return PredictRequest(Decoded.around(decoder.build(good), len(rows), errors), form)


def encode_request(batch: Batch, form: Form) -> bytes:
    """The rows as a `:predict` request; NaN and infinities travel as strings.

    Raises:
        RowsError: JSON cannot tell some rows' values; it names them.
    """
    columns = _values(batch, "string")
    if form == "column":
        return dumps({"inputs": columns})
    return dumps({"instances": _rows(columns, batch.num_rows)})


def encode_response(batch: Batch, form: Form) -> bytes:
    """The answers in a form.

    Raises:
        RowsError: JSON cannot tell some rows' values; it names them.
    """
    columns = _values(batch, None)
    if len(columns) == 1:
        return dumps({"predictions" if form == "row" else "outputs": next(iter(columns.values()))})
    if form == "column":
        return dumps({"outputs": columns})
    return dumps({"predictions": _rows(columns, batch.num_rows)})


def decode_response(schema: Schema, body: bytes) -> Batch:
    """The rows of an answer in either form.

    Raises:
        MalformedError: the body is not an answer of this schema, or is an error report.
    """
    answer = loads(body)
    if not isinstance(answer, dict) or "error" in answer:
        raise MalformedError(f"the server answered {brief_json(answer)}")
    told = cast("dict[str, Any]", answer)
    if "predictions" in told:
        rows = _instances(schema, told["predictions"])
    else:
        rows = _columns(schema, told.get("outputs"))
    decoded = RowDecoder(schema).decode(rows)
    if decoded.errors:
        first = decoded.errors[0]
        raise MalformedError(f"the answer's row {first.row}: {first.message}")
    return decoded.batch


def _instances(schema: Schema, instances: Any, most_rows: int | None = None) -> list[Any]:
    if not isinstance(instances, list):
        raise MalformedError(f"'instances' is {brief_json(instances)}; expected a list of rows")
    require_rows(len(cast("list[Any]", instances)), most_rows)
    alone = next(iter(schema.items())) if len(schema) == 1 else None
    found: list[Any] = []
    for instance in cast("list[Any]", instances):
        if alone is not None and not (isinstance(instance, dict) and alone[0] in instance):
            found.append({alone[0]: _plain(alone[1], instance)})
        elif isinstance(instance, dict):
            row = cast("dict[str, Any]", instance)
            found.append(
                {key: _plain(schema[key], item) if key in schema else item for key, item in row.items()}
            )
        else:
            found.append(instance)  # refused as a row, with its place
    return found


def _columns(schema: Schema, inputs: Any, most_rows: int | None = None) -> list[dict[str, Any]]:
    if len(schema) == 1 and not (isinstance(inputs, dict) and next(iter(schema)) in inputs):
        inputs = {next(iter(schema)): inputs}
    if not isinstance(inputs, dict):
        raise MalformedError(
            f"'inputs' is {brief_json(inputs)}; expected an object with a list for each field"
        )
    columns = cast("dict[str, Any]", inputs)
    for name, values in columns.items():
        if name not in schema:
            raise MalformedError(f"unexpected input {brief_json(name)}; {did_you_mean(name, schema.names)}")
        if not isinstance(values, list):
            raise MalformedError(
                f"input {name!r} is {brief_json(values)}; expected a list with a value for each row"
            )
    counts = {name: len(values) for name, values in columns.items()}
    if len(set(counts.values())) > 1:
        raise MalformedError(f"the inputs differ in their number of rows: {counts}")
    if not counts:
        raise MalformedError(f"there is no input; expected {', '.join(schema.names)}")
    num_rows = next(iter(counts.values()))
    require_rows(num_rows, most_rows)
    return [
        {name: _plain(schema[name], values[row]) for name, values in columns.items()}
        for row in range(num_rows)
    ]


def _plain(field: Field, value: Any) -> Any:
    """A value with its {"b64": ...} as `RowDecoder` reads them."""
    if isinstance(field, List) and isinstance(value, list):
        return [_plain(field.of, item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict) or value.keys() != {"b64"} or not isinstance(value["b64"], str):
        return cast("Any", value)
    text: str = value["b64"]
    if isinstance(field, Bytes | Image):
        return text
    if isinstance(field, String):
        try:
            return base64.b64decode(text, validate=True).decode()
        except ValueError:  # no base64, or not of UTF-8
            return cast("Any", value)  # refused as what it is
    return cast("Any", value)


def _values(batch: Batch, non_finite: NonFinite | None) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {}
    errors: dict[int, RowError] = {}
    for name, field in batch.schema.items():
        values, problems = encode_column(batch[name], non_finite)
        if isinstance(field, Bytes) or (isinstance(field, Image) and field.form == "encoded"):
            values = [None if value is None else {"b64": value} for value in values]
        columns[name] = values
        for row, message in problems.items():
            errors.setdefault(row, RowError(row, "failed", f"field {name!r}: {message}", name))
    if errors:
        rows = [errors[row] for row in sorted(errors)]
        raise RowsError(
            f"{len(rows)} rows cannot be told in JSON; row {rows[0].row}: {rows[0].message}", rows
        )
    return columns


def _rows(columns: dict[str, list[Any]], num_rows: int) -> list[dict[str, Any]]:
    if not columns:
        return [{} for _ in range(num_rows)]
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
