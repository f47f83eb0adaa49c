"""The table as a whole: columns, names, errors, its place in a batch and in a handler."""

from __future__ import annotations

import copy
import inspect
import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

import parity.frame
from parity import Batch, Engine, Float32, Float64, Handler, Int64, List, Schema, String, Tensor
from parity.codec.arrow import decode_table
from parity.frame import Frame, FrameError, Series, UnknownVerbError
from parity.frame.grouping import GroupBy
from parity.frame.lists import Lists
from parity.frame.texts import Texts
from parity.frame.times import Times
from parity.frame.verbs import INSTEAD, VERBS

CLASSES: dict[str, type] = {
    "Frame": Frame,
    "Series": Series,
    "Series.str": Texts,
    "Series.dt": Times,
    "Series.list": Lists,
    "GroupBy": GroupBy,
}


@pytest.mark.parametrize("owner", CLASSES)
def test_the_table_of_verbs_is_the_classes(owner: str) -> None:
    there = {name for name in dir(CLASSES[owner]) if not name.startswith("_")}
    assert there == set(VERBS[owner])
    assert not there & set(INSTEAD)


@pytest.mark.parametrize("owner", CLASSES)
def test_every_verb_is_documented(owner: str) -> None:
    for name in VERBS[owner]:
        value = inspect.getattr_static(CLASSES[owner], name)
        if not inspect.ismemberdescriptor(value):
            assert inspect.getdoc(getattr(value, "fget", value) if isinstance(value, property) else value), (
                name
            )


@pytest.mark.slow
def test_the_module_tells_its_names_and_loads_no_torch_for_the_table_of_verbs() -> None:
    assert set(parity.frame.__all__) <= set(dir(parity.frame))
    with pytest.raises(AttributeError, match="no_such"):
        _ = parity.frame.no_such  # type: ignore[attr-defined]
    for module, heavy in (("verbs", ["torch", "pandas", "polars"]), ("frame", ["cudf", "pandas", "polars"])):
        code = f"import sys, parity.batch, parity.frame.{module}; assert not {{*{heavy}}} & set(sys.modules)"
        subprocess.run([sys.executable, "-c", code], check=True)


def test_columns_are_chosen_renamed_dropped_and_added() -> None:
    frame = Frame({"a": [1, 2], "b": ["x", None]})
    assert frame.columns == ["a", "b"]
    assert len(frame) == 2
    assert "a" in frame
    assert list(frame) == ["a", "b"]
    assert frame.dtypes == {"a": pa.int64(), "b": pa.string()}
    assert repr(frame) == "Frame(2 rows; a: int64, b: string)"
    assert repr(frame["a"]) == "Series(int64, 2 rows)"
    assert frame[["b", "a"]].columns == ["b", "a"]
    assert frame.rename({"a": "c"}).columns == ["c", "b"]
    assert frame.drop("a").columns == ["b"]
    more = frame.assign(c=lambda f: f["a"] + 1, d=lambda f: f["c"] * 2, e="k")
    assert more.to_arrow().to_pylist()[1] == {"a": 2, "b": None, "c": 3, "d": 6, "e": "k"}
    assert frame.columns == ["a", "b"]
    assert frame[frame["a"] > 1].to_arrow().to_pylist() == [{"a": 2, "b": None}]
    assert frame.filter(Series(pa.array([None, True]))).to_arrow().to_pylist() == [{"a": 2, "b": None}]
    assert frame.fillna({"b": "?"})["b"].to_pylist() == ["x", "?"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda f: f["price"], r"no column 'price' in this frame; did you mean 'prize'\?"),
        (lambda f: f[["prize", "prize"]], "more than once"),
        (lambda f: f[0], "expected a name"),
        (lambda f: f.rename({"x": "y"}), "rename: no column 'x'"),
        (lambda f: f.rename({"prize": "s"}), "two columns would be called the same"),
        (lambda f: f.drop(["nope"]), "drop: no column 'nope'"),
        (lambda f: f.assign(a=Series(pa.array([1]))), "'a' has 1 rows, the frame 2"),
        (lambda f: f.assign(a=[1, 2]), "expected a series, a function or one value"),
        (lambda f: f.filter(f["prize"]), "needs a bool series of 2 rows"),
        (lambda f: f.filter([True, False]), "needs a bool series"),
        (lambda f: f.fillna(0), "expected {column: ...}"),
        (lambda f: f.astype({"nope": "int64"}), "no column 'nope'"),
        (lambda f: f["s"].fillna(1), "1 is no text"),
        (lambda f: f.groupby("prize").agg(), "name at least one"),
        (lambda f: f.groupby("prize").agg(n="count"), "expected a pair"),
        (lambda f: f.groupby("prize").agg(n=("s", "median")), "no aggregation 'median'"),
        (lambda f: f.groupby("prize").agg(n=("s", "sum")), "sum: a column of string has none"),
        (lambda f: f.groupby("prize").agg(prize=("s", "count")), "already a column"),
        (lambda f: f.groupby([]), "at least one column"),
        (lambda f: Frame({"a": [1], "b": [1, 2]}), "differ in length"),
        (lambda f: Frame({"a": [1, "x"]}), "give an Arrow array"),
    ],
)
def test_what_is_wrong_is_named(wrong: Any, message: str) -> None:
    with pytest.raises(FrameError, match=message):
        wrong(Frame({"prize": [1, 2], "s": ["a", None]}))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda f: f.filtre(f["a"]), r"Frame has no verb 'filtre'; did you mean 'filter'"),
        (lambda f: f.clip(0, 1), r"a verb of one column: frame\['x'\].clip"),
        (lambda f: f["a"].apply(abs), "host only"),
        (lambda f: f["a"].fill_null(0), r"use .fillna\(value\)"),
        (lambda f: f["s"].lower(), r"did you mean .str.lower\?"),
        (lambda f: f["s"].str.lowr(), r"Series.str has no verb 'lowr'; did you mean 'lower'"),
        (lambda f: f["t"].dt.dayofweek, r"use .dt.weekday"),
        (lambda f: f.price, r"frame\['price'\] for a column"),
        (lambda f: f.iloc[0], "there is no index"),
    ],
)
def test_a_verb_that_is_not_there_says_what_to_use(wrong: Any, message: str) -> None:
    frame = Frame({"a": [1], "s": ["x"], "t": pa.array([0], pa.timestamp("us"))})
    with pytest.raises(UnknownVerbError, match=message):
        wrong(frame)


