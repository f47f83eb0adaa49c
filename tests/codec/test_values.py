"""What each field type takes from untyped values, what it refuses, and what it says then."""

from __future__ import annotations

import datetime
import decimal
import zoneinfo
from typing import Any

import numpy as np
import pandas as pd
import pytest

from parity.codec.rejection import ValueRejectedError
from parity.codec.values import compile_value
from parity.errors import SchemaError
from parity.schema import (
    BFLOAT16,
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
    Int64,
    List,
    Schema,
    String,
    Struct,
    Tensor,
    Timestamp,
    UInt8,
    UInt64,
)

INF = float("inf")
MADRID = zoneinfo.ZoneInfo("Europe/Madrid")
UTC = datetime.UTC
PNG = b"\x89PNG\r\n\x1a\n...."

ACCEPTED: list[tuple[Field, Any, Any]] = [
    (Bool(), True, True),
    (Bool(), np.False_, False),
    (Int64(), 2**63 - 1, 2**63 - 1),
    (Int64(), -(2**63), -(2**63)),
    (Int64(), 2**53 + 1, 2**53 + 1),
    (Int64(), np.int8(-1), -1),
    (UInt64(), 2**64 - 1, 2**64 - 1),
    (Int64(ge=1.5, le=3), 2, 2),
    (Int8(choices=(1, 3)), 3, 3),
    (Float64(), 0.1, 0.1),
    (Float64(), 1, 1.0),
    (Float64(), "Infinity", INF),
    (Float64(), "-Infinity", -INF),
    (Float64(), -INF, -INF),
    (Float32(), 0.1, float(np.float32(0.1))),
    (Float32(), 16777217, 16777216.0),
    (Float32(), 1e-46, 0.0),
    (Float32(), 1e-45, 1.401298464324817e-45),
    (Float32(), 3.4028235677973362e38, 3.4028234663852886e38),
    (Float32(le=0.1), 0.1, float(np.float32(0.1))),
    (Float16(), 65519.99, 65504.0),
    (BFloat16(), 0.1, float(BFLOAT16.type(0.1))),
    (Float32(), np.float64(0.1), float(np.float32(0.1))),
    (String(), "", ""),
    (String(), "\x00\U0001f600e\u0301", "\x00\U0001f600e\u0301"),
    (String(choices=("a", "b")), "b", "b"),
    (String(max_length=1), "\U0001f600", "\U0001f600"),
    (Bytes(), "", b""),
    (Bytes(), "AP8=", b"\x00\xff"),
    (Bytes(), b"\x00", b"\x00"),
    (Bytes(), bytearray(b"a"), b"a"),
    (Bytes(), memoryview(b"abc")[::2], b"ac"),
    (Image(), PNG, PNG),
    (Timestamp(tz="UTC"), "1970-01-01T00:00:00Z", 0),
    (Timestamp(tz="Europe/Madrid"), "1969-12-31T23:59:59.999999+00:00", -1),
    (Timestamp(tz="UTC", unit="s"), "1970-01-01T01:00:00.000+01:00", 0),
    (Timestamp(tz="UTC", unit="ns"), "1960-01-01T00:00:00.000000001-05:30", -315599399999999999),
    (Timestamp(unit="ms"), "2024-02-29T12:00:00.120", 1709208000120),
    (Timestamp(unit="s"), "0000-03-01 00:00:00", -62162035200),
    (Timestamp(unit="s"), "9999-12-31t23:59:59", 253402300799),
    (Timestamp(), datetime.datetime(1969, 12, 31), -86_400_000_000),
    (Timestamp(tz="UTC"), datetime.datetime(1970, 1, 1, 1, tzinfo=MADRID), 0),
    (Timestamp(tz="UTC"), datetime.datetime(2024, 10, 27, 2, 30, tzinfo=MADRID, fold=1), 1729992600000000),
    (Timestamp(tz="UTC"), datetime.datetime(2024, 10, 27, 2, 30, tzinfo=MADRID, fold=0), 1729989000000000),
    (Timestamp(unit="ns", tz="UTC"), pd.Timestamp("1960-01-01T00:00:00.000000001Z"), -315619199999999999),
    (Timestamp(unit="ns"), np.datetime64(-5, "ns"), -5),
    (Timestamp(unit="s"), np.datetime64("2024-01-01", "D"), 1704067200),
    (Timestamp(unit="s"), np.array([3], "M8[2h]")[0], 21600),
    (Date(), "1969-12-31", -1),
    (Date(), "0000-01-01", -719528),
    (Date(), datetime.date(1970, 1, 2), 1),
    (Date(), np.datetime64("1970-01-02", "D"), 1),
    (Decimal(precision=4, scale=2), "12.5", decimal.Decimal("12.50")),
    (Decimal(precision=4, scale=2), "-0", decimal.Decimal("0.00")),
    (Decimal(precision=4, scale=2), "12.500", decimal.Decimal("12.50")),
    (Decimal(precision=4, scale=2), "1e1", decimal.Decimal("10.00")),
    (Decimal(precision=4, scale=2), 99, decimal.Decimal("99.00")),
    (Decimal(precision=76, scale=0), "9" * 76, decimal.Decimal("9" * 76)),
    (Decimal(precision=4, scale=2), decimal.Decimal("0e999999"), decimal.Decimal("0.00")),
    (List(Int8(nullable=True)), [1, None], [1, None]),
    (List(Int8()), (), []),
    (Struct(a=Int8(), b=String(default="x")), {"a": 1}, {"a": 1, "b": "x"}),
]


