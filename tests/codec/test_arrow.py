"""Arrow tables in every layout: one meaning, no copy where nothing changes, typed columns never rounded."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import random
from typing import Any

import numpy as np
import pyarrow
import pytest

from parity.codec.arrow import check_schema, decode_ipc, decode_table, encode_ipc
from parity.codec.arrow_sizes import decoded_bytes
from parity.codec.decoded import Decoded, TooManyRowsError
from parity.errors import MalformedError, ParityError, SchemaError
from parity.schema import (
    BFloat16,
    Bool,
    Bytes,
    Date,
    Decimal,
    Field,
    Float16,
    Float32,
    Float64,
    Image,
    Int8,
    Int32,
    Int64,
    List,
    Schema,
    String,
    Struct,
    Tensor,
    Timestamp,
    UInt64,
)

pa: Any = pyarrow  # the stubs are strict about arguments that pyarrow takes


def decode(field: Field, array: Any) -> Decoded:
    return decode_table(Schema(x=field), pa.table({"x": array}))


def values(field: Field, array: Any) -> list[Any]:
    decoded = decode(field, array)
    assert decoded.errors == ()
    assert decoded.batch["x"].arrow.type == field.arrow_type
    decoded.batch["x"].arrow.validate(full=True)
    return [value.tolist() if isinstance(value, np.ndarray) else value for value in decoded.batch["x"]]


def faults(field: Field, array: Any) -> dict[int, str]:
    decoded = decode(field, array)
    assert decoded.num_rows == len(array)
    assert sorted([*decoded.index.tolist(), *(error.row for error in decoded.errors)]) == list(
        range(len(array))
    )
    assert {error.kind for error in decoded.errors} <= {"invalid"}
    return {error.row: error.message for error in decoded.errors}


def problem(field: Field, kind: pyarrow.DataType) -> str:
    problems = check_schema(Schema(x=field), pa.schema([("x", kind)]))
    assert len(problems) == 1
    return problems[0]


FLAT = pa.array([1, 2, 3, 4, 5, 6], pa.float32())
NESTED = [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    ("field", "array", "expected"),
    [
        (Int64(), pa.array([1, 2], pa.uint8()), [1, 2]),
        (Int8(), pa.array([-128, 127], pa.int64()), [-128, 127]),
        (UInt64(), pa.array([2**64 - 1], pa.uint64()), [2**64 - 1]),
        (Int64(), pa.array([5, 5, 6]).dictionary_encode(), [5, 5, 6]),
        (Int64(), pa.RunEndEncodedArray.from_arrays([2, 3], [7, 8]), [7, 7, 8]),
        (Float64(), pa.array([0.5], pa.float16()), [0.5]),
        (Float32(), pa.array([0.5, None], pa.float64()).fill_null(0.25), [0.5, 0.25]),
        (Float32(), pa.array([2**24], pa.int64()), [16777216.0]),
        (BFloat16(), pa.array([0.5], pa.float64()), [0.5]),
        (Bool(), pa.array([True, False]), [True, False]),
        (String(), pa.array(["a", "\x00"], pa.large_string()), ["a", "\x00"]),
        (
            String(),
            pa.array(["a", "long enough to live outside the view"], pa.string_view()),
            ["a", "long enough to live outside the view"],
        ),
        (String(), pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
        (String(nullable=True), pa.DictionaryArray.from_arrays([0, 1, None], ["a", None]), ["a", None, None]),
        (Bytes(), pa.array([b"a"], pa.large_binary()), [b"a"]),
        (Bytes(), pa.array([b"ab"], pa.binary(2)), [b"ab"]),
        (Bytes(), pa.array([b"ab"], pa.binary_view()), [b"ab"]),
        (
            Timestamp(unit="us"),
            pa.array([-1], pa.timestamp("ms")),
            [datetime.datetime(1969, 12, 31, 23, 59, 59, 999000)],
        ),
        (
            Timestamp(unit="s"),
            pa.array([-2000], pa.timestamp("ms")),
            [datetime.datetime(1969, 12, 31, 23, 59, 58)],
        ),
        (Date(), pa.array([86_400_000], pa.date64()), [datetime.date(1970, 1, 2)]),
        (
            Decimal(precision=6, scale=2),
            pa.array([decimal.Decimal("1.5")], pa.decimal128(3, 1)),
            [decimal.Decimal("1.50")],
        ),
        (
            Decimal(precision=3, scale=1),
            pa.array([decimal.Decimal("1.50")], pa.decimal256(50, 2)),
            [decimal.Decimal("1.5")],
        ),
        (Decimal(precision=3, scale=1), pa.array([12]), [decimal.Decimal("12.0")]),
        (Tensor("float32", (2,)), pa.FixedSizeListArray.from_arrays(FLAT, 2), [[1, 2], [3, 4], [5, 6]]),
        (
            Tensor("float32", (2, 1)),
            pa.FixedSizeListArray.from_arrays(FLAT, 2),
            [[[1], [2]], [[3], [4]], [[5], [6]]],
        ),
        (Tensor("float32", (2,)), pa.array([[1, 2]], pa.list_(pa.int8())), [[1, 2]]),
        (Tensor("float32", (2, 2)), pa.array([NESTED], pa.large_list(pa.list_(pa.float64(), 2))), [NESTED]),
        (
            Tensor("float32", (2, 2)),
            pa.array([NESTED], pa.list_view(pa.large_list_view(pa.float32()))),
            [NESTED],
        ),
        (
            Tensor("float32", (2, 2)),
            pa.array([NESTED, NESTED], pa.list_(pa.list_(pa.float32()))),
            [NESTED, NESTED],
        ),
        (
            Tensor("float32", (None, 2)),
            pa.array([NESTED, []], pa.list_(pa.list_(pa.float32()))),
            [NESTED, []],
        ),
        (
            Tensor("float32", (None, None)),
            pa.array([[[1]], [[], []], []], pa.list_(pa.list_(pa.float32()))),
            [[[1]], [[], []], []],
        ),
        (Tensor("uint8", (None,)), pa.array([[], [1]], pa.list_(pa.uint8())), [[], [1]]),
        (Tensor("uint8", (None,)), pa.array([[], []], pa.list_(pa.null())), [[], []]),
        (
            Tensor("float32", (2,), nullable=True),
            pa.array([None, [1, 2]], pa.list_(pa.float32())),
            [None, [1, 2]],
        ),
        (Tensor("float32", (2,), nullable=True), pa.nulls(2), [None, None]),
        (List(Int64()), pa.array([[1], []], pa.large_list(pa.int8())), [[1], []]),
        (List(Int64()), pa.array([[1]], pa.list_(pa.int8(), 1)), [[1]]),
        (
            List(String()),
            pa.array([["a"], ["b", "a"]], pa.list_(pa.dictionary(pa.int8(), pa.string()))),
            [["a"], ["b", "a"]],
        ),
        (List(Tensor("int8", (1,))), pa.array([[[1], [2]], []]), [[np.array([1]), np.array([2])], []]),
        (Struct(a=Int8(), b=String(default="x")), pa.array([{"a": 1, "c": 2}]), [{"a": 1, "b": "x"}]),
        (Struct(a=Int8(), nullable=True), pa.array([None, {"a": 1}]), [None, {"a": 1}]),
        (Int8(nullable=True), pa.nulls(2), [None, None]),
    ],
    ids=lambda v: str(getattr(v, "type", None) or v)[:50],
)
def test_one_meaning_in_many_layouts(field: Field, array: Any, expected: list[Any]) -> None:
    assert values(field, array) == expected
    twice = pa.concat_arrays([array, array]) if not pa.types.is_run_end_encoded(array.type) else array
    if twice is not array:
        assert values(field, twice.slice(len(array))) == expected
        assert values(field, pa.chunked_array([array.slice(0, 1), array.slice(1)])) == expected


def test_a_fixed_shape_tensor_extension_is_read() -> None:
    kind = pa.fixed_shape_tensor(pa.float32(), [2, 1])
    storage = pa.FixedSizeListArray.from_arrays(FLAT, 2)
    assert values(Tensor("float32", (2, 1)), pa.ExtensionArray.from_storage(kind, storage))[0] == [[1], [2]]
    assert values(Tensor("float32", (None, 1)), pa.ExtensionArray.from_storage(kind, storage))[0] == [
        [1],
        [2],
    ]
    assert "its shape is [2, 1]" in problem(Tensor("float32", (1, 2)), kind)
    turned = pa.fixed_shape_tensor(pa.float32(), [2, 1], permutation=[1, 0])
    assert "its axes are permuted ([1, 0])" in problem(Tensor("float32", (2, 1)), turned)


def test_canonical_memory_is_not_copied() -> None:
    flat = np.arange(12, dtype=np.float32)
    array = pa.FixedSizeListArray.from_arrays(pa.array(flat), 4)
    column = decode(Tensor("float32", (4,)), array.slice(1)).batch["x"]
    assert np.shares_memory(column.numpy(), flat)
    assert column.numpy().tolist() == flat.reshape(3, 4)[1:].tolist()
    assert not column.numpy().flags.writeable
    ints = np.arange(3)
    assert np.shares_memory(decode(Int64(), pa.array(ints)).batch["x"].numpy(), ints)
    ticks = pa.array(ints, pa.timestamp("us", "Asia/Tokyo"))
    column = decode(Timestamp(tz="UTC"), ticks).batch["x"]
    assert np.shares_memory(column.numpy(), ticks.view(pa.int64()).to_numpy())


@pytest.mark.parametrize(
    ("field", "array", "expected"),
    [
        (
            Int8(),
            pa.array([1, 128, -129, None]),
            {1: "128 is out of range -128 to 127", 2: "-129 is out of range", 3: "null is not allowed here"},
        ),
        (Int64(), pa.array([2**63], pa.uint64()), {0: "9223372036854775808 is out of range"}),
        (UInt64(), pa.array([-1]), {0: "-1 is out of range 0 to"}),
        (Int8(ge=0, le=9), pa.array([0, 10, -1]), {1: "10 is out of range 0 to 9", 2: "-1 is out of range"}),
        (Int8(choices=(1, 2, 300)), pa.array([1, 3]), {1: "3 is not one of the choices"}),
        (
            Float32(),
            pa.array([0.5, 0.1, float("nan"), 1e39]),
            {
                1: "0.1 of type float64 is no float32, and a typed column is never rounded",
                3: "1e+39 of type float64 is no float32",
            },
        ),
        (Float32(), pa.array([2**24, 2**24 + 1]), {1: "16777217 of type int64 is no float32"}),
        (Float64(), pa.array([2**53, 2**53 + 1, 2**63 - 1]), {1: "is no float64", 2: "is no float64"}),
        (Float16(), pa.array([65504.0, 65505.0], pa.float32()), {1: "65505.0 of type float32 is no float16"}),
        (BFloat16(), pa.array([0.5, 0.1], pa.float32()), {1: "is no bfloat16"}),
        (
            Float64(ge=0, le=1),
            pa.array([0.0, 1.5, float("nan"), -0.0]),
            {1: "1.5 is out of range", 2: "nan is out of range"},
        ),
        (
            String(choices=("a",)),
            pa.array(["a", "b", None]),
            {1: "'b' is not one of the choices", 2: "null is not allowed"},
        ),
        (
            String(max_length=1, nullable=True),
            pa.array(["\U0001f600", "ab", None]),
            {1: "'ab' has 2 characters"},
        ),
        (Bytes(max_length=1), pa.array([b"a", b"ab"]), {1: "2 bytes are more than 1"}),
        (
            Image(),
            pa.array([b"\x89PNG\r\n\x1a\n", b"PNG"]),
            {1: "bytes that start with b'PNG' are no image file"},
        ),
        (
            Timestamp(unit="s"),
            pa.array([1000, 1001], pa.timestamp("ms")),
            {1: "tick 1001 of unit ms is finer than the field's unit s"},
        ),
        (
            Timestamp(unit="ns"),
            pa.array([2**53, 0], pa.timestamp("s")),
            {0: "is out of the range of the field's unit ns"},
        ),
        (Timestamp(unit="s"), pa.array([2**62, 0], pa.timestamp("s")), {0: "is out of the range of unit s"}),
        (
            Timestamp(),
            pa.array([-(2**63), 0], pa.int64()).view(pa.timestamp("us")),
            {0: "the least int64 is NaT"},
        ),
        (Date(), pa.array([1, 0], pa.int64()).view(pa.date64()), {0: "1 ms is not a whole day"}),
        (
            Decimal(precision=3, scale=1),
            pa.array([decimal.Decimal("1.25"), decimal.Decimal("1.20"), decimal.Decimal("123.00")]),
            {0: "has more than 1 digits behind the point", 2: "has more than 2 digits before the point"},
        ),
        (Decimal(precision=3, scale=1), pa.array([100, 99]), {0: "has more than 2 digits before the point"}),
        (
            Tensor("float32", (2,)),
            pa.array([[1.0], [1.0, 2.0], None, [0.1, 0.5], [None, 1.0]]),
            {
                0: "shape [1] is not the field's",
                2: "null is not allowed",
                3: "at [0]: 0.1",
                4: "at [0]: null is no element",
            },
        ),
        (
            Tensor("float32", (None, 2)),
            pa.array([[1.0], [1.0, 2.0]]),
            {0: "1 elements; the shape needs a multiple of 2"},
        ),
        (
            Tensor("int8", (2, 2)),
            pa.array([[[1, 2], [3]], [[1, 2], [3, 4]], [[1, 2], None], [[1, 2]], [[1, 2], [3, 400]]]),
            {
                0: "a list of 1 beside lists of 2",
                2: "null stands where a list belongs",
                3: "shape [1, 2] is not the field's",
                4: "at [1][1]: 400 of type int64 is no int8",
            },
        ),
        (
            List(Int8()),
            pa.array([[1], [2, 300], [None], None]),
            {
                1: "at [1]: 300 is out of range",
                2: "at [0]: null is not allowed",
                3: "field 'x': null is not allowed",
            },
        ),
        (
            Struct(a=Int8(), b=List(Int8())),
            pa.array([{"a": 1, "b": [1, 300]}, {"a": None, "b": []}, {"a": 1, "b": []}]),
            {0: "at .b[1]: 300 is out of range", 1: "at .a: null is not allowed"},
        ),
    ],
    ids=lambda v: str(getattr(v, "type", None) or v)[:50],
)
def test_a_value_that_does_not_fit_is_its_rows_own_error(
    field: Field, array: Any, expected: dict[int, str]
) -> None:
    found = faults(field, array)
    assert sorted(found) == sorted(expected)
    for row, text in expected.items():
        assert text in found[row]
    padded = pa.concat_arrays([array, array]).slice(len(array))
    assert faults(field, padded) == found


@pytest.mark.parametrize(
    ("field", "kind", "text"),
    [
        (Int64(), pa.float64(), ".astype('Int64') keeps both"),
        (Int64(), pa.bool_(), "column 'x' is of type bool; expected Int64"),
        (Int64(), pa.string(), "cast the column to an integer type"),
        (Bool(), pa.int8(), "cast the column to bool"),
        (Float32(), pa.string(), "cast the column to a float type"),
        (Float32(), pa.decimal128(5, 2), "cast the column to a float type"),
        (String(), pa.binary(), "cast the column to string"),
        (Bytes(), pa.string(), "give the raw bytes as a binary column"),
        (Timestamp(), pa.int64(), "cast the column to a timestamp type"),
        (Timestamp(tz="UTC"), pa.timestamp("us"), "it is naive: say which zone"),
        (Timestamp(), pa.timestamp("us", "UTC"), "it has a zone and the field has none"),
        (Date(), pa.timestamp("us"), "cast the column to date32"),
        (Decimal(), pa.float64(), "a float is not exact"),
        (Tensor("int8", (1,)), pa.list_(pa.float32()), "which does not hold integers"),
        (Tensor("float32", (1,)), pa.list_(pa.bool_()), "which is boolean, not a number"),
        (Tensor("float32", (1,)), pa.list_(pa.string()), "which does not hold numbers"),
        (Tensor("float32", (1,)), pa.float32(), "give one list for each row"),
        (Tensor("float32", (1,)), pa.list_(pa.list_(pa.float32())), "nested 2 deep; expected 1"),
        (Tensor("float32", (None, None)), pa.list_(pa.float32()), "nest the lists 2 deep"),
        (Tensor("float32", (1,)), pa.struct([("a", pa.int8())]), "expected a list, or a struct"),
        (List(Int8()), pa.int8(), "expected List of Int8"),
        (List(Int8()), pa.list_(pa.string()), "column 'x[]' is of type string"),
        (
            Struct(lat=Int8()),
            pa.struct([("lta", pa.int8())]),
            "lacks member 'lat' (Int8); did you mean 'lta'?",
        ),
        (Struct(lat=Int8()), pa.struct([("lat", pa.string())]), "column 'x.lat' is of type string"),
    ],
)
def test_a_column_of_another_kind_is_refused_as_a_whole(
    field: Field, kind: pyarrow.DataType, text: str
) -> None:
    assert text in problem(field, kind)
    with pytest.raises(SchemaError, match="the table does not fit the schema"):
        decode(field, pa.nulls(1, kind))


def test_all_problems_are_told_at_once() -> None:
    schema = Schema(age=Int64(), name=String(), extra=Int8(default=1))
    given = pa.schema([("agee", pa.int8()), ("name", pa.int8()), ("other", pa.int8())])
    assert check_schema(schema, given) == [
        "column 'age' (Int64) is missing; did you mean 'agee' or 'name'?",
        "column 'name' is of type int8; expected String; cast the column to string",
    ]
    twice = pa.schema([("age", pa.int8()), ("age", pa.int8()), ("name", pa.string())])
    assert check_schema(schema, twice) == ["column 'age' is there 2 times; keep one"]


def test_defaults_fill_missing_columns_and_others_are_ignored() -> None:
    schema = Schema(a=Int8(), b=Tensor("float32", (2,), default=[0.1, 2]), c=List(Int8(), default=[]))
    decoded = decode_table(schema, pa.table({"other": [1, 2], "a": [1, 2]}))
    assert decoded.batch["b"].numpy().tolist() == [[float(np.float32(0.1)), 2]] * 2
    assert decoded.batch["c"].to_pylist() == [[], []]


def test_a_record_batch_is_a_table() -> None:
    batch = pa.record_batch({"x": pa.array(["a", "b"]).dictionary_encode()})
    assert decode_table(Schema(x=String()), batch).batch["x"].to_pylist() == ["a", "b"]


def test_chunks_with_different_dictionaries_are_one_column() -> None:
    chunks = pa.chunked_array(
        [pa.array(["a", "b"]).dictionary_encode(), pa.array(["c", "a"]).dictionary_encode()]
    )
    assert values(String(), chunks) == ["a", "b", "c", "a"]
    assert values(String(), pa.chunked_array([], pa.dictionary(pa.int8(), pa.string()))) == []


def test_lists_of_dictionaries_that_arrow_cannot_pick_from_are_read() -> None:
    items = pa.DictionaryArray.from_arrays(pa.array([0, 0, 0], pa.int32()), pa.array([0.5], pa.float16()))
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 3], pa.int32()), items, mask=pa.array([True, False]))
    assert values(List(Float16(), nullable=True), lists) == [None, [0.5, 0.5]]
    fixed = pa.FixedSizeListArray.from_arrays(items, 1, mask=pa.array([True, False, False]))
    assert values(Tensor("float16", (1,), nullable=True), fixed.slice(1)) == [[0.5], [0.5]]


def test_errors_of_several_columns_are_merged_in_row_order() -> None:
    schema = Schema(a=Int8(), b=Int8())
    decoded = decode_table(schema, pa.table({"a": [1, 300, 3, 300], "b": [300, 300, 3, 4]}))
    assert [(error.row, error.field) for error in decoded.errors] == [(0, "b"), (1, "a"), (3, "a")]
    assert decoded.index.tolist() == [2]
    assert decoded.batch.num_rows == 1


def invalid_text(offset: int = 0) -> Any:
    data = pa.array([b"pad", b"good", b"\xff\xfe", b"fine"], pa.binary()).slice(offset)
    return pa.Array.from_buffers(pa.string(), len(data), data.buffers(), offset=data.offset)


def test_text_that_is_not_utf8_is_a_row_error() -> None:
    assert faults(String(), invalid_text(1)) == {
        1: "field 'x': b'\\xff\\xfe' is not UTF-8 (invalid start byte); expected String"
    }
    data = encode_ipc(pa.table({"x": invalid_text()}))
    decoded = decode_table(Schema(x=String()), decode_ipc(data))
    assert [error.row for error in decoded.errors] == [2]
    assert decoded.batch["x"].to_pylist() == ["pad", "good", "fine"]
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 4], pa.int32()), invalid_text())
    assert list(faults(List(String()), lists)) == [1]
    decoded = decode_table(Schema(x=List(String())), decode_ipc(encode_ipc(pa.table({"x": lists}))))
    assert [error.message for error in decoded.errors] == [faults(List(String()), lists)[1]]


def test_the_tensor_struct_is_checked_row_by_row() -> None:
    field = Tensor("int8", (None, None))
    kind = field.arrow_type
    rows = [
        {"data": [1, 2], "shape": [1, 2]},
        {"data": [1, 2], "shape": [2, 2]},
        {"data": [1, 2], "shape": [-1, -2]},
        {"data": [], "shape": [2**31 - 1, 0]},
        {"data": [], "shape": [65536, 65536]},
    ]
    assert sorted(faults(field, pa.array(rows, kind))) == [1, 2, 4]
    loose = pa.struct([("data", pa.large_list(pa.int64())), ("shape", pa.list_(pa.int64()))])
    assert values(field, pa.array(rows[:1], loose)) == [[[1, 2]]]
    odd = [{"data": [1], "shape": [1]}, {"data": None, "shape": [1, 1]}, {"data": [1], "shape": [1, None]}]
    assert sorted(faults(field, pa.array([*odd, {"data": [1], "shape": None}], loose))) == [0, 1, 2, 3]
    wide = pa.array([{"data": [], "shape": [2**40, 0]}], loose)
    assert list(faults(field, wide)) == [0]
    wraps = pa.array([{"data": [], "shape": [2**16] * 4}], Tensor("int8", (None,) * 4).arrow_type)
    assert list(faults(Tensor("int8", (None,) * 4), wraps)) == [0]


@pytest.mark.parametrize(
    "data", [b"", b"garbage", b"ARROW1\x00\x00rest", b"\xff\xff\xff\xff\x10\x00\x00\x00"]
)
def test_what_is_no_stream_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedError, match="not an Arrow IPC stream"):
        decode_ipc(data)


def test_what_follows_a_stream_is_refused_and_never_dropped() -> None:
    table = pa.table({"x": list(range(10))})
    data = encode_ipc(table)
    for behind in (data, b"x", b"\0\0x", data[:20]):
        with pytest.raises(MalformedError, match=f"^{len(behind)} bytes follow the Arrow IPC stream"):
            decode_ipc(data + behind)
    for padded in (data, data + b"\0" * 8, memoryview(data), data[:-8], data[:-8] + b"\0" * 4):
        assert decode_ipc(padded) == table


def test_a_stream_cut_short_is_malformed() -> None:
    data = encode_ipc(pa.table({"x": list(range(1000))}))
    for size in (10, len(data) // 2, len(data) - 20):
        with pytest.raises(MalformedError):
            decode_ipc(data[:size])


@pytest.mark.slow
def test_a_damaged_stream_is_refused_or_read_but_never_crashes() -> None:
    schema = Schema(a=Int64(nullable=True), s=List(String()), t=Tensor("float32", (None, None)), d=Int32())
    table = pa.table(
        {
            "a": [1, None, 3],
            "s": [["x", "yz"], [], ["é"]],
            "t": pa.array([[[1.0]], [[1.0, 2.0]], []], pa.list_(pa.list_(pa.float32()))),
            "d": pa.array([1, 1, 2], pa.int32()).dictionary_encode(),
        }
    )
    good = encode_ipc(table)
    chance = random.Random(0)
    for _ in range(1500):
        data = bytearray(good)
        for _ in range(chance.randint(1, 3)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        with contextlib.suppress(ParityError):
            decode_table(schema, decode_ipc(bytes(data))).batch.to_table().to_pylist()


def ipc(*tables: Any, compression: str | None = None) -> bytes:
    """A stream of a batch for each table."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, tables[0].schema, options=options) as writer:
        for table in tables:
            writer.write_table(table)
    return sink.getvalue().to_pybytes()


