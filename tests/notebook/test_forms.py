from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from parity import Float32, Image, Int64, List, Schema, String, Struct, Tensor
from parity.codec.rows import RowDecoder
from parity_notebook.forms import first_rows, is_one_row

SCHEMA = Schema(
    number=Float32(),
    text=String(),
    image=Tensor("uint8", (2, 3)),
    words=List(String()),
    point=Struct(x=Int64()),
)
PIXELS = np.zeros((2, 3), np.uint8)


@pytest.mark.parametrize(
    "rows",
    [
        {"number": 1.5},
        {"number": None},
        {"number": np.float32(1.5)},
        {"number": np.array(1.5)},
        {"text": "abc"},
        {"image": PIXELS},
        {"image": PIXELS.tolist()},
        {"words": ["a", "b"]},
        {"words": np.array(["a"], dtype=object)},
        {"words": []},
        {"words": [], "text": "a"},
        {"point": {"x": 1}},
        {"image": PIXELS, "words": ["a"]},
        {"words": [["wrong depth"]], "text": "a"},
        {},
        {"unknown": [1, 2]},
    ],
    ids=str,
)
def test_a_dict_of_single_values_is_one_row(rows: dict[str, Any]) -> None:
    assert is_one_row(SCHEMA, rows)


@pytest.mark.parametrize(
    "rows",
    [
        {"number": [1.5]},
        {"number": np.zeros(3, np.float32)},
        {"number": np.zeros(0, np.float32)},
        {"number": []},
        {"text": np.array(["a", "b"])},
        {"text": np.array(["a", "b"], dtype=object)},
        {"image": PIXELS[None]},
        {"image": [PIXELS, PIXELS]},
        {"words": [["a"], []]},
        {"words": np.array([["a"], ["b", "c"]], dtype=object)},
        {"words": [], "text": []},
        {"number": pd.Series([1.0])},
        {"words": pd.Series([["a"]])},
        {"words": pl.Series([["a"]])},
        {"words": pa.array([["a"]])},
        {"words": pa.chunked_array([pa.array([["a"]])])},
        {"point": [{"x": 1}]},
    ],
    ids=str,
)
def test_a_dict_of_deeper_values_is_columns(rows: dict[str, Any]) -> None:
    assert not is_one_row(SCHEMA, rows)


def test_what_is_no_dict_is_many_rows() -> None:
    assert not any(is_one_row(SCHEMA, rows) for rows in ([], [{"number": 1.0}], pd.DataFrame(), pa.table({})))


def test_a_batch_is_many_rows_even_when_it_is_empty_and_holds_lists() -> None:
    schema = Schema(words=List(String()))
    batch = RowDecoder(schema).decode([{"words": ["a"]}, {"words": []}]).batch
    assert not is_one_row(schema, batch)
    assert not is_one_row(schema, batch.slice(0, 0))
    assert first_rows(batch, 1)["words"].to_pylist() == [["a"]]


def test_what_is_no_form_of_rows_is_left_to_the_codec() -> None:
    assert first_rows(7, 2) == 7


def test_an_encoded_image_is_one_value_and_pixels_are_three_deep() -> None:
    assert is_one_row(Schema(picture=Image()), {"picture": b"\xff\xd8"})
    pixels = np.zeros((4, 5, 3), np.uint8)
    schema = Schema(picture=Image(form="array"))
    assert is_one_row(schema, {"picture": pixels})
    assert not is_one_row(schema, {"picture": [pixels]})


@pytest.mark.parametrize(
    "rows",
    [
        [{"number": float(row)} for row in range(5)],
        {"number": np.arange(5.0)},
        pd.DataFrame({"number": np.arange(5.0)}, index=[9, 8, 7, 6, 5]),
        pl.DataFrame({"number": np.arange(5.0)}),
        pa.table({"number": pa.array(range(5), pa.float64())}),
        pa.record_batch({"number": pa.array(range(5), pa.float64())}),
    ],
    ids=lambda rows: type(rows).__name__,
)
def test_the_first_rows_keep_their_form(rows: Any) -> None:
    few = first_rows(rows, 2)
    assert type(few) is type(rows)

    numbers = [row["number"] for row in few] if isinstance(few, list) else list(few["number"])
    assert [float(str(number)) for number in numbers] == [0.0, 1.0]