@pytest.mark.parametrize(("field", "value", "expected"), ACCEPTED, ids=lambda v: repr(v)[:40])
def test_a_value_that_fits_is_taken(field: Field, value: Any, expected: Any) -> None:
    got = compile_value(field)(value)
    assert got == expected
    assert type(got) is type(expected)


def test_a_sign_and_nan_are_kept() -> None:
    decode = compile_value(Float32())
    assert np.signbit(decode(-0.0))
    assert np.isnan(decode("NaN"))
    assert np.isnan(decode(float("nan")))


REFUSED: list[tuple[Field, Any, str]] = [
    (Bool(), 1, "1 is of type integer; expected Bool; send true or false"),
    (Bool(), "true", "'true' is of type string"),
    (Bool(), None, "null is not allowed here; expected Bool"),
    (Int64(), 1.0, "1.0 is of type float; expected Int64; send an integer"),
    (Int64(), "1", "'1' is of type string"),
    (Int64(), True, "true is of type boolean"),
    (Int64(), np.True_, "is of type bool"),
    (Int64(), 2**63, "9223372036854775808 is out of range -9223372036854775808 to 9223372036854775807"),
    (Int64(), None, "null is not allowed here; expected Int64; send a value, or declare nullable=True"),
    (Int64(), float("nan"), "NaN is a float, not null; expected Int64"),
    (UInt8(), -1, "-1 is out of range 0 to 255"),
    (UInt8(le=10), 11, "11 is out of range 0 to 10; expected UInt8 of at most 10"),
    (Int8(choices=(1, 3)), 2, "2 is not one of the choices; expected one of [1, 3]"),
    (Float32(), 1e39, "1e+39 is beyond the range of float32; expected Float32"),
    (Float32(), 3.4028235677973366e38, "is beyond the range of float32"),
    (Float32(), 10**39, "is beyond the range of float32"),
    (Float32(), 10**400, "the integer is beyond the range of a float"),
    (Float64(), 10**400, "the integer is beyond the range of a float"),
    (Float16(), 65520, "65520.0 is beyond the range of float16"),
    (Float32(), "nan", "'nan' is of type string; expected Float32; send a number"),
    (Float32(), "1.5", "'1.5' is of type string"),
    (Float32(), True, "true is of type boolean"),
    (Float32(), decimal.Decimal("0.1"), "is of type Decimal"),
    (Float64(), np.longdouble(1), "is of type longdouble"),
    (Float64(ge=0), "NaN", "nan is out of range; expected Float64 of at least 0"),
    (Float64(le=1), INF, "inf is out of range"),
    (String(), 1, "1 is of type integer; expected String"),
    (String(), b"a", "b'a' is of type bytes"),
    (String(), "\ud800", "holds a lone surrogate"),
    (String(choices=("amber", "birch")), "ambr", "'ambr' is not one of the choices; expected String out of"),
    (String(max_length=2), "abc", "'abc' has 3 characters; expected String of at most 2 characters"),
    (Bytes(), "AP8", "is not strict base64"),
    (Bytes(), "AP8=\n", "is not strict base64"),
    (Bytes(), "AP9=", "stray bits at the end"),
    (Bytes(), "_-8=", "is not strict base64"),
    (Bytes(), "é", "is not strict base64"),
    (Bytes(), [1], "[1] is of type list; expected Bytes; send base64 text in JSON, bytes in Python"),
    (Bytes(max_length=1), b"ab", "2 bytes are more than 1"),
    (Image(), b"hello", "bytes that start with b'hello' are no image file"),
    (Image(), b"", "are no image file"),
    (Timestamp(tz="UTC"), "2024-01-01T00:00:00", "has no offset, and the field is zoned; add 'Z'"),
    (Timestamp(), "2024-01-01T00:00:00Z", "has an offset, and the field has no zone"),
    (Timestamp(unit="s"), "2024-01-01T00:00:00.5", "is finer than the field's unit s"),
    (Timestamp(), "2024-02-30T00:00:00", "is not a day of the calendar"),
    (Timestamp(), "2024-01-01T24:00:00", "has an hour, minute or second out of range"),
    (Timestamp(), "2024-01-01T23:59:60", "has an hour, minute or second out of range"),
    (Timestamp(tz="UTC"), "2024-01-01T00:00:00+0100", "is not ISO 8601; write '2024-03-31T01:30:00.123456Z'"),
    (Timestamp(tz="UTC"), "2024-01-01T00:00:00+24:00", "has an offset out of range"),
    (Timestamp(), "2024-01-01", "is not ISO 8601"),
    (Timestamp(), "٢٠٢٤-01-01T00:00:00", "is not ISO 8601"),
    (Timestamp(unit="ns"), "2263-01-01T00:00:00", "is out of the range of unit ns"),
    (Timestamp(), 0, "0 is of type integer; expected Timestamp(us) without an offset; send ISO 8601 text"),
    (
        Timestamp(tz="UTC"),
        datetime.datetime(2024, 1, 1),
        "is naive, and the field is zoned; give it a tzinfo",
    ),
    (Timestamp(), datetime.datetime(2024, 1, 1, tzinfo=UTC), "has a tzinfo, and the field has no zone"),
    (Timestamp(unit="s"), datetime.datetime(2024, 1, 1, 0, 0, 0, 1), "is finer than the field's unit s"),
    (Timestamp(unit="us"), pd.Timestamp(1), "is finer than the field's unit us"),
    (Timestamp(), pd.NaT, "is NaT, which is not a value; send None where the field is nullable"),
    (Timestamp(), np.datetime64("NaT"), "is NaT"),
    (Timestamp(tz="UTC"), np.datetime64(0, "us"), "is a numpy datetime64, which has no zone"),
    (Timestamp(), np.datetime64("2024", "Y"), "has unit 'Y', which is no fixed length of time"),
    (Timestamp(unit="ns"), np.datetime64(2**62, "s"), "is out of the range of unit ns"),
    (Timestamp(), datetime.date(2024, 1, 1), "is of type date"),
    (Date(), "2024-1-1", "is not a date; write 'YYYY-MM-DD'"),
    (Date(), "2023-02-29", "is not a day of the calendar"),
    (Date(), datetime.datetime(2024, 1, 1), "is a datetime; send its .date()"),
    (Date(), np.datetime64(0, "s"), "is a numpy datetime64 finer or coarser than a day"),
    (Date(), np.datetime64(2**40, "D"), "is out of the range of a date"),
    (Date(), 1, "1 is of type integer; expected Date; send 'YYYY-MM-DD'"),
    (Decimal(precision=4, scale=2), "1.234", "has more than 2 digits behind the point; round it first"),
    (Decimal(precision=4, scale=2), "100", "has more than 2 digits before the point"),
    (Decimal(precision=4, scale=2), "1e999999", "has more than 2 digits before the point"),
    (Decimal(precision=4, scale=2), "1e-999999", "has more than 2 digits behind the point"),
    (Decimal(precision=4, scale=2), "NaN", "is not a decimal number; write it as '12.50'"),
    (Decimal(precision=4, scale=2), "1_0", "is not a decimal number"),
    (Decimal(precision=4, scale=2), " 1", "is not a decimal number"),
    (Decimal(precision=4, scale=2), decimal.Decimal("Infinity"), "is not a finite decimal number"),
    (Decimal(precision=4, scale=2), 1.5, "a float is not exact; send the digits as a string"),
    (Decimal(precision=4, scale=2), True, "true is of type boolean"),
    (List(Int8()), "ab", "'ab' is of type string; expected List of Int8"),
    (List(Int8()), {"0": 1}, "is of type object"),
    (List(Int8()), [1, None], "null is not allowed here"),
    (Struct(a=Int8()), {"b": 1}, "the key is missing; expected Int8; send it, or declare a default"),
    (Struct(a=Int8()), {"a": 1, "A": 1}, "unknown key 'A'"),
    (Struct(a=Int8()), [1], "[1] is of type list; expected Struct(a: Int8)"),
]


