"""Frames of every library: typed columns typed, objects value by value, the same kind back."""

from __future__ import annotations

import datetime
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow
import pytest
import torch

from parity.codec import frames
from parity.codec.rows import RowDecoder
from parity.errors import SchemaError
from parity.schema import (
    BFLOAT16,
    BFloat16,
    Bytes,
    Date,
    Decimal,
    Field,
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
    UInt64,
)

pa: Any = pyarrow
BIG = 2**53 + 1


def column(field: Field, values: Any) -> list[Any]:
    decoded = frames.decode(Schema(x=field), {"x": values})
    assert decoded.errors == ()
    return decoded.batch["x"].to_pylist()


def in_pandas(field: Field, values: Any) -> list[Any]:
    decoded = frames.decode(Schema(x=field), pd.DataFrame({"x": values}))
    assert decoded.errors == ()
    return decoded.batch["x"].to_pylist()


def faults(field: Field, values: Any) -> dict[int, str]:
    return {error.row: error.message for error in frames.decode(Schema(x=field), {"x": values}).errors}


def refusal(schema: Schema, given: Any) -> str:
    with pytest.raises(SchemaError) as caught:
        frames.decode(schema, given)
    return str(caught.value)


def test_pandas_integers_stay_integers_beside_nulls() -> None:
    assert in_pandas(Int64(nullable=True), pd.array([BIG, None], "Int64")) == [BIG, None]
    assert in_pandas(Int64(nullable=True), pd.Series([BIG, None], dtype=object)) == [BIG, None]
    assert in_pandas(UInt64(nullable=True), pd.array([2**64 - 1, pd.NA], "UInt64")) == [2**64 - 1, None]
    assert in_pandas(Int64(nullable=True), pd.Series([BIG, None], dtype=pd.ArrowDtype(pa.int64()))) == [
        BIG,
        None,
    ]


def test_a_float_column_for_an_integer_field_names_pandas_remedy() -> None:
    frame = pd.DataFrame({"x": [1, None]})
    assert frame["x"].dtype == np.float64
    assert ".astype('Int64') keeps both" in refusal(Schema(x=Int64(nullable=True)), frame)


def test_nan_is_no_null_in_pandas_floats() -> None:
    assert np.isnan(in_pandas(Float64(nullable=True), np.array([np.nan]))[0])
    both = pd.array(pa.array([1.0, float("nan"), None], pa.float32()), dtype=pd.ArrowDtype(pa.float32()))
    got = in_pandas(Float32(nullable=True), both)
    assert got[0] == 1.0
    assert np.isnan(got[1])
    assert got[2] is None
    assert in_pandas(Float32(nullable=True), pd.array([1.5, None], "Float32")) == [1.5, None]


def test_pandas_floats_are_never_rounded() -> None:
    decoded = frames.decode(Schema(x=Float32()), pd.DataFrame({"x": [0.5, 0.1]}))
    assert decoded.index.tolist() == [0]
    assert "0.1 of type float64 is no float32" in decoded.errors[0].message
    untyped = pd.DataFrame({"x": pd.Series([0.1], dtype=object)})
    assert frames.decode(Schema(x=Float32()), untyped).batch["x"].numpy()[0] == np.float32(0.1)


def test_pandas_texts_categories_and_missing_ones() -> None:
    for dtype in ("str", "string", "category", object):
        values = pd.Series(["a", "\x00é", None], dtype=dtype)
        assert in_pandas(String(nullable=True), values) == ["a", "\x00é", None]
    bad = frames.decode(
        Schema(x=String(nullable=True)), pd.DataFrame({"x": pd.Series(["a", np.nan], dtype=object)})
    )
    assert "NaN is a float, not null" in bad.errors[0].message


