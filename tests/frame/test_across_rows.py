"""groupby, merge, sort_values and their like: order, ties, null and NaN keys, beside pandas and Polars."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parity.frame import Frame, FrameError, concat
from parity.frame.grouping import AGGREGATIONS
from tests.frame.columns import HIGH, LOW, NAN, column, same, tables


def rows(frame: Frame) -> list[tuple[Any, ...]]:
    """The rows, NaN as text."""
    found = [column.to_pylist() for column in (frame[name] for name in frame)]
    return [
        tuple("nan" if isinstance(v, float) and math.isnan(v) else v for v in row)
        for row in zip(*found, strict=True)
    ]


def test_groups_come_in_order_of_first_appearance_and_null_is_a_key() -> None:
    frame = Frame({"k": ["b", None, "a", "b", None], "x": [1.0, 2.0, None, 4.0, NAN]})
    found = frame.groupby("k").agg(
        n=("x", "count"), total=("x", "sum"), mean=("x", "mean"), least=("x", "min"), most=("x", "max")
    )
    assert rows(found) == [
        ("b", 2, 5.0, 2.5, 1.0, 4.0),
        (None, 2, "nan", "nan", "nan", "nan"),
        ("a", 0, 0.0, None, None, None),
    ]


def test_nan_is_one_key_and_negative_zero_is_zero() -> None:
    frame = Frame({"k": [NAN, 0.0, -0.0, NAN, None], "x": [1, 2, 3, 4, 5]})
    assert rows(frame.groupby("k").agg(total=("x", "sum"))) == [("nan", 5), (0.0, 5), (None, 5)]


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b", None]), st.sampled_from([1, 2, None]), st.integers(-5, 5)),
        max_size=12,
    )
)
def test_groupby_of_two_keys_is_pandas(data: list[tuple[str | None, int | None, int]]) -> None:
    columns = {
        "a": pa.array([row[0] for row in data], pa.string()),
        "b": pa.array([row[1] for row in data], pa.int64()),
        "x": pa.array([row[2] for row in data], pa.int64()),
    }
    found = Frame(columns).groupby(["a", "b"]).agg(**{how: ("x", how) for how in AGGREGATIONS})
    expected = (
        pa.table(columns)
        .to_pandas(types_mapper=pd.ArrowDtype)
        .groupby(["a", "b"], sort=False, dropna=False)["x"]
        .agg(list(AGGREGATIONS))
        .reset_index()
    )
    mine = {tuple(row[:2]): row[2:] for row in rows(found)}
    theirs = {
        tuple(None if pd.isna(v) else v for v in row[:2]): tuple(row[2:])
        for row in expected.itertuples(index=False)
    }
    assert mine == theirs
    assert [row[:2] for row in rows(found)] == list(dict.fromkeys((row[0], row[1]) for row in data))


def test_sums_of_integers_are_exact_and_refuse_to_overflow() -> None:
    frame = Frame({"k": [1, 1, 2, 2, 2], "x": [HIGH, LOW, HIGH, HIGH, -HIGH]})
    assert rows(frame.groupby("k").agg(total=("x", "sum"))) == [(1, -1), (2, HIGH)]
    with pytest.raises(FrameError, match=r"outside int64 \(groups: row 0\)"):
        Frame({"x": [HIGH, 1]})["x"].sum()
    assert Frame({"x": pa.array([], pa.int64())})["x"].sum() == 0


def test_float32_is_added_in_float64() -> None:
    values = pa.array([2.0**24, 1.0, 1.0], pa.float32())
    assert Frame({"x": values})["x"].sum() == 2.0**24 + 2
    assert Frame({"x": values})["x"].min() == 1.0
    assert Frame({"x": pa.array([None], pa.float32())})["x"].mean() is None


@settings(deadline=None, max_examples=40)
@given(tables(), st.sampled_from(["i", "x", "s", "t", "flag", "d"]), st.booleans())
def test_sorting_is_stable_with_nan_and_then_null_last(
    columns: dict[str, pa.Array[Any]], name: str, ascending: bool
) -> None:
    count = len(columns["i"])
    frame = Frame({"key": columns[name], "row": pa.array(range(count), pa.int64())})
    found = rows(frame.sort_values("key", ascending=ascending))
    values = [(key, row) for key, row in rows(frame)]
    known = [item for item in values if item[0] is not None and item[0] != "nan"]
    expected = (
        sorted(known, key=lambda item: item[0], reverse=not ascending)  # stable both ways
        + [item for item in values if item[0] == "nan"]
        + [item for item in values if item[0] is None]
    )
    assert found == expected


def test_sorting_by_two_columns_the_first_one_first() -> None:
    frame = Frame({"a": ["y", "x", "y", "x"], "b": [1, 2, 3, 4]})
    assert rows(frame.sort_values(["a", "b"], ascending=[True, False])) == [
        ("x", 4),
        ("x", 2),
        ("y", 3),
        ("y", 1),
    ]
    with pytest.raises(FrameError, match="2 columns and 1 directions"):
        frame.sort_values(["a", "b"], ascending=[True])


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_merge_keeps_the_rows_and_is_pandas_left_join(data: st.DataObject) -> None:
    left = {"s": data.draw(column("s", 6)), "k": data.draw(column("k", 6))}
    keys = data.draw(
        st.lists(st.tuples(st.sampled_from(["a", "été", ""]), st.integers(1, 3)), unique=True, max_size=5)
    )
    right = {
        "s": pa.array([key[0] for key in keys], pa.string()),
        "k": pa.array([key[1] for key in keys], pa.int64()),
        "found": pa.array(range(len(keys)), pa.int64()),
    }
    mine = Frame(left, of_batch=True).merge(Frame(right), on=["s", "k"])
    known: dict[Any, int] = {key: place for place, key in enumerate(keys)}
    pairs = zip(left["s"].to_pylist(), left["k"].to_pylist(), strict=True)
    assert mine["found"].to_pylist() == [known.get(pair) for pair in pairs]
    assert same(mine["s"].to_arrow(), left["s"])
    assert mine.of_batch
    assert mine["found"].of_batch


def test_merge_refuses_what_would_multiply_or_mistake_rows() -> None:
    left = Frame({"k": [1, None], "x": [1, 2]})
    assert left.merge(Frame({"k": [None, 1], "y": [7, 8]}), on="k")["y"].to_pylist() == [8, None]
    for right, message in (
        (Frame({"k": [1, 1], "y": [7, 8]}), r"more than once in the right frame \(row 1\)"),
        (Frame({"k": ["1"], "y": [7]}), "key 'k' is int64 here and string there"),
        (Frame({"k": [1], "x": [7]}), r"\['x'\] are in both frames"),
        (Frame({"other": [1]}), "no column 'k'"),
    ):
        with pytest.raises(FrameError, match=message):
            left.merge(right, on="k")
    with pytest.raises(FrameError, match="only 'left'"):
        left.merge(Frame({"k": [1]}), on="k", how="inner")


def test_duplicates_and_the_head_keep_the_first_rows() -> None:
    frame = Frame({"k": ["a", "b", "a", None, None], "x": [1, 2, 3, 4, 5]})
    assert rows(frame.drop_duplicates("k")) == [("a", 1), ("b", 2), (None, 4)]
    assert rows(frame.head(2)) == [("a", 1), ("b", 2)]
    assert len(frame.head(99)) == 5


def test_concat_wants_the_same_columns() -> None:
    one = Frame({"a": [1], "s": ["x"]})
    assert rows(concat([one, one])) == [(1, "x"), (1, "x")]
    with pytest.raises(FrameError, match="beside"):
        concat([one, Frame({"a": [1.0], "s": ["x"]})])
    with pytest.raises(FrameError, match="at least one"):
        concat([])


def of_a_batch() -> Frame:
    return Frame({"x": [1.0, None, 3.0], "k": ["a", "b", "a"]}, of_batch=True)


def constants() -> Frame:
    return Frame({"x": pa.array([None, 2.0, 5.0], pa.float64()), "k": ["a", "a", "b"]})


@pytest.mark.parametrize(
    "mixing",
    [
        lambda rows, table: Frame({"x": rows["x"]}).sort_values("x"),
        lambda rows, table: Frame({"x": rows["x"], "y": table["x"]})["y"].mean(),
        lambda rows, table: table.assign(z=rows["x"]).groupby("k"),
        lambda rows, table: table.assign(z=rows["x"])["x"].sum(),
        lambda rows, table: table.assign(z=lambda frame: frame["x"] + rows["x"]).drop("z").head(),
        lambda rows, table: table.filter(rows["x"] > 2).sort_values("k"),
        lambda rows, table: table[rows["x"] > 2]["x"].count(),
        lambda rows, table: table.filter(table["k"] == rows["k"]).drop_duplicates("k"),
        lambda rows, table: table["x"].fillna(rows["x"]).mean(),
        lambda rows, table: table.fillna({"x": rows["x"]})["x"].mean(),
        lambda rows, table: table["x"].where(rows["x"] > 2).max(),
        lambda rows, table: table["x"].where(table["x"] > 2, rows["x"]).min(),
        lambda rows, table: table["k"].fillna(rows["k"]).count(),
        lambda rows, table: (table["k"] == rows["k"]).count(),
        lambda rows, table: rows.assign(z=table["x"])["z"].mean(),
        lambda rows, table: table.merge(Frame({"k": rows["x"], "n": rows["k"]}).rename({"k": "x"}), on="x"),
        lambda rows, table: concat([table, rows])["x"].sum(),
        lambda rows, table: rows.across_rows().assign(z=rows["x"]).head(),
    ],
)
def test_what_has_rows_of_a_batch_in_it_is_of_the_batch(mixing: Callable[[Frame, Frame], Any]) -> None:
    table, free = constants(), of_a_batch().across_rows()
    with pytest.raises(FrameError, match="across_rows"):
        mixing(of_a_batch(), table)
    assert table["x"].sum() == 7.0  # what it was made of stays free
    mixing(free, table)


def test_an_empty_frame_goes_through() -> None:
    frame = Frame({"k": pa.array([], pa.string()), "x": pa.array([], pa.float64())})
    assert rows(frame.groupby("k").agg(n=("x", "count"))) == []
    assert rows(frame.sort_values(["k", "x"])) == []
    assert rows(frame.merge(Frame({"k": ["a"], "y": [1]}), on="k")) == []
    assert Frame({"k": ["a"]}).merge(frame, on="k")["x"].to_pylist() == [None]
    assert frame.to_torch(columns=["x"]).shape == (0, 1)
    assert frame["x"].mean() is None
    assert frame["x"].sum() == 0.0
