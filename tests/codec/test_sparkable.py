"""Every type has Spark's counterpart by the stated rule, and comes back exactly; what has none is refused."""

from __future__ import annotations

import decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parity.codec.arrow import decode_table
from parity.codec.sparkable import spark_schema, spark_table, spark_type
from parity.errors import SchemaError
from parity.examples import example_batch
from parity.schema import (
    BFloat16,
    Bool,
    Bytes,
    Date,
    Decimal,
    Float16,
    Float32,
    Int8,
    Int64,
    List,
    Schema,
    String,
    Struct,
    Tensor,
    Timestamp,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (pa.uint8(), pa.int16()),
        (pa.uint16(), pa.int32()),
        (pa.uint32(), pa.int64()),
        (pa.uint64(), pa.decimal128(20, 0)),
        (pa.float16(), pa.float32()),
        (pa.large_string(), pa.string()),
        (pa.dictionary(pa.int32(), pa.string()), pa.string()),
        (pa.binary(16), pa.binary()),
        (pa.timestamp("s"), pa.timestamp("us")),
        (pa.timestamp("ns", tz="Europe/Madrid"), pa.timestamp("us", tz="UTC")),
        (pa.list_(pa.uint8(), 3), pa.list_(pa.field("element", pa.int16()))),
        (pa.struct([("a", pa.float16())]), pa.struct([("a", pa.float32())])),
        (pa.decimal256(30, 2), pa.decimal128(30, 2)),
        (pa.int64(), pa.int64()),
    ],
)
def test_a_type_has_its_counterpart(kind: pa.DataType, expected: pa.DataType) -> None:
    assert spark_type(kind) == expected


@pytest.mark.parametrize("kind", [pa.duration("s"), pa.time64("us"), pa.decimal256(50, 2), pa.null()])
def test_a_type_without_counterpart_is_refused_by_column(kind: pa.DataType) -> None:
    with pytest.raises(SchemaError, match=r"column 'odd': Spark has no type for Arrow's"):
        spark_schema(pa.schema([pa.field("odd", kind)]))


ALL = Schema(
    flag=Bool(),
    small=Int8(nullable=True),
    byte=UInt8(),
    short=UInt16(nullable=True),
    word=UInt32(),
    big=UInt64(nullable=True),
    whole=Int64(),
    half=Float16(),
    brain=BFloat16(),
    single=Float32(nullable=True),
    text=String(nullable=True),
    data=Bytes(),
    day=Date(nullable=True),
    price=Decimal(12, 2),
    instant=Timestamp("ms", tz="Europe/Madrid", nullable=True),
    wall=Timestamp("us"),
    pixels=Tensor("uint8", (4,)),
    ragged=Tensor("float32", (None, 2)),
    twice=Tensor("uint16", (None, None)),
    tags=List(UInt32()),
    pair=Struct(a=Int8(), b=UInt64(nullable=True)),
)


def test_every_field_type_comes_back_from_sparks_types_bit_for_bit() -> None:
    rows = example_batch(ALL, 40).to_table()
    sent = spark_table(rows)
    assert all(spark_type(field.type) == field.type for field in sent.schema)
    back = decode_table(ALL, sent)
    assert back.errors == ()
    for name in ALL.names:
        assert back.batch[name].arrow.equals(rows.column(name).combine_chunks()), name


def test_nanoseconds_that_are_no_microseconds_are_refused() -> None:
    table = pa.table({"at": pa.array([1500], pa.timestamp("ns"))})
    with pytest.raises(SchemaError, match=r"column 'at': .*would lose data: 1500"):
        spark_table(table)


@given(st.lists(st.none() | st.integers(-(2**70), 2**70), max_size=12))
def test_whole_decimals_are_integers_where_they_fit(values: list[int | None]) -> None:
    column = pa.array([None if v is None else decimal.Decimal(v) for v in values], pa.decimal128(38, 0))
    for field in (UInt64(nullable=True), Int64(nullable=True), UInt8(nullable=True)):
        info = np.iinfo(field.numpy_dtype)
        found = decode_table(Schema(value=field), pa.table({"value": column}))
        wrong = [row for row, v in enumerate(values) if v is not None and not info.min <= v <= info.max]
        assert [error.row for error in found.errors] == wrong
        assert found.batch["value"].to_pylist() == [v for row, v in enumerate(values) if row not in wrong]


def test_decimals_with_digits_behind_the_point_are_no_integers() -> None:
    table = pa.table({"value": pa.array([decimal.Decimal("1.50")])})
    with pytest.raises(SchemaError, match="expected Int64"):
        decode_table(Schema(value=Int64()), table)