def test_pandas_times() -> None:
    zoned = pd.Series(pd.DatetimeIndex(["1960-07-01T00:00:00Z", pd.NaT])).dt.tz_convert("Asia/Tokyo")
    got = in_pandas(Timestamp(tz="UTC", nullable=True), zoned)
    assert got == [datetime.datetime(1960, 7, 1, tzinfo=datetime.UTC), None]
    naive = pd.Series(np.array(["1960-07-01", "NaT"], "M8[s]"))
    assert in_pandas(Timestamp(nullable=True), naive) == [datetime.datetime(1960, 7, 1), None]
    assert (
        "null is not allowed"
        in frames.decode(Schema(x=Timestamp()), pd.DataFrame({"x": naive})).errors[0].message
    )
    assert ".dt.tz_localize(" in refusal(Schema(x=Timestamp(tz="UTC")), pd.DataFrame({"x": naive}))
    objects = pd.Series([pd.Timestamp("1960-07-01T00:00:00.000000001Z"), pd.NaT, None], dtype=object)
    got = in_pandas(Timestamp(unit="ns", tz="UTC", nullable=True), objects)
    assert got == [np.datetime64("1960-07-01T00:00:00.000000001"), None, None]
    assert in_pandas(Date(), [datetime.date(1960, 7, 1)]) == [datetime.date(1960, 7, 1)]


def test_pandas_sparse_columns_and_odd_dtypes() -> None:
    assert in_pandas(Int64(), pd.arrays.SparseArray([0, 0, 3])) == [0, 0, 3]
    periods = pd.DataFrame({"x": pd.period_range("2020", periods=1, freq="D")})
    assert "column 'x' is of type" in refusal(Schema(x=Date()), periods)
    waits = pd.DataFrame({"x": np.array([1], "m8[s]")})
    assert "column 'x' is of type duration[s]" in refusal(Schema(x=Int64()), waits)


def test_pandas_columns_are_found_by_name_only() -> None:
    frame = pd.DataFrame({"other": [1], "b": [2], "a": [1]})
    decoded = frames.decode(Schema(a=Int64(), b=Int64()), frame)
    assert decoded.batch["a"].to_pylist() == [1]
    twice = pd.DataFrame([[1, 2]], columns=["a", "a"])
    assert "columns ['a'] are there more than once" in refusal(Schema(a=Int64()), twice)
    indexed = frame.set_index("a")
    text = refusal(Schema(a=Int64()), indexed)
    assert "column 'a' (Int64) is missing" in text
    assert "['a'] is in the index: use .reset_index()" in text


def test_polars_columns() -> None:
    frame = pl.DataFrame(
        {
            "n": [BIG, None],
            "s": pl.Series(["a", "b"], dtype=pl.Categorical),
            "t": pl.Series([datetime.datetime(1960, 1, 1)] * 2).dt.replace_time_zone("UTC"),
            "x": pl.Series([[1.0, 2.0]] * 2, dtype=pl.Array(pl.Float32, 2)),
            "o": pl.Series([{1}, {2}], dtype=pl.Object),
        }
    )
    schema = Schema(n=Int64(nullable=True), s=String(), t=Timestamp(tz="UTC"), x=Tensor("float32", (2,)))
    decoded = frames.decode(schema, frame)
    assert decoded.errors == ()
    assert decoded.batch["n"].to_pylist() == [BIG, None]
    objects = frames.decode(Schema(o=Bytes()), frame)
    assert "is of type set; expected Bytes" in objects.errors[0].message
    assert "a Polars LazyFrame is no DataFrame; use .collect()" in refusal(schema, frame.lazy())


def test_dicts_of_arrays() -> None:
    assert column(Int64(), np.array([BIG])) == [BIG]
    assert column(Int64(), [BIG]) == [BIG]
    assert column(Int64(), (1, 2)) == [1, 2]
    assert column(Int64(), np.array([1, 2], ">i8")) == [1, 2]
    assert column(Int64(nullable=True), np.ma.MaskedArray([BIG, 7], [False, True])) == [BIG, None]
    assert column(Int64(), torch.tensor([1, 2])) == [1, 2]
    assert column(Float32(), torch.tensor([0.1], requires_grad=True)) == [float(np.float32(0.1))]
    assert column(BFloat16(), np.array([0.1], BFLOAT16)) == [float(BFLOAT16.type(0.1))]
    assert column(String(), np.array(["a", "bc"])) == ["a", "bc"]
    assert column(String(), pd.Series(["a"])) == ["a"]
    assert column(String(), pl.Series(["a"])) == ["a"]
    assert column(Int64(), pa.chunked_array([[1], [2]])) == [1, 2]
    assert column(Timestamp(unit="s"), np.array(["1960-01-01"], "M8[s]")) == [datetime.datetime(1960, 1, 1)]
    assert column(Date(), np.array(["1960-01-01"], "M8[D]")) == [datetime.date(1960, 1, 1)]
    got = column(Tensor("float32", (2, 2)), np.arange(8, dtype=np.float32).reshape(2, 2, 2)[::-1])
    assert [value.tolist() for value in got] == [[[4, 5], [6, 7]], [[0, 1], [2, 3]]]
    assert column(Tensor("uint8", (None,)), np.ones((2, 3), np.uint8))[1].tolist() == [1, 1, 1]
    images = column(Image(form="array"), torch.zeros((2, 4, 5, 3), dtype=torch.uint8))
    assert images[0].shape == (4, 5, 3)