@pytest.mark.parametrize(("field", "value", "text"), REFUSED, ids=lambda v: repr(v)[:40])
def test_a_value_that_does_not_fit_is_refused_with_a_reason(field: Field, value: Any, text: str) -> None:
    with pytest.raises(ValueRejectedError) as caught:
        compile_value(field)(value)
    assert text in caught.value.message("x")


def test_null_is_a_value_where_the_field_says_so() -> None:
    for field in (Bool, Int8, Float32, String, Bytes, Date, Decimal, Timestamp, Image):
        assert compile_value(field(nullable=True))(None) is None


def test_a_message_tells_the_place_inside_a_value() -> None:
    field = List(Struct(point=Struct(lat=Float64())))
    with pytest.raises(ValueRejectedError) as caught:
        compile_value(field)([{"point": {"lat": 1}}, {"point": {"lat": "x"}}])
    assert caught.value.message("places").startswith("field 'places' at [1].point.lat: 'x' is of type string")


def test_big_values_are_cut_in_messages() -> None:
    for value in ("x" * 10**6, [1] * 10**6, {str(i): 1 for i in range(1000)}, b"x" * 10**6):
        with pytest.raises(ValueRejectedError) as caught:
            compile_value(Bool())(value)
        assert len(caught.value.message("x")) < 200


def test_a_default_that_does_not_fit_is_a_schema_error() -> None:
    from parity.codec.rows import RowDecoder

    for schema in (
        Schema(n=Int8(default=300)),
        Schema(s=Struct(n=Int8(default="x"))),
        Schema(n=Int8(default=None)),
    ):
        with pytest.raises(SchemaError, match="the default of field 'n'"):
            RowDecoder(schema)


def test_tensors_and_images_as_arrays_are_read() -> None:
    got = compile_value(Image(form="array", channels=3))([[[1, 2, 3]], [[4, 5, 6]]])
    assert got.dtype == np.uint8
    assert got.shape == (2, 1, 3)
    assert compile_value(Tensor("float32", (None,), nullable=True))(None) is None
