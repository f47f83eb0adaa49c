"""Every verb that is said not to mix rows gives a row the same bits alone, in pieces and in the whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from parity.frame import Frame, Series, concat
from parity.frame.verbs import VERBS
from tests.frame.columns import same, tables

CITIES = Frame({"s": ["a", "été", ""], "population": [1, 2, 3]})
CODES = {1: "one", 3: "three"}

ROW_WISE: dict[str, Callable[[Frame], Any]] = {
    "Frame.select": lambda f: f.select(["x", "s"]),
    "Frame.assign": lambda f: f.assign(two=lambda g: g["x"] * 2, one=1, word="ü"),
    "Frame.rename": lambda f: f.rename({"x": "z"}),
    "Frame.drop": lambda f: f.drop(["x", "l"]),
    "Frame.filter": lambda f: f.filter(f["flag"]),
    "Frame.fillna": lambda f: f.fillna({"x": 1.5, "s": "none"}),
    "Frame.astype": lambda f: f.astype({"x": "float32"}),
    "Frame.normalize": lambda f: f.normalize({"x": (0.1, 3.0)}),
    "Frame.merge": lambda f: f.merge(CITIES, on="s"),
    "Frame.to": lambda f: f.to("cpu"),
    "Frame.to_torch": lambda f: of_tensor(f.fillna({"k": 0, "x": 0.0}).to_torch(columns=["k", "x"])),
    "Series.isna": lambda f: f["x"].isna(),
    "Series.notna": lambda f: f["s"].notna(),
    "Series.isnan": lambda f: f["y"].isnan(),
    "Series.fillna": lambda f: f["t"].fillna(f["t"]),
    "Series.where": lambda f: f["s"].where(f["flag"], f["s2"]),
    "Series.abs": lambda f: f["x"].abs(),
    "Series.clip": lambda f: f["i"].clip(-5, 100),
    "Series.sqrt": lambda f: f["y"].sqrt(),
    "Series.exp": lambda f: f["x"].exp(),
    "Series.log": lambda f: f["x"].log(),
    "Series.log1p": lambda f: f["y"].log1p(),
    "Series.round": lambda f: f["x"].round(1),
    "Series.floor": lambda f: f["x"].floor(),
    "Series.ceil": lambda f: f["y"].ceil(),
    "Series.normalize": lambda f: f["small"].normalize(mean=0.3, std=7),
    "Series.cut": lambda f: f["x"].cut([-1, 0, 1.5, 7], labels=["a", "b", "c"]),
    "Series.bucket": lambda f: f["i"].bucket([-1, 7, 2**53]),
    "Series.isin": lambda f: f["s"].isin(["a", "été"]),
    "Series.map": lambda f: f["k"].map(CODES, default="many"),
    "Series.astype": lambda f: f["i"].astype("float64"),
    "Series.to": lambda f: f["s"].to("cpu"),
    "Series.str": lambda f: f["s"].str.len(),
    "Series.dt": lambda f: f["t"].dt.day,
    "Series.list": lambda f: f["l"].list.len(),
    "Series.str.lower": lambda f: f["s"].str.lower(),
    "Series.str.upper": lambda f: f["s"].str.upper(),
    "Series.str.strip": lambda f: f["s"].str.strip(),
    "Series.str.len": lambda f: f["s"].str.len(),
    "Series.str.contains": lambda f: f["s"].str.contains("[aé]"),
    "Series.str.startswith": lambda f: f["s"].str.startswith("a"),
    "Series.str.endswith": lambda f: f["s"].str.endswith("é"),
    "Series.str.replace": lambda f: f["s"].str.replace("a", "ü"),
    "Series.str.slice": lambda f: f["s"].str.slice(-2, None),
    **{
        f"Series.dt.{part}": lambda f, part=part: getattr(f["t"].dt, part)
        for part in ("year", "month", "day", "hour", "minute", "second", "weekday")
    },
    "Series.dt.tz_convert": lambda f: f["t"].dt.tz_convert("Asia/Kathmandu").dt.minute,
    "Series.dt.epoch": lambda f: f["d"].dt.epoch("s"),
    **{
        f"Series.list.{how}": lambda f, how=how: getattr(f["l"].list, how)()
        for how in ("len", "sum", "mean", "min", "max")
    },
    "Series.+": lambda f: f["y"] + f["k"],
    "Series.-": lambda f: 1 - f["x"],
    "Series.*": lambda f: f["small"].astype("int64") * f["u"],
    "Series./": lambda f: f["i"] / f["x"],
    "Series.//": lambda f: f["x"] // f["y"],
    "Series.%": lambda f: f["small"] % f["k"],
    "Series.neg": lambda f: -f["x"],
    "Series.==": lambda f: f["s"] == f["s2"],
    "Series.!=": lambda f: f["x"] != f["y"],
    "Series.<": lambda f: f["t"] < f["t"],
    "Series.<=": lambda f: f["i"] <= f["u"],
    "Series.>": lambda f: f["x"] > 0.1,
    "Series.>=": lambda f: f["i"] >= 2**53 + 1,
    "Series.&": lambda f: f["flag"] & (f["x"] > 0),
    "Series.|": lambda f: f["flag"] | (f["x"] > 0),
    "Series.~": lambda f: ~f["flag"],
}

NOT_TRIED = {
    "Frame.across_rows": "says that rows may mix",
    "Frame.of_columns": "puts columns together",
    "Series.like": "puts a column together",
    "Series.like_arrow": "puts a column together",
    "Series.like_native": "puts a column together",
    "Series.of_tensor": "puts a column together",
    "Series.take": "takes rows by their place",
}


def of_tensor(values: torch.Tensor) -> Frame:
    return Frame({str(place): values[:, place].numpy() for place in range(values.shape[1])}, of_batch=True)


def as_frame(found: Frame | Series) -> Frame:
    if isinstance(found, Series):
        assert found.of_batch
        return Frame({"found": found}, of_batch=True)
    return found


def test_every_verb_that_does_not_mix_rows_is_tried() -> None:
    named = {
        f"{owner}.{name}"
        for owner, verbs in VERBS.items()
        if owner != "GroupBy"
        for name, verb in verbs.items()
        if verb.gives and not verb.mixes
    }
    assert named == {name for name in ROW_WISE if name.rpartition(".")[2].isidentifier()} - {
        "Frame.to_torch",
        "Series.neg",
    } | set(NOT_TRIED)


@pytest.mark.parametrize("name", ROW_WISE)
@settings(max_examples=6, deadline=None)
@given(columns=tables(), data=st.data())
def test_the_answers_of_pieces_are_the_answer_of_the_whole(
    name: str, columns: dict[str, pa.Array[Any]], data: st.DataObject
) -> None:
    rows = len(columns["i"])
    cut = data.draw(st.integers(0, rows))
    change = ROW_WISE[name]
    pieces = [
        as_frame(change(Frame({n: c.slice(start, stop - start) for n, c in columns.items()}, of_batch=True)))
        for start, stop in ((0, cut), (cut, rows))
    ]
    expected = as_frame(change(Frame(columns, of_batch=True)))
    found = concat(pieces)
    assert found.columns == expected.columns
    for column in expected.columns:
        assert same(found[column].to_arrow(), expected[column].to_arrow()), column


@pytest.mark.parametrize("name", ["exp", "log", "log1p", "sqrt"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_function_gives_a_value_the_same_bits_at_every_place(name: str, dtype: Any) -> None:
    values = np.random.default_rng(5).lognormal(0, 3, 70_001).astype(dtype)
    whole = getattr(Frame({"x": values})["x"], name)().to_numpy()
    for start, stop in ((0, 1), (3, 70), (69_990, 70_001), (1, 33_000), (17, 18)):
        piece = getattr(Frame({"x": values[start:stop]})["x"], name)().to_numpy()
        assert piece.tobytes() == whole[start:stop].tobytes()


@pytest.mark.parametrize(
    "verb",
    [
        lambda f: f.head(2),
        lambda f: f.sort_values("x"),
        lambda f: f.drop_duplicates("x"),
        lambda f: f.groupby("s"),
        lambda f: f["x"].sum(),
        lambda f: f["x"].mean(),
        lambda f: f["x"].min(),
        lambda f: f["x"].max(),
        lambda f: f["x"].count(),
        lambda f: CITIES.merge(f.select(["s"]), on="s"),
        lambda f: (f["x"] + 1).sum(),
        lambda f: f.assign(z=1)["z"].sum(),
        lambda f: f.filter(f["x"] > 0).head(1),
        lambda f: f.merge(CITIES, on="s")["population"].sum(),
        lambda f: Frame({"x": [1.0]})["x"].where(f["x"] > 0).sum(),
    ],
)
def test_a_verb_that_mixes_rows_is_refused_on_a_batch(verb: Callable[[Frame], Any]) -> None:
    frame = Frame({"x": [1.5], "s": ["a"]}, of_batch=True)
    with pytest.raises(Exception, match=r"mixes the rows of a batch.*neighbours.*across_rows"):
        verb(frame)


def test_across_rows_says_that_mixing_is_meant() -> None:
    frame = Frame({"x": [1.5, 2.5], "s": ["a", "a"]}, of_batch=True)
    free = frame.across_rows()
    assert free["x"].mean() == 2.0
    assert free.groupby("s").agg(total=("x", "sum")).to_arrow().to_pylist() == [{"s": "a", "total": 4.0}]
    assert frame.of_batch
    assert frame["x"].of_batch