def test_dicts_of_arrays_have_faults_too() -> None:
    assert "NaT" in faults(Timestamp(unit="s"), np.array(["NaT", 0], "M8[s]"))[0]
    assert "NaT" in faults(Date(), np.array(["NaT", 0], "M8[D]"))[0]
    assert "out of the range of a date" in faults(Date(), np.array([2**40, 0], "M8[D]"))[0]
    assert "null is not allowed" in faults(Int64(), np.ma.MaskedArray([1, 7], [False, True]))[1]
    found = faults(Tensor("float32", (2,)), np.array([[0.5, 0.25], [0.5, 0.1]]))
    assert list(found) == [1]
    assert "field 'x' at [1]: 0.1 of dtype float64 is no float32" in found[1]
    assert list(faults(Int8(), np.array([1, 300]))) == [1]


@pytest.mark.parametrize(
    ("schema", "given", "text"),
    [
        (Schema(x=Int64()), {"x": 1}, "a single value; a dict holds columns"),
        (Schema(x=String()), {"x": "abc"}, "for one row, give [row]"),
        (Schema(x=Int64()), {"x": np.array(1)}, "a single value"),
        (
            Schema(x=Int64(), y=Int64()),
            {"x": [1], "y": [1, 2]},
            "the columns differ in length: {'x': 1, 'y': 2}",
        ),
        (Schema(x=Int64()), {"X": [1]}, "none of the dict's keys is a field; known: 'x'"),
        (Schema(x=Int64()), {"x": {1, 2}}, "expected an array or a list with one value for each row"),
        (Schema(x=Int64()), {"x": np.ones((2, 1), np.int64)}, "use .squeeze(-1)"),
        (Schema(x=Int64()), {"x": np.ones(2, complex)}, "an array of dtype complex128; expected Int64"),
        (Schema(x=Tensor("float32", (2,))), {"x": np.ones((2, 3), np.float32)}, "expected rows of Tensor"),
        (Schema(x=Tensor("int8", (2,))), {"x": np.ones((2, 2))}, "it does not hold integers"),
        (Schema(x=Timestamp(tz="UTC")), {"x": np.array([0], "M8[us]")}, "it is naive"),
        (Schema(x=Int64()), "abc", "'abc' of type str is no table; give a pandas or Polars DataFrame"),
        (Schema(x=Int64()), 3, "3 of type int is no table"),
        (Schema(x=Int64()), {}, "column 'x' (Int64) is missing"),
    ],
)
def test_what_is_no_table_is_refused_with_a_remedy(schema: Schema, given: Any, text: str) -> None:
    assert text in refusal(schema, given)


def test_a_batch_is_taken_as_it_is() -> None:
    batch = RowDecoder(Schema(x=Int64())).decode([{"x": 1}]).batch
    assert frames.decode(Schema(x=Int64()), batch).batch is batch
    assert "another schema" in refusal(Schema(x=Int8()), batch)


def test_defaults_fill_missing_columns() -> None:
    schema = Schema(x=Int64(), s=String(default="d"), v=Tensor("int8", (None,), default=[1]))
    decoded = frames.decode(schema, pd.DataFrame({"x": [1, 2]}))
    assert decoded.batch["s"].to_pylist() == ["d", "d"]
    assert decoded.batch["v"].to_pylist()[1].tolist() == [1]


SCHEMA = Schema(
    n=Int64(nullable=True),
    m=Int64(),
    f=Float32(nullable=True),
    g=Float64(),
    s=String(nullable=True),
    t=Timestamp(tz="Europe/Madrid", nullable=True),
    d=Date(),
    c=Decimal(scale=2),
    x=Tensor("float32", (2, 1)),
    items=List(Int64(nullable=True)),
    p=Struct(a=Int8()),
)


