"""Rows one by one: isolation, missing keys against nulls, JSON in and out."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parity.codec.decoded import RowInvalidError
from parity.codec.json_text import loads_body
from parity.codec.rows import RowDecoder, dumps, encode_rows, loads
from parity.errors import MalformedError, RowError
from parity.schema import (
    BFloat16,
    Bytes,
    Date,
    Decimal,
    Float16,
    Float32,
    Float64,
    Int64,
    List,
    Schema,
    String,
    Struct,
    Tensor,
    Timestamp,
    UInt64,
)
from tests.codec.identity import assert_same_bits
from tests.strategies import batches

ROW = Schema(age=Int64(), score=Float32(nullable=True), tag=String(default="none"))


def refusal(schema: Schema, row: Any) -> RowInvalidError:
    with pytest.raises(RowInvalidError) as caught:
        RowDecoder(schema).decode_one(row)
    return caught.value


def told(schema: Schema, row: dict[str, Any], **options: Any) -> Any:
    """One row, decoded and written again as JSON text; or its error."""
    decoder = RowDecoder(schema)
    found = encode_rows(decoder.build([decoder.decode_one(row)]), **options)[0]
    return found if isinstance(found, RowError) else dumps(found).decode()


def test_a_row_becomes_a_tuple_in_the_schemas_order() -> None:
    assert RowDecoder(ROW).decode_one({"tag": "x", "score": None, "age": 1}) == (1, None, "x")
    assert RowDecoder(ROW).decode_one(OrderedDict(score=0.5, age=2)) == (2, 0.5, "none")


def test_null_missing_and_nan_are_three_things() -> None:
    assert refusal(ROW, {"score": 1}).message == (
        "field 'age': the key is missing; expected Int64; send it, or declare a default"
    )
    assert refusal(ROW, {"age": None, "score": 1}).message == (
        "field 'age': null is not allowed here; expected Int64; send a value, or declare nullable=True "
        "(null, NaN and a missing key are three things)"
    )
    assert "NaN is a float, not null" in refusal(ROW, {"age": float("nan"), "score": 1}).message
    assert "null is allowed, and is not the same as a missing key" in refusal(ROW, {"age": 1}).message
    assert "null is not allowed" in refusal(ROW, {"age": 1, "score": 1, "tag": None}).message


def test_an_unknown_key_is_refused_with_near_names() -> None:
    error = refusal(ROW, {"age": 1, "score": 1, "tgs": "x"})
    assert error.field is None
    assert error.message == "unknown key 'tgs' (did you mean 'tag'?); remove it, or declare the field"
    error = refusal(ROW, {"aeg": 1, "score": 1})
    assert error.field == "age"
    assert error.message.endswith("the row has an unknown key 'aeg' (did you mean 'tag' or 'age'?)")
    assert "unknown key 1" in refusal(ROW, {"age": 1, "score": 1, 1: 2}).message


@pytest.mark.parametrize("row", [None, [1], "x", 3, [("age", 1)]])
def test_a_row_that_is_no_object_is_refused(row: Any) -> None:
    assert "expected an object with one key for each field" in refusal(ROW, row).message


def test_bad_rows_leave_their_neighbours_alone() -> None:
    rows = [{"age": n, "score": None} for n in range(6)]
    rows[1] = {"age": 0.5, "score": None}  # type: ignore[dict-item]
    rows[4] = None  # type: ignore[call-overload]
    decoded = RowDecoder(ROW).decode(rows)
    assert decoded.num_rows == 6
    assert decoded.index.tolist() == [0, 2, 3, 5]
    assert decoded.batch["age"].numpy().tolist() == [0, 2, 3, 5]
    assert [(error.row, error.kind, error.field) for error in decoded.errors] == [
        (1, "invalid", "age"),
        (4, "invalid", None),
    ]
    assert not decoded.index.flags.writeable


def test_no_rows_make_an_empty_batch_of_the_schema() -> None:
    decoded = RowDecoder(ROW).decode([])
    assert decoded.batch.num_rows == 0
    assert decoded.batch.to_table().schema == ROW.to_arrow()


@pytest.mark.slow
@given(batches(), st.data())
def test_the_good_rows_are_what_they_would_be_alone(batch: Any, data: st.DataObject) -> None:
    texts = [dumps(row) for row in encode_rows(batch, non_finite="string") if not isinstance(row, RowError)]
    rows = [loads(text) for text in texts]
    bad = data.draw(st.lists(st.sampled_from([None, {}, {"zzz": 1}, []]), max_size=3))
    mixed = data.draw(st.permutations([*((True, row) for row in rows), *((False, row) for row in bad)]))
    decoder = RowDecoder(batch.schema)
    decoded = decoder.decode([row for _, row in mixed])
    assert decoded.index.tolist() == [place for place, (good, _) in enumerate(mixed) if good]
    assert [error.row for error in decoded.errors] == [
        place for place, (good, _) in enumerate(mixed) if not good
    ]
    assert_same_bits(decoded.batch, decoder.decode([row for good, row in mixed if good]).batch)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (b"", "not JSON"),
        (b"[1,]", "line 1 column 3"),
        (b'{"x": NaN}', 'send the string "NaN"'),
        (b"[-Infinity]", 'send the string "NaN"'),
        (b"\xff", "not JSON"),
        (b'"\\ud800"', "surrogate"),
        (b"[" * 2000 + b"]" * 2000, "depth limit"),
    ],
)
def test_what_is_not_json_is_malformed(text: bytes, part: str) -> None:
    with pytest.raises(MalformedError, match="not JSON") as caught:
        loads(text)
    assert part in str(caught.value)


KINDS = [bytes, bytearray, memoryview, bytes.decode]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "text", [b'{"a":{"b":":"}}', b'[{"a":1}, {"a":2}]', b' [1,"\xef\xbb\xbf"]\n', b"null"]
)
def test_a_byte_order_mark_is_passed_over(kind: Callable[[bytes], Any], text: bytes) -> None:
    assert loads(kind(BOM_UTF8 + text)) == json.loads(text)
    assert loads(kind(text)) == json.loads(text)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("text", "part"),
    [
        (BOM_UTF8, "not JSON"),
        (BOM_UTF8 + b"[1,]", "line 1 column 3"),
        (BOM_UTF8 + b"[NaN]", 'send the string "NaN"'),
        (
            BOM_UTF8 + b'[{"a":1,"a":2}]',
            "in item 0 of the list, counted from 0, an object has the key 'a' twice",
        ),
        (BOM_UTF8 + BOM_UTF8 + b"1", "not JSON"),
        (b" " + BOM_UTF8 + b"1", "not JSON"),
        (b"[1]" + BOM_UTF8, "not JSON"),
    ],
)
def test_what_is_not_json_is_malformed_behind_a_byte_order_mark_too(
    kind: Callable[[bytes], Any], text: bytes, part: str
) -> None:
    """One mark, at the very start."""
    with pytest.raises(MalformedError) as caught:
        loads(kind(text))
    assert part in str(caught.value)


@pytest.mark.parametrize("text", [b"", b" \n", BOM_UTF8, BOM_UTF8 + b"\r\n"])
@pytest.mark.parametrize("kind", [bytes, memoryview])
def test_an_empty_body_is_told_as_one(kind: Callable[[bytes], Any], text: bytes) -> None:
    with pytest.raises(MalformedError, match="the body is empty: expected a row"):
        loads_body(kind(text), "a row")


@pytest.mark.parametrize(
    "text",
    [
        b'{"a":1,"a":2}',
        b'{"a":1,"b":2,"a":3}',
        b'{"b":{"a":1,"a":1}}',
        b'[{"b":{"a":":","x":[{"a":1 , "a" :1}]}}]',
        b'{"\\u0061":1,"a":2}',
        b'{"url":"http://x","a":":\\":","a":[{}]}',
    ],
)
def test_a_key_that_is_there_twice_is_malformed(text: bytes) -> None:
    for form in (text, bytearray(text), memoryview(text), text.decode()):
        with pytest.raises(MalformedError, match="has the key 'a' twice; each key may be there once"):
            loads(form)


@pytest.mark.parametrize(
    ("text", "item"),
    [
        (b'[{"a":1},{"a":true},{"a":1,"a":2}]', 2),
        (b'[{"a":1,"a":2},{"a":1,"a":2}]', 0),
        (b'[[],3,{"b":[{"c":[[{"a":1,"a":2}]]}]}]', 2),
        (b'[[{"a":1,"a":2}]]', 0),
    ],
)
def test_of_a_list_it_is_told_which_item_has_the_key_twice(text: bytes, item: int) -> None:
    with pytest.raises(MalformedError, match=rf"in item {item} of the list, counted from 0, an object has"):
        loads(text)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-9, 9) | st.text(':"\\a{},é\n'),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(':"\\a é'), inner, max_size=3),
    )
)
def test_keys_that_are_there_once_are_read(value: object) -> None:
    assert loads(json.dumps(value)) == value
    assert loads(json.dumps(value, ensure_ascii=False, indent=1).encode()) == value


def test_a_long_text_of_escapes_is_read() -> None:
    value = {"a": "\n:" * 1_000_000, "b": '":"' * 100_000}
    assert loads(json.dumps(value)) == value


def test_an_integer_beyond_64_bits_is_refused_for_an_integer_field() -> None:
    row = loads(b'{"a": 18446744073709551616}')
    assert (
        "the integer 1.8446744073709552e+19 is out of range 0 to" in refusal(Schema(a=UInt64()), row).message
    )
    tensor = loads(b'{"a": [1, -18446744073709551616]}')
    said = refusal(Schema(a=Tensor("int64", (2,))), tensor).message
    assert "at [1]: the integer -1.8446744073709552e+19 is out of range -9223372036854775808 to" in said
    assert RowDecoder(Schema(a=Float64())).decode_one(row) == (18446744073709551616.0,)


def test_numbers_are_written_in_the_fewest_digits_of_their_dtype() -> None:
    schema = Schema(a=Float16(), b=BFloat16(), c=Float32(), d=Float64(), e=Tensor("float16", (2,)), n=Int64())
    row = {"a": 0.1, "b": 0.1, "c": 0.1, "d": 0.1, "e": [0.1, 2], "n": 2**53 + 1}
    assert told(schema, row) == '{"a":0.1,"b":0.1,"c":0.1,"d":0.1,"e":[0.1,2.0],"n":9007199254740993}'
    assert told(Schema(c=Float32()), {"c": 16777216}) == '{"c":16777216.0}'
    assert told(Schema(c=Float32()), {"c": -0.0}) == '{"c":-0.0}'


def test_times_bytes_and_decimals_are_written_as_texts() -> None:
    schema = Schema(
        t=Timestamp(tz="Europe/Madrid", unit="ms"),
        u=Timestamp(unit="s"),
        d=Date(),
        b=Bytes(),
        m=Decimal(scale=2),
    )
    row = {
        "t": "1960-07-01T02:00:00+02:00",
        "u": "2024-01-01T00:00:00",
        "d": "0000-01-01",
        "b": b"\x00\xff",
        "m": "1e3",
    }
    assert json.loads(told(schema, row)) == {
        "t": "1960-07-01T00:00:00.000Z",
        "u": "2024-01-01T00:00:00",
        "d": "0000-01-01",
        "b": "AP8=",
        "m": "1000.00",
    }


def test_nan_is_refused_in_answers_unless_the_field_declares_strings() -> None:
    refused = told(Schema(a=Float32()), {"a": "NaN"})
    assert isinstance(refused, RowError)
    assert (refused.kind, refused.field, refused.row) == ("failed", "a", 0)
    assert "NaN has no token in JSON; declare the field with non_finite='string'" in refused.message
    assert told(Schema(a=Float32()), {"a": "NaN"}, non_finite="string") == '{"a":"NaN"}'
    strings = Schema(a=Float64(non_finite="string"), x=Tensor("float32", (2, 2), non_finite="string"))
    row = {"a": "-Infinity", "x": [[0.1, "NaN"], ["Infinity", 1]]}
    assert told(strings, row) == '{"a":"-Infinity","x":[[0.1,"NaN"],["Infinity",1.0]]}'
    nested = told(Schema(a=List(Struct(b=Tensor("float64", (1,))))), {"a": [{"b": [1]}, {"b": ["Infinity"]}]})
    assert "field 'a': item [1]: member 'b': Infinity has no token" in nested.message


def test_a_refused_row_leaves_the_others_their_answers() -> None:
    schema = Schema(a=Float32(nullable=True))
    decoder = RowDecoder(schema)
    found = encode_rows(decoder.build([(1.0,), (float("nan"),), (None,), (float("inf"),)]))
    assert [type(row) for row in found] == [dict, RowError, dict, RowError]
    assert found[2] == {"a": None}


def test_what_a_text_cannot_tell_is_refused() -> None:
    decoder = RowDecoder(Schema(t=Timestamp(unit="s")))
    found = encode_rows(decoder.build([(253402300800,), (0,)]))
    assert isinstance(found[0], RowError)
    assert "outside the years 0000 to 9999" in found[0].message
    assert found[1] == {"t": "1970-01-01T00:00:00"}
    decoder = RowDecoder(Schema(x=Tensor("int8", (None, None))))
    found = encode_rows(decoder.build([(np.zeros((0, 2), np.int8),), (np.zeros((0, 0), np.int8),)]))
    assert isinstance(found[0], RowError)
    assert dumps(found[1]) == b'{"x":[]}'


def test_an_empty_schema_has_empty_rows() -> None:
    decoder = RowDecoder(Schema())
    assert encode_rows(decoder.decode([{}, {}]).batch) == [{}, {}]
