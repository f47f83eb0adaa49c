"""TF Serving's and KServe's JSON: rows and columns, base64 objects, single fields alone."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from parity.codec import v1
from parity.codec.decoded import TooManyRowsError
from parity.codec.rows import RowDecoder
from parity.errors import MalformedError
from parity.schema import Bytes, Float32, Image, Int64, List, Schema, String, Struct, Tensor

TWO = Schema(x=Tensor("float32", (2,)), s=String(default="d"))
PNG = b"\x89PNG\r\n\x1a\n\x00"


def decode(schema: Schema, request: Any) -> v1.PredictRequest:
    return v1.decode_request(RowDecoder(schema), json.dumps(request).encode())


def b64(data: bytes) -> dict[str, str]:
    return {"b64": base64.b64encode(data).decode()}


@pytest.mark.parametrize(
    ("schema", "request_", "expected"),
    [
        (TWO, {"instances": [{"x": [1, 2]}, {"x": [3, 4], "s": "k"}]}, {"s": ["d", "k"]}),
        (TWO, {"inputs": {"x": [[1, 2], [3, 4]], "s": ["a", "b"]}}, {"s": ["a", "b"]}),
        (TWO, {"inputs": {"x": [[1, 2]]}, "signature_name": "serving_default"}, {"s": ["d"]}),
        (Schema(x=Float32()), {"instances": [1.5, {"x": 2.0}]}, {"x": [1.5, 2.0]}),
        (Schema(x=Float32()), {"inputs": [1.5, 2.0]}, {"x": [1.5, 2.0]}),
        (Schema(x=Image()), {"instances": [b64(PNG), {"x": b64(PNG)}]}, {"x": [PNG, PNG]}),
        (Schema(x=List(Bytes())), {"inputs": {"x": [[b64(b"a"), b64(b"")]]}}, {"x": [[b"a", b""]]}),
        (Schema(x=String()), {"instances": [b64("é".encode()), "k"]}, {"x": ["é", "k"]}),
        (Schema(x=Struct(b64=String())), {"instances": [{"b64": "YQ=="}]}, {"x": [{"b64": "YQ=="}]}),
    ],
)
def test_rows_and_columns_are_read(schema: Schema, request_: Any, expected: dict[str, list[Any]]) -> None:
    decoded = decode(schema, request_).decoded
    assert decoded.errors == ()
    for name, values in expected.items():
        assert decoded.batch[name].to_pylist() == values


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ([], "expected an object"),
        ({}, "either 'instances' or 'inputs'"),
        ({"instance": []}, "did you mean 'instance'"),
        ({"instances": [], "inputs": {}}, "either 'instances' or 'inputs'"),
        ({"instances": {}}, "expected a list of rows"),
        ({"instances": [], "signature_name": "other"}, "'other'"),
        ({"inputs": [[1, 2]]}, "an object with a list for each field"),
        ({"inputs": {}}, "there is no input"),
        ({"inputs": {"x": 3}}, "expected a list"),
        ({"inputs": {"y": []}}, "unexpected input 'y'"),
        ({"inputs": {"x": [[1, 2]], "s": []}}, "differ in their number of rows"),
    ],
)
def test_what_is_no_request_is_malformed(request_: Any, said: str) -> None:
    with pytest.raises(MalformedError) as caught:
        decode(TWO, request_)
    assert said in str(caught.value)


@pytest.mark.parametrize("request_", [{"instances": [{}] * 3}, {"inputs": {"x": [None] * 3}}])
def test_more_rows_than_are_taken_are_refused_before_one_is_read(request_: Any) -> None:
    body = json.dumps(request_).encode()
    with pytest.raises(TooManyRowsError, match="has 3 rows: expected at most 2"):
        v1.decode_request(RowDecoder(TWO), body, most_rows=2)
    assert len(v1.decode_request(RowDecoder(TWO), body, most_rows=3).decoded.errors) == 3


def test_a_row_that_does_not_fit_errs_alone() -> None:
    rows = [
        {"x": [1, 2]},
        7,
        {"x": [1]},
        {"y": 1, "x": [1, 2]},
        {"x": [1, 2], "s": b64(b"\xff")},
        {"x": [1, 2], "s": {"b64": "é"}},
    ]
    decoded = decode(TWO, {"instances": rows}).decoded
    assert decoded.index.tolist() == [0]
    assert [error.row for error in decoded.errors] == [1, 2, 3, 4, 5]
    assert "field 'x'" in decoded.errors[1].message


OUT = Schema(n=Int64(nullable=True), b=Bytes())


def test_answers_take_the_form_of_the_request() -> None:
    batch = RowDecoder(OUT).decode([{"n": 1, "b": "YQ=="}, {"n": None, "b": ""}]).batch
    rows = {"predictions": [{"n": 1, "b": {"b64": "YQ=="}}, {"n": None, "b": {"b64": ""}}]}
    columns = {"outputs": {"n": [1, None], "b": [{"b64": "YQ=="}, {"b64": ""}]}}
    cases: list[tuple[v1.Form, Any]] = [("row", rows), ("column", columns)]
    for form, expected in cases:
        text = v1.encode_response(batch, form)
        assert json.loads(text) == expected
        assert v1.decode_response(OUT, text).to_table().equals(batch.to_table())


def test_a_single_output_stands_alone() -> None:
    batch = RowDecoder(Schema(y=Float32())).decode([{"y": 0.1}, {"y": 2.0}]).batch
    assert v1.encode_response(batch, "row") == b'{"predictions":[0.1,2.0]}'
    assert v1.encode_response(batch, "column") == b'{"outputs":[0.1,2.0]}'