def some_table() -> Any:
    row = {
        "n": None,
        "m": BIG,
        "f": None,
        "g": 0.1,
        "s": None,
        "t": None,
        "d": "1960-01-01",
        "c": "1.50",
        "x": [[1], [2]],
        "items": [BIG, None],
        "p": {"a": 1},
    }
    full = {**row, "n": BIG, "f": "NaN", "s": "é", "t": "1960-07-01T00:00:00Z"}
    return RowDecoder(SCHEMA).decode([row, full]).batch.to_table()


def test_pandas_answers_have_dtypes_that_depend_on_the_schema_only() -> None:
    frame = frames.encode(pd.DataFrame({"q": [1, 2]}, index=["r", "s"]), some_table())
    assert frame.index.tolist() == ["r", "s"]
    assert {name: str(dtype) for name, dtype in frame.dtypes.items()} == {
        "n": "Int64",
        "m": "int64",
        "f": "float[pyarrow]",
        "g": "float64",
        "s": "string",
        "t": "datetime64[us, Europe/Madrid]",
        "d": "date32[day][pyarrow]",
        "c": "decimal128(38, 2)[pyarrow]",
        "x": "object",
        "items": "object",
        "p": "object",
    }
    assert frame["n"].tolist() == [pd.NA, BIG]
    assert frame["x"].iloc[0].shape == (2, 1)
    assert frame["items"].iloc[0] == [BIG, None]
    alone = frames.encode(frame, some_table().slice(1))
    assert alone.dtypes.equals(frame.dtypes)
    assert alone.index.tolist() == [0]


def test_answers_come_back_in_kind() -> None:
    table = some_table()
    assert isinstance(frames.encode(pl.DataFrame(), table), pl.DataFrame)
    assert frames.encode(table, table) is table
    batch = frames.encode(pa.RecordBatch.from_pylist([{"a": 1}]), table)
    assert isinstance(batch, pyarrow.RecordBatch)
    assert batch.num_rows == 2
    assert frames.encode(batch, table.slice(0, 0)).num_rows == 0
    arrays = frames.encode({"m": [1]}, table)
    assert arrays["m"].dtype == np.int64
    assert isinstance(arrays["n"], np.ma.MaskedArray)
    assert arrays["x"].shape == (2, 2, 1)
    rows = frames.encode([{}], table)
    assert rows[1]["t"] == datetime.datetime(1960, 7, 1, tzinfo=datetime.UTC)
    with pytest.raises(SchemaError, match="no table can be made in the form of 3"):
        frames.encode(3, table)


def test_what_polars_cannot_hold_is_refused_before_it_panics() -> None:
    table = RowDecoder(Schema(a=List(Decimal(precision=50)))).decode([{"a": ["1"]}]).batch.to_table()
    with pytest.raises(SchemaError, match="decimals of at most 38 digits; ask for pandas or Arrow"):
        frames.encode(pl.DataFrame(), table)


def test_a_result_tables_error_column_survives_every_form() -> None:
    error = pa.struct([(name, pa.string()) for name in ("kind", "stage", "field", "message")])
    told = {"kind": "invalid", "stage": None, "field": "x", "message": "no"}
    table = pa.table({"x": pa.array([1, None]), "_error": pa.array([None, told], error)})
    assert frames.encode([{}], table)[1]["_error"] == told
    assert frames.encode(pd.DataFrame(), table)["_error"].tolist() == [None, told]
    assert frames.encode(pl.DataFrame(), table)["_error"].to_list() == [None, told]
    assert frames.encode({}, table)["_error"][1] == told


def test_types_that_are_no_fields_are_given_as_arrow_gives_them() -> None:
    table = pa.table({"x": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64()))})
    assert frames.encode([], table) == [{"x": [("k", 1)]}]


@pytest.mark.slow
def test_the_codecs_import_neither_pandas_nor_polars_nor_torch() -> None:
    code = (
        "import sys; from parity.codec import frames, arrow, rows, oip, outputs, json_schema\n"
        "from parity.schema import Schema, Int64\n"
        "frames.encode({}, frames.decode(Schema(x=Int64()), {'x': [1]}).batch.to_table())\n"
        "print([m for m in ('pandas', 'polars', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
