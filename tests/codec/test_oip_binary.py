"""V2 tensors as bytes: exact, strict about sizes; what is sent wrongly is refused by name."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
import pytest

from parity.batch import Batch
from parity.codec import oip
from parity.codec.rows import RowDecoder
from parity.errors import MalformedError
from parity.schema import (
    Bool,
    Bytes,
    Field,
    Float32,
    Image,
    Int16,
    Int64,
    Schema,
    String,
    Struct,
    Tensor,
    Timestamp,
)

SCHEMA = Schema(x=Tensor("float32", (2,)), s=String(default="d"))


def message(tail: bytes, *inputs: dict[str, Any], **more: Any) -> tuple[bytes, int]:
    text = json.dumps({"inputs": list(inputs), **more}).encode()
    return text + tail, len(text)


def tensor(name: str, kind: str, shape: list[int], size: object, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "datatype": kind,
        "shape": shape,
        "parameters": {"binary_data_size": size},
        **more,
    }


def texts(*values: bytes) -> bytes:
    return b"".join(struct.pack("<I", len(value)) + value for value in values)


def decode(schema: Schema, tail: bytes, *inputs: dict[str, Any], **more: Any) -> oip.InferRequest:
    body, length = message(tail, *inputs, **more)
    return oip.decode_request(schema, body, json_length=length)


def one(field: Field, kind: str, shape: list[int], data: bytes) -> oip.InferRequest:
    return decode(Schema(a=field), data, tensor("a", kind, shape, len(data)))


def test_tensors_are_taken_in_the_order_of_the_json() -> None:
    floats = np.array([[1, np.nan], [-0.0, np.inf]], "<f4").tobytes()
    names = texts("é".encode(), b"")
    inputs = [tensor("s", "BYTES", [2], len(names)), tensor("x", "FP32", [2, 2], len(floats))]
    batch = decode(SCHEMA, names + floats, *inputs).decoded.batch
    assert batch["s"].to_pylist() == ["é", ""]
    assert batch["x"].numpy().tobytes() == floats


def test_json_and_bytes_mix() -> None:
    floats = np.array([[1, 2]], "<f4").tobytes()
    inputs = [{"name": "s", "datatype": "BYTES", "shape": [1], "data": ["k"]}, tensor("x", "FP32", [1, 2], 8)]
    batch = decode(SCHEMA, floats, *inputs).decoded.batch
    assert (batch["s"].to_pylist(), batch["x"].numpy().tolist()) == (["k"], [[1.0, 2.0]])


def test_raw_bytes_need_no_base64() -> None:
    picture = b"\x89PNG\r\n\x1a\n\x00\xff"
    assert one(Image(), "BYTES", [1], texts(picture)).decoded.batch["a"].to_pylist() == [picture]
    assert one(Bytes(), "BYTES", [2], texts(b"\xff", b"")).decoded.batch["a"].to_pylist() == [b"\xff", b""]


@pytest.mark.parametrize(
    ("field", "kind", "data", "said"),
    [
        (Int16(ge=0), "INT16", np.array([1, -1], "<i2").tobytes(), "-1 is out of range 0 to 32767"),
        (Bool(), "BOOL", b"\x01\x02", "the byte 2 is no boolean"),
        (String(), "BYTES", texts(b"a", b"\xff"), "is not UTF-8"),
        (String(choices=("a",)), "BYTES", texts(b"a", b"b"), "'b' is not one of the choices"),
        (Image(), "BYTES", texts(b"BM", b"no"), "no image file"),
        (Timestamp("s"), "BYTES", texts(b"2020-01-01T00:00:00", b"soon"), "'soon'"),
        (Struct(n=Int64()), "BYTES", texts(b'{"n":1}', b"{"), "JSON"),
    ],
)
def test_a_value_that_does_not_fit_is_an_error_of_its_row(
    field: Field, kind: str, data: bytes, said: str
) -> None:
    decoded = one(field, kind, [2], data).decoded
    assert decoded.index.tolist() == [0]
    assert [error.row for error in decoded.errors] == [1]
    assert said in decoded.errors[0].message
    assert "field 'a'" in decoded.errors[0].message


@pytest.mark.parametrize(
    ("tail", "inputs", "said"),
    [
        (b"\0" * 7, [tensor("x", "FP32", [1, 2], 7)], "expected 8 bytes (2 elements of 4), got 7"),
        (b"\0" * 7, [tensor("x", "FP32", [1, 2], 8)], "says it has 8 bytes, but 7 are left in the body"),
        (b"\0" * 9, [tensor("x", "FP32", [1, 2], 8)], "unexpected additional input data: 1 bytes"),
        (b"\0" * 8, [tensor("x", "FP32", [1, 2], 8, data=[1, 2])], "both 'data' and 'binary_data_size'"),
        (b"\0" * 8, [tensor("x", "FP32", [1, 2], "8")], "binary_data_size '8'"),
        (b"\0" * 8, [tensor("x", "FP32", [1, 2], -8)], "binary_data_size -8"),
        (b"\0" * 8, [tensor("x", "FP64", [1, 1], 8)], "'FP32'"),
        (b"\0\0", [tensor("s", "BYTES", [1], 2)], "ends within the length of element 0"),
        (texts(b"abc")[:-1], [tensor("s", "BYTES", [1], 6)], "element 0 says it has 3 bytes, but 2 are left"),
        (texts(b"a", b"b"), [tensor("s", "BYTES", [1], 10)], "more than 1 elements, its shape needs 1"),
        (texts(b"a"), [tensor("s", "BYTES", [2], 5)], "has 1 elements, its shape needs 2"),
        (b"", [{"name": "x", "datatype": "FP32", "shape": [1, 2], "parameters": 3}], "parameters 3"),
        (
            b"",
            [{**tensor("x", "FP32", [1, 2], 8), "parameters": {"shared_memory_region": "r"}}],
            "shared memory is not offered",
        ),
    ],
)
def test_a_body_whose_sizes_contradict_each_other_is_malformed(
    tail: bytes, inputs: list[dict[str, Any]], said: str
) -> None:
    with pytest.raises(MalformedError) as caught:
        decode(SCHEMA if inputs[0]["name"] == "x" else Schema(s=String()), tail, *inputs)
    assert said in str(caught.value)


@pytest.mark.parametrize("length", [-1, 10_000])
def test_a_json_length_beyond_the_body_is_malformed(length: int) -> None:
    with pytest.raises(MalformedError, match=f"Inference-Header-Content-Length is {length}"):
        oip.decode_request(SCHEMA, b"{}", json_length=length)


@pytest.mark.parametrize(
    ("schema", "body", "expected"),
    [
        (SCHEMA, np.array([1, 2], "<f4").tobytes(), [[1.0, 2.0]]),
        (
            Schema(x=Tensor("int16", (None, 2))),
            np.arange(6, dtype="<i2").tobytes(),
            [[[0, 1], [2, 3], [4, 5]]],
        ),
        (Schema(x=Image()), b"BMxyz", [b"BMxyz"]),
        (Schema(x=String()), "né".encode(), ["né"]),
        (Schema(x=Float32()), np.array(0.5, "<f4").tobytes(), [0.5]),
    ],
)
def test_a_raw_body_is_one_row_of_the_one_input(schema: Schema, body: bytes, expected: list[Any]) -> None:
    request = oip.decode_request(schema, body, json_length=0)
    found = [np.asarray(value).tolist() if isinstance(value, list | np.ndarray) else value
             for value in request.decoded.batch["x"].to_pylist()]  # fmt: skip
    assert found == expected
    assert request.wants_bytes("anything")


@pytest.mark.parametrize(
    ("schema", "body", "said"),
    [
        (Schema(a=Int64(), b=Int64()), b"\0" * 8, "models of one input"),
        (Schema(a=Int64()), b"\0" * 7, "expected 8 bytes"),
        (Schema(a=Tensor("int16", (None, 2))), b"\0" * 7, "7 bytes do not tell a shape"),
        (Schema(a=Tensor("int16", (None, None))), b"\0" * 8, "8 bytes do not tell a shape"),
    ],
)
def test_a_raw_body_that_tells_no_row_is_malformed(schema: Schema, body: bytes, said: str) -> None:
    with pytest.raises(MalformedError) as caught:
        oip.decode_request(schema, body, json_length=0)
    assert said in str(caught.value)


ANSWERS = Schema(x=Float32(), s=String(), n=Int64(nullable=True))


def answers() -> Batch:
    rows = [{"x": "NaN", "s": "é", "n": None}, {"x": 0.5, "s": "", "n": 2}]
    return RowDecoder(ANSWERS).decode(rows).batch


def asked(outputs: object = None, **parameters: object) -> oip.InferRequest:
    more: dict[str, Any] = {"parameters": parameters} if parameters else {}
    if outputs is not None:
        more["outputs"] = outputs
    body = json.dumps(
        {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}], **more}
    )
    return oip.decode_request(SCHEMA, body.encode(), outputs=ANSWERS)


def test_outputs_come_as_bytes_where_that_is_asked_for_and_null_stays_json() -> None:
    request = asked([{"name": "s", "parameters": {"binary_data": False}}, {"name": "x"}, {"name": "n"}],
                    binary_data_output=True)  # fmt: skip
    body, length = oip.encode_binary_response(answers(), request, "m", "1")
    head = json.loads(body[:length])
    assert head["outputs"] == [
        {"name": "x", "datatype": "FP32", "shape": [2], "parameters": {"binary_data_size": 8}},
        {"name": "s", "datatype": "BYTES", "shape": [2], "data": ["é", ""]},
        {"name": "n", "datatype": "INT64", "shape": [2], "data": [None, 2]},
    ]
    assert np.isnan(np.frombuffer(body[length:], "<f4")[0])
    found = oip.decode_response(ANSWERS, body, length)
    assert found["n"].to_pylist() == [None, 2]


def test_one_output_may_come_as_bytes() -> None:
    request = asked([{"name": "s", "parameters": {"binary_data": True}}])
    body, length = oip.encode_binary_response(answers(), request, "m")
    assert body[length:] == texts("é".encode(), b"")


def test_without_bytes_the_body_is_json() -> None:
    body, length = oip.encode_binary_response(answers().slice(1, 2), asked(), "m")
    assert length is None
    assert json.loads(body)["outputs"][0]["data"] == [0.5]


@pytest.mark.parametrize(
    ("outputs", "parameters", "said"),
    [
        ([{"name": "s", "parameters": {"binary_data": 1}}], {}, "binary_data 1"),
        ([{"name": "s", "parameters": []}], {}, "parameters"),
        ([{"name": "s", "parameters": {"classification": 2}}], {}, "classification extension"),
        (None, {"binary_data_output": "yes"}, "binary_data_output is 'yes'"),
    ],
)
def test_a_wrong_wish_is_malformed(outputs: object, parameters: dict[str, object], said: str) -> None:
    with pytest.raises(MalformedError) as caught:
        asked(outputs, **parameters)
    assert said in str(caught.value)