LONG = "x" * 100_000
HOSTILE: dict[str, Any] = {
    "nulls": pa.array([[None] * 3], pa.list_(pa.null())).take(pa.array([0] * 900_000)),
    "dictionary": pa.array([LONG]).dictionary_encode().take(pa.array([0] * 1000)),
    "wide dictionary": pa.array([LONG], pa.large_string()).dictionary_encode().take(pa.array([0] * 1000)),
    "run ends": pa.RunEndEncodedArray.from_arrays([1000], [LONG]),
    "list views": pa.ListViewArray.from_arrays(
        [0] * 1000, [100_000] * 1000, pa.array(np.zeros(100_000, np.int8))
    ),
    "lists in a dictionary": pa.DictionaryArray.from_arrays(
        [0] * 1000, pa.array([[LONG, LONG]], pa.list_(pa.string()))
    ),
}


@pytest.mark.parametrize("name", list(HOSTILE))
def test_a_stream_that_stands_for_more_than_it_holds_is_refused(name: str) -> None:
    stream = ipc(pa.table({"x": HOSTILE[name]}))
    assert len(stream) < 4_000_000
    assert decode_ipc(stream).num_rows == len(HOSTILE[name])
    with pytest.raises(TooManyRowsError, match="bytes once decoded"):
        decode_ipc(stream, most_bytes=10_000_000)


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_compressed_buffers_are_held_to_what_they_say(compression: str) -> None:
    table = pa.table(
        {
            "x": np.zeros(1_000_000),
            "d": pa.array(["a" * 1_000_000]).dictionary_encode().take(pa.array([0] * 1_000_000)),
        }
    )
    stream = ipc(table, compression=compression)
    assert len(stream) < 100_000
    with pytest.raises(TooManyRowsError, match="bytes once decoded"):
        decode_ipc(stream, most_bytes=8_000_000)
    small = pa.table({"x": np.zeros(1000)})
    assert decode_ipc(ipc(small, compression=compression), most_bytes=10_000).equals(small)
    assert decode_ipc(ipc(small, small, compression=compression), most_bytes=16_000).num_rows == 2000