def test_frames_look_like_other_objects_to_python() -> None:
    frame = Frame({"a": [1]})
    assert not hasattr(frame, "__array_interface__")
    assert not hasattr(frame["a"], "no_such_verb")
    assert copy.copy(frame)["a"].to_pylist() == [1]
    assert hash(frame["a"]) != hash(frame[["a"]]["a"].abs())


# --- in a batch, in a handler


class Prices(Handler):
    """Features by a frame, answers by a sum."""

    inputs = Schema(
        town=String(nullable=True),
        rooms=Int64(nullable=True),
        area=Float64(),
        offers=List(Float64()),
        embedding=Tensor("float32", (3,)),
        kind=Int64(),
    )
    outputs = Schema(price=Float32(), features=Tensor("float32", (4,)))

    def preprocess(self, batch: Batch) -> torch.Tensor:
        frame = batch.frame()
        town = frame["town"].str.strip().str.lower().map({"oslo": 1, "rome": 2}, default=0)
        rooms = frame["rooms"].fillna(3).astype("int8")
        return frame.assign(
            town=town.fillna(-1),
            rooms=rooms * frame["kind"].astype("int8"),
            area=frame["area"].log1p().normalize(mean=4.2, std=0.7),
            best=frame["offers"].list.max().fillna(0.0),
        ).to_torch(columns=["town", "rooms", "area", "best"])

    def postprocess(self, outputs: torch.Tensor, batch: Batch) -> dict[str, Any]:
        return {"price": outputs.sum(1), "features": outputs}


def table(**changes: Any) -> pa.Table:
    columns: dict[str, Any] = {
        "town": [" Oslo ", None, "Paris"],
        "rooms": [1, None, 7],
        "area": [30.0, 50.5, 80.0],
        "offers": [[1.0, 2.0], [], [3.0]],
        "embedding": [[0.0, 1.0, 2.0]] * 3,
        "kind": [1, 2, 3],
    } | changes
    return pa.table(columns, schema=Prices.inputs.to_arrow())


def answers(rows: pa.Table) -> Any:
    with Engine(Prices) as engine:
        return engine.run(decode_table(Prices.inputs, rows).batch)


def test_a_handler_computes_its_features_by_a_frame() -> None:
    found = answers(table())
    features = found.to_table()["features"].to_pylist()
    assert [row[0] for row in features] == [1.0, -1.0, 0.0]
    assert [row[1] for row in features] == [1.0, 6.0, 21.0]
    assert [row[3] for row in features] == [2.0, 0.0, 3.0]
    np.testing.assert_allclose(
        [row[2] for row in features], (np.log1p([30.0, 50.5, 80.0]) - 4.2) / 0.7, rtol=1e-6
    )


def test_a_row_that_does_not_fit_fails_alone() -> None:
    found = answers(table(rooms=[1, 500, 7], kind=[1, 2, 100]))
    told = {error.row: error.message for error in found.errors}
    assert set(told) == {1, 2}
    assert "outside -128 to 127" in told[1]
    assert "outside -128 to 127" in told[2]
    assert found.to_table()["features"].to_pylist()[0][1] == 1.0


def test_a_frame_is_on_the_device_asked_for_and_holds_what_it_has_no_verbs_for() -> None:
    batch = decode_table(Prices.inputs, table()).batch
    frame = batch.frame("cpu")
    assert frame.of_batch
    assert frame.device == torch.device("cpu")
    assert frame["embedding"].kind == "other"
    assert frame["embedding"].to_pylist() == [[0.0, 1.0, 2.0]] * 3
    assert frame.filter(frame["kind"] > 1)["embedding"].to_pylist() == [[0.0, 1.0, 2.0]] * 2
    with pytest.raises(FrameError, match="only carried along"):
        frame["embedding"].fillna([])
