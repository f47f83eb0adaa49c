"""Field types and schemas: what they are in Arrow and numpy, and what a wrong one is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

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
    Image,
    Int8,
    Int64,
    List,
    Schema,
    String,
    Struct,
    Tensor,
    Timestamp,
    UInt64,
)
from tests.strategies import fields


def item(kind: pa.DataType, *, nullable: bool = False) -> pa.Field[Any]:
    return pa.field("item", kind, nullable=nullable)


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        (Bool(), pa.bool_()),
        (UInt64(), pa.uint64()),
        (Float16(), pa.float16()),
        (BFloat16(), pa.float32()),
        (String(), pa.string()),
        (Bytes(), pa.binary()),
        (Image(), pa.binary()),
        (Timestamp(unit="ms", tz="UTC"), pa.timestamp("ms", "UTC")),
        (Date(), pa.date32()),
        (Decimal(precision=38, scale=2), pa.decimal128(38, 2)),
        (Decimal(precision=39, scale=2), pa.decimal256(39, 2)),
        (Tensor("float32", (2, 3)), pa.list_(item(pa.float32()), 6)),
        (Tensor("bfloat16", (2,)), pa.list_(item(pa.float32()), 2)),
        (Tensor("bool", (None, 2)), pa.list_(item(pa.bool_()))),
        (Tensor("int8", (2, 0)), pa.list_(item(pa.int8()))),
        (List(Int8(nullable=True)), pa.list_(item(pa.int8(), nullable=True))),
        (Struct(a=Int8()), pa.struct([pa.field("a", pa.int8(), nullable=False)])),
    ],
)
def test_the_canonical_arrow_type(field: Field, expected: pa.DataType) -> None:
    assert field.arrow_type == expected


def test_tensors_of_several_varying_dimensions_carry_their_shape() -> None:
    kind: Any = Tensor("uint8", (None, None, 3)).arrow_type
    assert [kind.field(at).name for at in range(2)] == ["data", "shape"]
    assert kind.field(0).type == pa.list_(item(pa.uint8()))
    assert kind.field(1).type == pa.list_(item(pa.int32()), 3)
    assert Image(form="array", channels=3).arrow_type == kind


def test_numpy_dtypes_and_row_shapes() -> None:
    assert BFloat16().numpy_dtype == BFLOAT16
    assert Timestamp(unit="ms").numpy_dtype == np.dtype("M8[ms]")
    assert Date().numpy_dtype == np.dtype("M8[D]")
    assert String().numpy_dtype is None
    assert String().row_shape is None
    assert Int8().row_shape == ()
    assert Tensor("int8", (2, 3)).row_shape == (2, 3)
    assert Tensor("int8", (None, 3)).row_shape is None


@pytest.mark.slow
@given(fields())
def test_every_field_has_an_arrow_type_a_description_and_metadata(field: Field) -> None:
    assert isinstance(field.arrow_type, pa.DataType)
    assert field.describe().endswith(" or null") == field.nullable
    given = field.to_arrow("x")
    assert given.nullable == field.nullable
    assert (given.metadata or {})[b"parity.type"].decode() == field.type_name
    assert Schema(x=field).digest_text() == Schema(x=field).digest_text()
    assert hash(field) == hash(field)


def test_descriptions_say_what_is_expected() -> None:
    assert Int8(ge=0, le=9, nullable=True).describe() == "Int8 from 0 to 9 or null"
    assert Float32(ge=0).describe() == "Float32 of at least 0"
    assert Float32(le=0).describe() == "Float32 of at most 0"
    assert Tensor("float32", (None, 3)).describe() == "Tensor(float32, [?, 3])"
    assert List(String(choices=("a", "b"))).describe() == "List of String out of ['a', 'b']"
    assert Struct(a=Int8()).describe() == "Struct(a: Int8)"
    assert Timestamp(tz="UTC").describe() == "Timestamp(us) with an offset, for zone UTC"


def test_limits_narrow_the_dtypes() -> None:
    assert Int8().limits == (-128, 127)
    assert Int8(ge=-1000, le=5).limits == (-128, 5)
    assert Int8(ge=0.5, le=5.5).limits == (1, 5)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Schema(x=cast("Any", Int64)), "is not a field type; write x=Int64()"),
        (lambda: Schema(x=cast("Any", int)), "is not a field type; write x=Int64()"),
        (lambda: Schema(x=cast("Any", list)), "is not a field type; use parity.List"),
        (lambda: Schema(x=cast("Any", Path)), "Path'> is not a field type"),
        (lambda: Schema(x=cast("Any", 3)), "3 is not a field type"),
        (lambda: Schema(_x=Int64()), "must start with a letter"),
        (lambda: Schema(**{"a b": Int64()}), "must start with a letter"),
        (lambda: Tensor("float", (1,)), "dtype 'float' is not known; did you mean"),
        (lambda: Tensor("float32", ()), "is a scalar; use Float32"),
        (lambda: Tensor("float32", (-1,)), "is neither a size nor None"),
        (lambda: Tensor("float32", (True,)), "is neither a size nor None"),
        (lambda: Tensor("float32", (None, 0)), "mixes a variable dimension with an empty one"),
        (lambda: Tensor("float32", (1,), non_finite=cast("Any", "drop")), "is neither 'refuse' nor 'string'"),
        (lambda: Float32(non_finite=cast("Any", "drop")), "is neither 'refuse' nor 'string'"),
        (lambda: Tensor("float32", cast("Any", ("3",))), "is neither a size nor None"),
        (lambda: Int8(le=float("inf")), "range bound inf is not finite; leave it out"),
        (lambda: Float32(ge=float("nan")), "range bound nan is not finite"),
        (lambda: Int8(choices=cast("Any", (1.5,))), "choice 1.5 is not an integer"),
        (lambda: String(choices=cast("Any", "ab")), "choices 'ab' is one string; write a tuple of them"),
        (lambda: Int8(ge=2, le=1), "the range 2 to 1 is empty"),
        (lambda: Int8(ge="a"), "range bound 'a' is not a number"),
        (lambda: Int8(ge=True), "range bound True is not a number"),
        (lambda: List(cast("Any", Int64)), "write List(Int64()), not List(Int64)"),
        (lambda: Struct(), "needs at least one member"),
        (lambda: Image(form=cast("Any", "raw")), "form 'raw' is neither 'encoded' nor 'array'"),
        (lambda: Timestamp(unit=cast("Any", "m")), "unit 'm' is not one of s, ms, us, ns"),
        (lambda: Timestamp(tz="Europe/Nowhere"), "time zone 'Europe/Nowhere' is not known here"),
        (lambda: Timestamp(tz="../etc/passwd"), "is not known here"),
        (lambda: Decimal(precision=77), "needs 1 <= precision <= 76"),
        (lambda: Decimal(precision=2, scale=3), "needs 1 <= precision <= 76"),
    ],
)
def test_a_wrong_schema_is_told_what_is_wrong(make: Any, text: str) -> None:
    with pytest.raises(SchemaError) as caught:
        make()
    assert text in str(caught.value)


def test_a_schema_is_an_ordered_mapping() -> None:
    schema = Schema(b=Int8(), a=String())
    assert schema.names == ("b", "a")
    assert list(schema.items()) == [("b", Int8()), ("a", String())]
    assert len(schema) == 2
    assert "a" in schema
    assert "z" not in schema
    assert schema == Schema(b=Int8(), a=String())
    assert hash(schema) == hash(Schema(b=Int8(), a=String()))
    assert schema != Schema(a=String(), b=Int8())
    assert schema != Schema(b=Int8(nullable=True), a=String())
    with pytest.raises(SchemaError, match="no field 'aa'; did you mean 'a'"):
        schema["aa"]


def test_structs_are_equal_by_their_members() -> None:
    assert Struct(a=Int8()) == Struct(a=Int8())
    assert Struct(a=Int8()) != Struct(a=Int8(), nullable=True)
    assert Struct(a=Int8()) != Struct(b=Int8())
    assert hash(Struct(a=Int8())) == hash(Struct(a=Int8()))


def test_the_arrow_schema_holds_names_nulls_and_metadata() -> None:
    schema = Schema(x=Tensor("bfloat16", (None, 2), nullable=True, doc="unit: m"), n=Int8())
    given = schema.to_arrow()
    assert given.names == ["x", "n"]
    assert [field.nullable for field in given] == [True, False]
    assert given.field("x").metadata == {
        b"parity.type": b"Tensor",
        b"parity.doc": b"unit: m",
        b"parity.dtype": b"bfloat16",
        b"parity.shape": b"[null, 2]",
    }
    assert schema.to_arrow() is given


def test_the_digest_text_changes_with_what_decides_how_values_are_read() -> None:
    texts = {
        schema.digest_text()
        for schema in (
            Schema(x=Int8()),
            Schema(x=Int8(nullable=True)),
            Schema(x=Int8(default=1)),
            Schema(x=Int8(ge=0)),
            Schema(y=Int8()),
            Schema(x=List(Int8())),
            Schema(x=Struct(a=Int8())),
            Schema(x=Struct(a=Int8(nullable=True))),
        )
    }
    assert len(texts) == 8
    assert Schema(x=Int8(doc="a")).digest_text() == Schema(x=Int8()).digest_text()


def test_a_nullable_struct_of_fixed_tensors_can_be_written_to_parquet() -> None:
    kind: Any = Struct(x=Tensor("float32", (2,)), nullable=True).arrow_type
    assert kind.field(0).nullable, "pyarrow fails to read back a null struct with a required fixed-size list"