def test_rows_are_counted_over_the_batches_of_a_stream() -> None:
    table = pa.table({"x": pa.nulls(2)})
    assert decode_ipc(ipc(table, table), most_rows=4).num_rows == 4
    with pytest.raises(TooManyRowsError, match="has 4 rows: expected at most 3"):
        decode_ipc(ipc(table, table), most_rows=3)
    with pytest.raises(TooManyRowsError, match=f"has {2**31 - 1} rows"):
        decode_ipc(ipc(pa.table({"x": pa.nulls(2**31 - 1)})), most_rows=1024)
    assert decode_ipc(ipc(table)[:-8], most_rows=1024, most_bytes=1024).num_rows == 2


@pytest.mark.parametrize(
    ("array", "size"),
    [
        (pa.array([1, 2, None]), 24),
        (pa.array(["a", "bcd", None]), 16),
        (pa.array(["a", "bcd", None]).dictionary_encode(), 16),
        (pa.array([["a"], None, ["bcd", "e"]]), 29),
        (pa.array([["a"], None, ["bcd", "e"]], pa.list_view(pa.string())), 29),
        (pa.array(["a", "b" * 50, None], pa.string_view()), 63),
        (pa.array([["a", "b"], None, ["c", "dd"]], pa.list_(pa.string(), 2))[1:], 19),
        (pa.array([{"a": 1, "b": "x"}, None]), 25),
        (pa.array([], pa.string_view()), 0),
        (pa.array([], pa.string()).dictionary_encode(), 0),
        (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32())), 13),
    ],
)
def test_a_plain_array_takes_about_its_own_size(array: Any, size: int) -> None:
    assert decoded_bytes(array) == size


def test_a_column_of_nulls_is_nulls_of_any_field() -> None:
    fields = (Int64, Bool, String, Bytes, Float32, Date, BFloat16)
    for field in (*(kind(nullable=True) for kind in fields), Tensor("float32", (2,), nullable=True)):
        for rows in (0, 1, 3):
            decoded = decode(field, pa.nulls(rows))
            assert decoded.batch["x"].arrow.null_count == rows == decoded.num_rows
