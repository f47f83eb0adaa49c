"""Open Inference Protocol V2 as JSON: strict about names, datatypes, shapes and counts; rows err alone."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from parity.batch import Batch
from parity.codec import oip, oip_grpc
from parity.codec.decoded import TooManyRowsError
from parity.codec.rows import RowDecoder
from parity.errors import MalformedError, RowsError, SchemaError
from parity.schema import (
    BFloat16,
    Bool,
    Bytes,
    Date,
    Decimal,
    Float16,
    Float32,
    Float64,
    Image,
    Int64,
    List,
    Schema,
    String,
    Struct,
    Tensor,
    Timestamp,
    UInt8,
)

SCHEMA = Schema(x=Tensor("float32", (2,)), n=Int64(nullable=True), s=String(default="d"))
X = {"name": "x", "datatype": "FP32", "shape": [2, 2], "data": [1, 2, 3, 4.5]}
N = {"name": "n", "datatype": "INT64", "shape": [2], "data": [1, None]}


def decode(*inputs: dict[str, Any], schema: Schema = SCHEMA, **more: Any) -> oip.InferRequest:
    return oip.decode_request(schema, json.dumps({"inputs": list(inputs), **more}).encode())


def refusal(*inputs: dict[str, Any], schema: Schema = SCHEMA, **more: Any) -> str:
    with pytest.raises(MalformedError) as caught:
        decode(*inputs, schema=schema, **more)
    return str(caught.value)


def batch_of(schema: Schema, *rows: dict[str, Any]) -> Batch:
    decoded = RowDecoder(schema).decode(rows)
    assert decoded.errors == ()
    return decoded.batch


def test_metadata_tells_datatypes_and_shapes() -> None:
    schema = Schema(
        a=Bool(),
        b=UInt8(),
        c=Float16(),
        d=BFloat16(),
        e=Float64(),
        f=String(),
        g=Bytes(),
        h=Timestamp(),
        i=Date(),
        j=Decimal(),
        k=List(Int64()),
        l=Struct(a=Int64()),
        m=Image(),
        n=Image(form="array", channels=3),
        o=Tensor("bfloat16", (None, 2)),
        p=Tensor("bool", (1,)),
    )
    assert [(entry["datatype"], entry["shape"]) for entry in oip.describe(schema)] == [
        ("BOOL", [-1]),
        ("UINT8", [-1]),
        ("FP16", [-1]),
        ("BF16", [-1]),
        ("FP64", [-1]),
        *[("BYTES", [-1])] * 8,
        ("UINT8", [-1, -1, -1, 3]),
        ("BF16", [-1, -1, 2]),
        ("BOOL", [-1, 1]),
    ]


def test_a_request_becomes_rows() -> None:
    asked = decode(X, N, id="7", outputs=[{"name": "y"}], parameters={"p": 1})
    assert (asked.id, asked.outputs, asked.parameters) == ("7", ("y",), {"p": 1})
    batch = asked.decoded.batch
    assert batch["x"].numpy().tolist() == [[1, 2], [3, 4.5]]
    assert batch["n"].to_pylist() == [1, None]
    assert batch["s"].to_pylist() == ["d", "d"]
    bare = decode(X, N, outputs=[])
    assert (bare.id, bare.outputs, bare.parameters) == (None, None, {})


@pytest.mark.parametrize("data", [[[1, 2], [3, 4.5]], [1, 2, 3, 4.5], [[[1], [2]], [[3], [4.5]]]])
def test_data_may_be_flat_or_nested(data: Any) -> None:
    assert decode({**X, "data": data}, N).decoded.batch["x"].numpy().tolist() == [[1, 2], [3, 4.5]]


def test_a_scalar_may_have_a_dimension_of_one() -> None:
    assert decode(X, {**N, "shape": [2, 1], "data": [[1], [None]]}).decoded.batch["n"].to_pylist() == [
        1,
        None,
    ]


def test_a_bad_value_is_its_rows_error() -> None:
    decoded = decode({**X, "data": [1, 2, True, 4]}, {**N, "shape": [2], "data": [1.0, 2]}).decoded
    assert [(error.row, error.field) for error in decoded.errors] == [(0, "n"), (1, "x")]
    assert decoded.errors[1].message.startswith("field 'x' at [0]: true is of type boolean")
    assert decoded.batch.num_rows == 0
    one = decode({**X, "data": [1, 2, None, 4]}, N).decoded
    assert one.index.tolist() == [0]
    assert one.batch["x"].numpy().tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        (
            [{**X, "datatype": "FP64"}, N],
            "inference input 'x' data-type is 'FP64', but the schema says 'FP32'",
        ),
        ([{**X, "datatype": "fp32"}, N], "data-type is 'fp32'"),
        (
            [{**X, "shape": [4], "data": [1] * 4}, N],
            "unexpected shape for input 'x'. Expected [-1, 2], got [4]",
        ),
        ([{**X, "shape": [1] * 100_000}, N], "1, 1…. The first dimension is the rows"),
        ([{**X, "shape": [2, 3]}, N], "Expected [-1, 2], got [2, 3]"),
        ([X, {**N, "shape": [2, 2]}], "unexpected shape for input 'n'. Expected [-1], got [2, 2]"),
        ([X, {**N, "shape": [], "data": [1]}], "got []"),
        ([{**X, "shape": [2, -1]}, N], "has shape [2, -1]; expected a list of sizes"),
        ([{**X, "shape": [2, True]}, N], "expected a list of sizes"),
        ([{**X, "shape": "2,2"}, N], "expected a list of sizes"),
        ([{**X, "data": [1, 2, 3]}, N], "has 3 elements in 'data', but its shape [2, 2] needs 4"),
        ([{**X, "data": [[1, 2], 3, 4]}, N], "mixes lists with elements"),
        ([{**X, "data": 3}, N], "has data 3; expected a list"),
        (
            [{"name": "x", "datatype": "FP32", "shape": [2, 2]}, N],
            "has no 'data'; send its elements as a list",
        ),
        (
            [{"name": "x", "datatype": "FP32", "shape": [1, 2], "parameters": {"binary_data_size": 8}}],
            "has no header Inference-Header-Content-Length",
        ),
        ([X, X, N], "input 'x' is there twice"),
        ([X, {**N, "name": "m"}], "unexpected inference input 'm'; known: 'n', 's', 'x'"),
        ([X, {**N, "name": 1}], "an input has name 1; expected a string"),
        ([X, "n"], "an input is 'n'; expected a JSON object"),
        ([X], "input 'n' (Int64 or null) is missing"),
        ([X, {**N, "shape": [3], "data": [1, 2, 3]}], "differ in their number of rows"),
        ([], "there is no input; expected x, n, s"),
    ],
)
def test_a_request_that_does_not_fit_is_malformed(inputs: list[Any], text: str) -> None:
    assert text in refusal(*inputs)


def test_the_envelope_is_checked() -> None:
    assert "the request's id 7 is not a string" in refusal(X, N, id=7)
    assert "parameters is [1]; expected a JSON object" in refusal(X, N, parameters=[1])
    assert "'outputs' must be a list" in refusal(X, N, outputs={"name": "y"})
    assert "has name null; expected a string" in refusal(X, N, outputs=[{}])
    for body, text in [
        (b"{", "not JSON"),
        (b"[]", "the request is []; expected a JSON object"),
        (b"{}", "'inputs' must be a list of tensors, and is missing"),
        (b'{"input": []}', "did you mean 'input'?"),
        (b'{"inputs": {}}', "'inputs' must be a list of tensors, got {}"),
    ]:
        with pytest.raises(MalformedError) as caught:
            oip.decode_request(SCHEMA, body)
        assert text in str(caught.value)


def test_unknown_outputs_are_refused_early_and_late() -> None:
    outputs = Schema(label=Int64())
    body = json.dumps({"inputs": [X, N], "outputs": [{"name": "labell"}]}).encode()
    with pytest.raises(MalformedError, match="unexpected inference output 'labell'; did you mean 'label'"):
        oip.decode_request(SCHEMA, body, outputs=outputs)
    with pytest.raises(MalformedError, match="unexpected inference output 'labell'"):
        oip.encode_response(batch_of(outputs, {"label": 1}), "m", outputs=["labell"])


def test_rows_that_cost_nothing_to_send_are_limited() -> None:
    schema = Schema(v=Tensor("float32", (None, None)))
    for shape, text in [
        ([10**9, 0, 1], "rows without an element; at most 65536"),
        ([1, 0, 2**31], "a dimension is at most 2147483647"),
        ([2**40, 0, 0], "a dimension is at most 2147483647"),
    ]:
        tensor = {"name": "v", "datatype": "FP32", "shape": shape, "data": []}
        assert text in refusal(tensor, schema=schema)
    tensor = {"name": "v", "datatype": "FP32", "shape": [3, 0, 5], "data": []}
    arrays = decode(tensor, schema=schema).decoded.batch["v"].arrays()
    assert [array.shape for array in arrays if array is not None] == [(0, 5)] * 3


def test_more_rows_than_are_taken_are_refused_before_one_is_read() -> None:
    rows = 3
    tensor = {"name": "n", "datatype": "INT64", "shape": [rows], "data": ["no number"] * rows}
    body = json.dumps({"inputs": [tensor]}).encode()
    schema = Schema(n=Int64())
    with pytest.raises(TooManyRowsError, match="has 3 rows: expected at most 2"):
        oip.decode_request(schema, body, most_rows=2)
    assert len(oip.decode_request(schema, body, most_rows=3).decoded.errors) == 3
    message = oip_grpc.encode_request(batch_of(schema, *[{"n": 1}] * rows), "m")
    with pytest.raises(TooManyRowsError, match="has 3 rows: expected at most 2"):
        oip_grpc.decode_request(schema, message, most_rows=2)
    assert oip_grpc.decode_request(schema, message, most_rows=3).decoded.num_rows == 3


def test_no_rows_are_a_request_too() -> None:
    decoded = decode({**X, "shape": [0, 2], "data": []}, {**N, "shape": [0], "data": []}).decoded
    assert decoded.batch.num_rows == 0


def test_a_response_is_written_in_the_schemas_order() -> None:
    schema = Schema(label=Int64(), p=Float32(), v=Tensor("float16", (2,)), names=List(String()))
    batch = batch_of(schema, {"label": 2**53 + 1, "p": 0.1, "v": [0.1, 1], "names": ["é", 'q"']})
    body = oip.encode_response(batch, "films", "3", id="r1", outputs=["p", "label"])
    assert body == (
        b'{"model_name":"films","model_version":"3","id":"r1","outputs":['
        b'{"name":"label","datatype":"INT64","shape":[1],"data":[9007199254740993]},'
        b'{"name":"p","datatype":"FP32","shape":[1],"data":[0.1]}]}'
    )
    whole = json.loads(oip.encode_response(batch, "films"))
    assert set(whole) == {"model_name", "outputs"}
    assert whole["outputs"][2]["data"] == [0.1, 1.0]
    assert whole["outputs"][3]["data"] == ['["é","q\\""]']
    back = oip.decode_response(schema, oip.encode_response(batch, "films"))
    assert back.to_table().equals(batch.to_table())


def test_nan_in_a_response_names_its_row() -> None:
    batch = batch_of(Schema(p=Float32()), {"p": 1}, {"p": "NaN"})
    with pytest.raises(RowsError, match="row 1: field 'p': NaN has no token in JSON") as caught:
        oip.encode_response(batch, "m")
    assert [error.row for error in caught.value.errors] == [1]
    assert b'"data":[1.0,"NaN"]' in oip.encode_request(batch)
    declared = batch_of(Schema(p=Float32(non_finite="string")), {"p": "NaN"})
    assert b'"data":["NaN"]' in oip.encode_response(declared, "m")


def test_tensors_of_different_shapes_cannot_share_a_request() -> None:
    batch = batch_of(Schema(v=Tensor("int8", (None,))), {"v": [1]}, {"v": [1, 2]})
    with pytest.raises(SchemaError, match=r"\[\[1\], \[2\]\] cannot share a V2 request"):
        oip.encode_request(batch)
    assert oip.decode_request(batch.schema, oip.encode_request(batch.slice(1, 2))).decoded.errors == ()


def test_a_null_tensor_is_a_tensor_of_nulls() -> None:
    schema = Schema(v=Tensor("float32", (2,), nullable=True))
    batch = batch_of(schema, {"v": None}, {"v": [1, 2]})
    request = json.loads(oip.encode_request(batch))
    assert request["inputs"][0]["data"] == [[None, None], [1.0, 2.0]]
    decoded = oip.decode_request(schema, json.dumps(request).encode()).decoded
    assert decoded.batch["v"].null_count == 1
    empty = batch_of(Schema(v=Tensor("float32", (None,), nullable=True)), {"v": None}, {"v": []})
    with pytest.raises(SchemaError, match="cannot tell a null tensor from an empty one"):
        oip.encode_request(empty)


def test_json_inside_bytes_elements_is_checked() -> None:
    schema = Schema(items=List(Int64()))
    tensor = {"name": "items", "datatype": "BYTES", "shape": [4], "data": ["[1]", "[1", "[1.5]", None]}
    decoded = decode(tensor, schema=schema).decoded
    assert decoded.batch["items"].to_pylist() == [[1]]
    assert ["not JSON" in decoded.errors[0].message, "at [0]: 1.5" in decoded.errors[1].message] == [
        True,
        True,
    ]
    assert "null is not allowed" in decoded.errors[2].message


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"error": "boom"}, "the server answered with an error: boom"),
        ({"outputs": [{"name": "p", "datatype": "FP32", "shape": [1], "data": ["x"]}]}, "row 0: field 'p'"),
        ({"outputs": []}, "there is no output; expected p"),
        ({}, "'outputs' must be a list of tensors"),
    ],
)
def test_a_response_that_does_not_fit_is_malformed(body: Any, text: str) -> None:
    with pytest.raises(MalformedError) as caught:
        oip.decode_response(Schema(p=Float32()), json.dumps(body).encode())
    assert text in str(caught.value)


def test_the_schema_of_another_equal_handler_is_served_by_the_same_decoders() -> None:
    first, second = (Schema(x=Tensor("float32", (1,))) for _ in range(2))
    for schema in (first, second):
        tensor = {"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [0.1]}
        assert decode(tensor, schema=schema).decoded.batch["x"].numpy()[0, 0] == np.float32(0.1)
