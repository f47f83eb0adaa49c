"""JSON values of a wrong kind, and bodies of nothing, are told as JSON spells them, wherever they are."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from parity.codec import oip, v1
from parity.codec.form_body import expected_body, form_row, raw_row
from parity.codec.rejection import brief_json
from parity.codec.rows import RowDecoder
from parity.codec.text_rows import TextDecoder
from parity.errors import MalformedError
from parity.schema import Bytes, Image, Int64, List, Schema, String, Struct, Tensor

SCHEMA = Schema(x=Tensor("float32", (2,)), n=Int64())
WRONG = (None, True, False, [None, True], {"a": None, "b": [False]}, [[[[[None]]]]])
PYTHONS = re.compile(r"\b(None|True|False|dict|NoneType|bool)\b")

X = {"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1.0, 2.0]}
N = {"name": "n", "datatype": "INT64", "shape": [1], "data": [1]}


def refused(call: Callable[[], Any]) -> str:
    try:
        decoded = call()
    except MalformedError as exc:
        return str(exc)
    (error,) = getattr(decoded, "decoded", decoded).errors
    return error.message


def of_v2(**changes: Any) -> Callable[[Any], Any]:
    """A request in which one place, where the change says so, is the value."""

    def decode(value: Any) -> Any:
        request = {"inputs": [X, N]} | {key: place(value) for key, place in changes.items()}
        return oip.decode_request(SCHEMA, json.dumps(request).encode())

    return decode


def of_v1(place: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: v1.decode_request(RowDecoder(SCHEMA), json.dumps(place(value)).encode())


def of_row(schema: Schema, place: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: RowDecoder(schema).decode([place(value)])


PLACES: dict[str, Callable[[Any], Any]] = {
    "V2's request": lambda value: oip.decode_request(SCHEMA, json.dumps(value).encode()),
    "V2's id": of_v2(id=lambda value: [value]),
    "V2's parameters": of_v2(parameters=lambda value: [value]),
    "V2's inputs": of_v2(inputs=lambda value: {"a": value}),
    "an input of V2": of_v2(inputs=lambda value: [[value]]),
    "a name of V2": of_v2(inputs=lambda value: [{**X, "name": value}, N]),
    "a datatype of V2": of_v2(inputs=lambda value: [{**X, "datatype": value}, N]),
    "a shape of V2": of_v2(inputs=lambda value: [{**X, "shape": [value]}, N]),
    "data of V2": of_v2(inputs=lambda value: [{**X, "data": {"a": value}}, N]),
    "an element of V2": of_v2(inputs=lambda value: [{**X, "data": [1, {"a": value}]}, N]),
    "parameters of an input of V2": of_v2(inputs=lambda value: [{**X, "parameters": [value]}, N]),
    "a size of V2": of_v2(inputs=lambda value: [{**X, "parameters": {"binary_data_size": [value]}}, N]),
    "an output of V2": of_v2(outputs=lambda value: [[value]]),
    "an output's name of V2": of_v2(outputs=lambda value: [{"name": value}]),
    "a wish of V2": of_v2(parameters=lambda value: {"binary_data_output": [value]}),
    "V1's request": of_v1(lambda value: [value]),
    "V1's instances": of_v1(lambda value: {"instances": {"a": value}}),
    "an instance of V1": of_v1(lambda value: {"instances": [[value]]}),
    "V1's inputs": of_v1(lambda value: {"inputs": [value]}),
    "an input of V1": of_v1(lambda value: {"inputs": {"x": {"a": value}}}),
    "V1's signature": of_v1(lambda value: {"signature_name": [value], "instances": []}),
    "a row": of_row(SCHEMA, lambda value: [value]),
    "an integer": of_row(SCHEMA, lambda value: {"x": [1, 2], "n": [value]}),
    "a tensor": of_row(SCHEMA, lambda value: {"x": {"a": value}, "n": 1}),
    "an element": of_row(SCHEMA, lambda value: {"x": [[value], 2], "n": 1}),
    "a text": of_row(Schema(s=String()), lambda value: {"s": [value]}),
    "bytes": of_row(Schema(b=Bytes()), lambda value: {"b": [value]}),
    "an image": of_row(Schema(i=Image()), lambda value: {"i": [value]}),
    "an item": of_row(Schema(xs=List(Int64())), lambda value: {"xs": [1, [value]]}),
    "a list": of_row(Schema(xs=List(Int64())), lambda value: {"xs": {"a": value}}),
    "a struct": of_row(Schema(p=Struct(a=Int64())), lambda value: {"p": [value]}),
    "a row of text": lambda value: next(
        iter(TextDecoder(dict(SCHEMA.items())).lines([json.dumps([value]).encode()]).problems.values())
    ),
}


@pytest.mark.parametrize("value", WRONG, ids=[json.dumps(value) for value in WRONG])
@pytest.mark.parametrize("place", PLACES)
def test_a_value_of_a_wrong_kind_is_told_as_json_spells_it(place: str, value: Any) -> None:
    decode = PLACES[place]
    said = decode(value).message if place == "a row of text" else refused(lambda: decode(value))
    assert PYTHONS.search(said) is None, said


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (1, "1"),
        ("a", "'a'"),
        ("a" * 99, repr("a" * 60)[:59] + "…"),
        ([None, True], "[null, true]"),
        ([], "[]"),
        ([None] * 5, "list of 5 (null, …)"),
        ({"a": None}, "{'a': null}"),
        (dict.fromkeys("abcde"), "object of 5 keys"),
        ([[[[[1]]]]], "[[[…]]]"),
        (["a" * 50] * 4, repr(["a" * 50] * 4)[:59] + "…"),
    ],
)
def test_json_values_in_brief(value: Any, said: str) -> None:
    assert brief_json(value) == said


def test_values_of_any_depth_are_told() -> None:
    deep: Any = None
    for _ in range(5000):
        deep = [deep]
    assert brief_json(deep) == "[[[…]]]"


@pytest.mark.parametrize("body", [b"", b" ", b"\r\n\t"])
def test_a_body_of_nothing_is_told_with_what_was_expected(body: bytes) -> None:
    for decode, expected in (
        (lambda: oip.decode_request(SCHEMA, body), "a JSON object with 'inputs', a list of tensors"),
        (lambda: v1.decode_request(RowDecoder(SCHEMA), body), "a JSON object with 'instances' or 'inputs'"),
    ):
        assert refused(decode) == f"the body is empty: expected {expected}"


def test_a_file_of_nothing_is_told_with_what_was_expected_unless_bytes_may_be_none() -> None:
    image, rows = Schema(photo=Image()), "a JSON object (one row) or a list of objects"
    assert expected_body(image) == f"{rows}, or the file of the field 'photo' (Image)"
    assert refused(lambda: raw_row(image, b"")) == f"the body is empty: expected {expected_body(image)}"
    assert refused(lambda: raw_row(SCHEMA, b"")) == f"the body is empty: expected {rows}"
    assert raw_row(Schema(b=Bytes()), b"") == {"b": b""}
    assert "empty: expected a form" in refused(
        lambda: form_row(image, b"", "multipart/form-data; boundary=b")
    )
