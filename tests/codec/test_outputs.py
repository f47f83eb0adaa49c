"""What postprocess may return, and what is said of what it may not."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from parity.codec.outputs import build_outputs
from parity.codec.rows import RowDecoder
from parity.errors import OutputError
from parity.examples import example_batch
from parity.schema import (
    BFLOAT16,
    BFloat16,
    Date,
    Decimal,
    Field,
    Float16,
    Float32,
    Image,
    Int32,
    Int64,
    List,
    Schema,
    String,
    Struct,
    Tensor,
    Timestamp,
)
from tests.strategies import fields

pa: Any = pyarrow
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def column(field: Field, value: Any, rows: int = 2) -> list[Any]:
    batch = build_outputs(Schema(y=field), {"y": value}, rows, "Digits")
    batch["y"].arrow.validate(full=True)
    return [item.tolist() if isinstance(item, np.ndarray) else item for item in batch["y"]]


def refusal(field: Field, value: Any, rows: int = 2) -> OutputError:
    with pytest.raises(OutputError) as caught:
        build_outputs(Schema(y=field), {"y": value}, rows, "Digits")
    assert (caught.value.field, caught.value.handler, caught.value.stage) == ("y", "Digits", "postprocess")
    assert str(caught.value).startswith("output field 'y' of handler Digits: ")
    return caught.value


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        (Int64(), torch.tensor([1, 2]), [1, 2]),
        (Int64(), np.array([1, 2]), [1, 2]),
        (Int64(), [1, np.int64(2)], [1, 2]),
        (Int64(), [torch.tensor(1), np.array(2)], [1, 2]),
        (Int64(), np.array([1, 2], object), [1, 2]),
        (Int64(), np.array([1, 2], ">i8"), [1, 2]),
        (Int64(), pa.array([1, 2]), [1, 2]),
        (Int64(), pa.chunked_array([[1], [2]]), [1, 2]),
        (Int64(), pd.Series([1, 2]), [1, 2]),
        (Int64(nullable=True), pd.array([1, None], "Int64"), [1, None]),
        (Int64(), pl.Series([1, 2]), [1, 2]),
        (Int64(nullable=True), np.ma.MaskedArray([1, 2], [False, True]), [1, None]),
        (Int64(nullable=True), [None, 2**53 + 1], [None, 2**53 + 1]),
        (Float32(), torch.tensor([0.5, 1.0], requires_grad=True), [0.5, 1.0]),
        (Float32(), torch.arange(4, dtype=torch.float32)[::2], [0.0, 2.0]),
        (Float32(), [0.1, "NaN"][:1] * 2, [float(np.float32(0.1))] * 2),
        (BFloat16(), torch.tensor([0.5, 1.0], dtype=torch.bfloat16), [0.5, 1.0]),
        (BFloat16(), np.array([0.5, 1], BFLOAT16), [0.5, 1.0]),
        (Float16(), torch.tensor([0.5, 1.0], dtype=torch.float16), [0.5, 1.0]),
        (String(), ["a", "b"], ["a", "b"]),
        (String(), np.array(["a", "bc"]), ["a", "bc"]),
        (String(), pa.array(["a", "b"]).dictionary_encode(), ["a", "b"]),
        (String(), pd.Series(["a", "b"]), ["a", "b"]),
        (Date(), np.array([0, 1], "M8[D]"), [datetime.date(1970, 1, 1), datetime.date(1970, 1, 2)]),
        (
            Timestamp(tz="UTC"),
            np.array([0, 1], "M8[us]"),
            [EPOCH, EPOCH + datetime.timedelta(microseconds=1)],
        ),
        (Decimal(scale=1), [decimal.Decimal("1.5"), "2"], [decimal.Decimal("1.5"), decimal.Decimal("2.0")]),
        (Tensor("float32", (2,)), torch.ones(2, 2), [[1, 1], [1, 1]]),
        (Tensor("float32", (2,)), torch.arange(4, dtype=torch.float32).reshape(2, 2).T, [[0, 2], [1, 3]]),
        (Tensor("float32", (None,)), torch.ones(2, 1), [[1], [1]]),
        (Tensor("float32", (None,)), [np.ones(1, np.float32), torch.zeros(2)], [[1], [0, 0]]),
        (Tensor("float32", (2,), nullable=True), [None, [1, 2]], [None, [1, 2]]),
        (
            Tensor("float32", (1,)),
            pa.FixedSizeListArray.from_arrays(pa.array([1, 2], pa.float32()), 1),
            [[1], [2]],
        ),
        (Image(form="array"), torch.zeros((2, 1, 1, 3), dtype=torch.uint8), [[[[0, 0, 0]]]] * 2),
        (List(String()), [["a"], []], [["a"], []]),
        (Struct(a=Int64()), [{"a": 1}, {"a": 2}], [{"a": 1}, {"a": 2}]),
    ],
    ids=lambda v: repr(v)[:40],
)
def test_what_fits_becomes_a_column(field: Field, value: Any, expected: list[Any]) -> None:
    assert column(field, value) == expected


def test_a_column_of_the_batch_may_be_returned() -> None:
    batch = (
        RowDecoder(Schema(n=Int64(nullable=True), m=Int64()))
        .decode([{"n": None, "m": 1}, {"n": 2, "m": 3}])
        .batch
    )
    assert column(Int64(nullable=True), batch["n"]) == [None, 2]
    assert column(Int64(), batch["m"]) == [1, 3]


@given(fields(), st.integers(0, 5))
def test_a_column_of_the_batch_may_be_returned_whatever_its_field(field: Field, rows: int) -> None:
    batch = example_batch(Schema(y=field), rows)
    built = build_outputs(Schema(y=field), {"y": batch["y"]}, rows, "Digits")
    assert built["y"].arrow.equals(batch["y"].arrow)


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        (
            Int64(),
            torch.tensor([1, 2], dtype=torch.int32),
            "dtype int32; the schema says int64; cast it in postprocess",
        ),
        (Int64(), torch.tensor([1.0, 2.0]), "dtype float32; the schema says int64"),
        (Int64(), torch.tensor([True, False]), "dtype bool; the schema says int64"),
        (Float32(), np.array([0.5, 1]), "as .to(torch.float32) or .astype('float32')"),
        (Float32(), pa.array([0.5, 1]), "type double; the schema says float; cast it in postprocess"),
        (Float32(), pd.Series([0.5, 1]), "dtype float64; the schema says float32"),
        (
            Int64(),
            torch.tensor([[1], [2]]),
            "shape (2, 1); the schema says Int64, so shape (2,); return it with .squeeze(-1)",
        ),
        (Int64(), torch.zeros((2, 3), dtype=torch.int64), "shape (2, 3); the schema says Int64"),
        (
            Int64(),
            torch.tensor([1, 2, 3]),
            "3 rows for a batch of 2; return one value for each row, in their order",
        ),
        (Int64(), [1], "1 rows for a batch of 2"),
        (Int64(), pa.array([1]), "1 rows for a batch of 2"),
        (Int64(), torch.tensor(1), "is one value, not one for each of 2 rows; .squeeze()"),
        (Int64(), 1, "1 of type int is not one value for each row"),
        (Int64(), "ab", "'ab' of type str is not one value for each row"),
        (Int64(), (n for n in range(2)), "of type generator is not one value for each row"),
        (String(), torch.tensor([1, 2]), "an array of dtype int64; expected String: return a list"),
        (
            List(Int64()),
            torch.ones((2, 2), dtype=torch.int64),
            "return a list with one Python value for each row",
        ),
        (
            Tensor("float32", (3,)),
            torch.ones(2, 2),
            "rows of shape [2]; the schema says Tensor(float32, [3])",
        ),
        (
            Tensor("float32", (3,)),
            torch.ones(2, 3, dtype=torch.float64),
            "dtype float64; the schema says float32",
        ),
        (
            Tensor("float32", (None,)),
            [np.ones(1), np.ones(1)],
            "row 0, an array of dtype float64; expected Tensor(float32, [?]); cast it in",
        ),
        (Timestamp(), np.array([0, 1], "M8[ns]"), "dtype datetime64[ns]; the schema says datetime64[us]"),
        (Image(), torch.zeros((2, 3), dtype=torch.uint8), "an array of dtype uint8; expected Image"),
    ],
    ids=lambda v: repr(v)[:40],
)
def test_what_does_not_fit_is_refused_with_a_remedy(field: Field, value: Any, text: str) -> None:
    error = refusal(field, value)
    assert text in str(error)


@pytest.mark.parametrize(
    ("field", "value", "rows", "text"),
    [
        (Int64(le=1), torch.tensor([1, 2]), (1,), "row 1, 2 is out of range"),
        (Int32(choices=(1, 2)), np.array([3, 2], np.int32), (0,), "row 0, 3 is not one of the choices"),
        (
            Float32(ge=0, le=1),
            torch.tensor([float("nan"), -1]),
            (0, 1),
            "row 0, nan is out of range; expected Float32 from 0 to 1 (and 1 more rows",
        ),
        (Int64(), [1, None], (1,), "row 1, null is not allowed here"),
        (Int64(), pa.array([None, 2]), (0,), "row 0, null is not allowed here"),
        (Int64(), np.ma.MaskedArray([1, 2], [True, False]), (0,), "row 0, null is not allowed here"),
        (String(choices=("a",)), ["a", "b"], (1,), "row 1, 'b' is not one of the choices"),
        (String(choices=("a",)), pa.array(["a", "b"]), (1,), "row 1, 'b' is not one of the choices"),
        (Timestamp(unit="s"), np.array([0, "NaT"], "M8[s]"), (1,), "row 1, the least int64 is NaT"),
        (List(Int64()), [[1], [1, "x"]], (1,), "row 1, 'x' is of type string at [1]"),
    ],
    ids=lambda v: repr(v)[:40],
)
def test_values_at_fault_name_their_rows(field: Field, value: Any, rows: tuple[int, ...], text: str) -> None:
    error = refusal(field, value)
    assert error.rows == rows
    assert text in str(error)


def test_the_row_is_not_told_where_there_is_but_one() -> None:
    assert "Digits: 2 is out of range" in str(refusal(Int64(le=1), torch.tensor([2]), rows=1))


@pytest.mark.parametrize(
    ("returned", "text", "field"),
    [
        ({"label": [1]}, "lacks ['score']", "score"),
        (
            {"label": [1], "scores": [1.0]},
            "lacks ['score'] and has ['scores'], which the output schema does not name (did you",
            "score",
        ),
        (
            {"label": [1], "score": [1.0], "extra": [1]},
            "has ['extra'], which the output schema does not name",
            "extra",
        ),
        ([1], "postprocess returned [1] of type list; expected a dict with the output fields ['lab", None),
        (None, "postprocess returned None of type NoneType", None),
        (torch.ones(1), "of type Tensor; expected a dict", None),
    ],
)
def test_names_are_checked(returned: Any, text: str, field: str | None) -> None:
    with pytest.raises(OutputError) as caught:
        build_outputs(Schema(label=Int64(), score=Float32()), returned, 1, "Digits")
    assert text in str(caught.value)
    assert caught.value.field == field
    assert caught.value.rows == ()


def test_outputs_of_no_rows_are_an_empty_batch() -> None:
    assert build_outputs(Schema(y=Int64()), {"y": []}, 0, "h").num_rows == 0
    assert build_outputs(Schema(y=Float32()), {"y": torch.ones(0)}, 0, "h").num_rows == 0
    assert build_outputs(Schema(), {}, 3, "h").num_rows == 3
