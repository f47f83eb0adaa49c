from __future__ import annotations

import numpy as np
import pytest

from parity import (
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
    UInt8,
    UInt64,
)
from parity.codec import arrow
from parity.examples import EDGE_KINDS, edge_batch, edge_row, example_batch

EVERY_TYPE = Schema(
    flag=Bool(nullable=True),
    small=Int8(),
    count=Int64(nullable=True),
    narrow=UInt8(ge=3, le=7),
    chosen=Int32(choices=(5, 9)),
    big=UInt64(),
    below=Int64(le=-5),
    half=Float16(),
    brain=BFloat16(),
    bounded=Float32(ge=0.1, le=0.7),
    free=Float64(nullable=True),
    text=String(max_length=12),
    word=String(choices=("a", "b")),
    raw=Bytes(max_length=3),
    picture=Image(),
    pixels=Image(form="array"),
    grey=Image(form="array", channels=1),
    instant=Timestamp(unit="ns", tz="Europe/Madrid"),
    wall=Timestamp(unit="s"),
    day=Date(),
    price=Decimal(precision=60, scale=5),
    fixed=Tensor("float32", (2, 3)),
    brains=Tensor("bfloat16", (2,)),
    ragged=Tensor("float16", (None,)),
    matrix=Tensor("int64", (None, None)),
    mask=Tensor("bool", (4,)),
    records=List(Struct(a=Int64(), b=String(nullable=True))),
    record=Struct(x=Float64(), y=Tensor("uint8", (2,))),
)


def test_ordinary_rows_of_every_type_fit_their_schema() -> None:
    batch = example_batch(EVERY_TYPE, 30)
    batch.to_table().validate(full=True)
    decoded = arrow.decode_table(EVERY_TYPE, batch.to_table())
    assert (decoded.num_rows, decoded.errors) == (30, ())


@pytest.mark.slow
def test_edge_rows_of_every_type_fit_their_schema() -> None:
    batch = edge_batch(EVERY_TYPE)
    batch.to_table().validate(full=True)
    decoded = arrow.decode_table(EVERY_TYPE, batch.to_table())
    assert (decoded.num_rows, decoded.errors) == (batch.num_rows, ())


def test_the_first_rows_of_a_longer_batch_are_those_of_a_shorter_one() -> None:
    assert example_batch(EVERY_TYPE, 9).slice(0, 4).to_table().equals(example_batch(EVERY_TYPE, 4).to_table())


def test_another_seed_gives_other_rows() -> None:
    schema = Schema(x=Float64())
    assert example_batch(schema, 5)["x"].to_pylist() != example_batch(schema, 5, seed=1)["x"].to_pylist()


def test_the_first_example_row_has_no_null() -> None:
    batch = example_batch(EVERY_TYPE, 40)
    assert all(column.slice(0, 1).null_count == 0 for column in batch.values())
    assert batch["count"].null_count > 0


def test_no_rows_are_an_empty_batch() -> None:
    assert example_batch(EVERY_TYPE, 0).num_rows == 0


@pytest.mark.parametrize(
    ("field", "values"),
    [
        (Int64(), {0, -(2**63), 2**63 - 1, 2**53 + 1}),
        (UInt8(ge=3, le=7), {3, 7}),
        (Int64(nullable=True, ge=1, le=1), {1, None}),
        (String(max_length=4), {"", "long", "a\u0000é\u0301"}),
    ],
    ids=["int64", "range", "nullable", "text"],
)
def test_edges_are_the_extremes_that_the_field_allows(field: Field, values: set[object]) -> None:
    assert values <= set(edge_batch(Schema(x=field))["x"].to_pylist())


def test_a_bounded_float_has_no_nan_at_its_edges() -> None:
    assert np.isfinite(edge_batch(Schema(x=Float32(ge=0.0)))["x"].numpy()).all()
    assert np.isnan(edge_batch(Schema(x=Float32()))["x"].numpy()).any()


def test_a_row_of_one_edge_kind_is_none_where_no_field_has_it() -> None:
    schema = Schema(a=Int64(), b=String(nullable=True))
    row = edge_row(schema, "null")
    assert row is not None
    assert row["b"].to_pylist() == [None]
    assert edge_row(schema, "nan") is None
    assert {kind for kind in EDGE_KINDS if edge_row(schema, kind) is not None} == {
        "zero",
        "least",
        "greatest",
        "null",
        "empty",
        "longest",
        "odd",
    }


def test_an_encoded_image_is_a_png() -> None:
    assert example_batch(Schema(x=Image()), 1)["x"][0].startswith(b"\x89PNG\r\n\x1a\n")
