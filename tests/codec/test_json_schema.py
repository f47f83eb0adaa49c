"""JSON Schema agrees with the decoder: what it accepts is read, and what is written validates."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given

from parity.batch import Batch
from parity.codec.json_schema import input_schema, output_schema, row_schema
from parity.codec.rows import dumps, encode_rows, loads
from parity.errors import RowError
from parity.schema import (
    Bytes,
    Date,
    Decimal,
    Field,
    Float32,
    Float64,
    Image,
    Int8,
    Int64,
    List,
    Schema,
    String,
    Struct,
    Tensor,
    Timestamp,
)
from tests.strategies import batches


def told(field: Field) -> Any:
    return input_schema(Schema(x=field))["properties"]["x"]


def test_a_row_is_an_object_of_known_keys() -> None:
    schema = Schema(a=Int8(doc="how many"), b=String(default="x", nullable=True))
    assert row_schema(schema) == {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "minimum": -128, "maximum": 127, "description": "how many"},
            "b": {"type": ["string", "null"], "default": "x"},
        },
        "required": ["a"],
        "additionalProperties": False,
    }
    assert output_schema(schema)["required"] == ["a", "b"]
    assert "default" not in output_schema(schema)["properties"]["b"]


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        (Int64(ge=0), {"type": "integer", "format": "int64", "minimum": 0, "maximum": 2**63 - 1}),
        (
            Int8(choices=(1, 2), nullable=True),
            {"type": ["integer", "null"], "minimum": -128, "maximum": 127, "enum": [1, 2, None]},
        ),
        (
            Float32(le=1),
            {
                "anyOf": [
                    {"type": "number", "format": "float", "maximum": 1},
                    {"enum": ["NaN", "Infinity", "-Infinity"]},
                ]
            },
        ),
        (String(max_length=3, choices=("a",)), {"type": "string", "maxLength": 3, "enum": ["a"]}),
        (Bytes(), {"type": "string", "format": "byte", "contentEncoding": "base64"}),
        (Date(nullable=True), {"type": ["string", "null"], "format": "date"}),
        (List(Int8()), {"type": "array", "items": {"type": "integer", "minimum": -128, "maximum": 127}}),
    ],
)
def test_fields_in_json_schema(field: Field, expected: Any) -> None:
    assert told(field) == expected


def test_shapes_formats_and_defaults() -> None:
    found = told(Tensor("uint8", (None, 2)))
    assert "minItems" not in found
    assert found["items"]["minItems"] == found["items"]["maxItems"] == 2
    assert found["items"]["items"] == {"type": "integer", "minimum": 0, "maximum": 255}
    assert told(Timestamp(tz="UTC"))["format"] == "date-time"
    assert "pattern" in told(Timestamp())
    assert (
        told(Timestamp(tz="UTC", default="2024-01-01T01:00:00+01:00"))["default"]
        == "2024-01-01T00:00:00.000000Z"
    )
    assert told(Decimal(scale=2, default=1))["default"] == "1.00"
    assert told(Tensor("float32", (2,), default=[0.1, "NaN"]))["default"] == [0.1, "NaN"]
    assert told(Image())["title"].startswith("a JPEG, PNG")
    assert told(Struct(a=Int8(), nullable=True))["type"] == ["object", "null"]
    assert told(Float64(nullable=True))["anyOf"][1] == {"type": "null"}


def test_answers_hold_no_strings_for_numbers_unless_declared() -> None:
    refused = output_schema(Schema(x=Float64()))["properties"]["x"]
    assert refused == {"type": "number", "format": "double"}
    declared = output_schema(Schema(x=Float64(non_finite="string")))["properties"]["x"]
    assert declared["anyOf"][1] == {"enum": ["NaN", "Infinity", "-Infinity"]}


@pytest.mark.slow
@given(batches())
def test_every_row_that_is_written_validates(batch: Batch) -> None:
    described = input_schema(batch.schema)
    jsonschema.Draft202012Validator.check_schema(described)
    check = jsonschema.Draft202012Validator(described)
    for row in encode_rows(batch, non_finite="string"):
        if not isinstance(row, RowError):
            check.validate(loads(dumps(row)))
