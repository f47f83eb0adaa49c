from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from parity import Batch, Bool, Float64, Handler, Int64, Schema, String
from tests.triage.divergences import against, by_hand, claims, denies, in_batch, table_of

LARGE = [3, 2**53 + 1, 17, 2**60 + 7, 5]


class Embedded(Handler):
    """A row of a table by id; the id itself is not seen."""

    inputs = Schema(id=Int64())
    outputs = Schema(score=Float64())

    def key(self, ids: np.ndarray) -> np.ndarray:
        return ids

    def preprocess(self, batch: Batch) -> Any:
        return np.cos(self.key(batch["id"].numpy()) % 1009)

    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"score": outputs}


class ThroughFloat(Embedded):
    def key(self, ids: np.ndarray) -> np.ndarray:
        return ids.astype(np.float64).astype(np.int64)


class OtherKey(Embedded):
    def key(self, ids: np.ndarray) -> np.ndarray:
        return np.where(ids > 2**53, ids + 12, ids)


def test_large_integers_through_a_float() -> None:
    ids = np.array(LARGE)
    found = claims("integer-through-float", by_hand(ids, ids.astype(np.float64).astype(np.int64)))
    assert found.rows == (1, 3)
    assert found.cause is not None
    assert "float64" in found.cause.evidence
    claims("integer-through-float", by_hand([str(x) for x in LARGE], [str(int(float(x))) for x in LARGE]))
    small = np.array([2**24 + 1, 5, 2**25 + 3])
    found = claims("integer-through-float", by_hand(small, small.astype(np.float32).astype(np.int64)))
    assert found.cause is not None
    assert "float32" in found.cause.evidence
    assert denies("integer-through-float", by_hand(ids, ids + (ids > 100)))


def test_large_integers_that_no_stage_shows() -> None:
    rows = table_of(Embedded, [{"id": number} for number in LARGE])
    for reference, handler in ((ThroughFloat, Embedded), (Embedded, ThroughFloat)):
        with against(reference, handler, rows) as (divergence, engine):
            found = claims("integer-through-float", divergence, engine)
        assert found.rows == (1, 3)
    with against(Embedded, OtherKey, rows) as (divergence, engine):
        assert denies("integer-through-float", divergence, engine) == ""


class Keys(Handler):
    """A key out of a number, as pandas makes it."""

    inputs = Schema(shop=Int64(nullable=True), paid=Bool(nullable=True))
    outputs = Schema(key=String())

    def preprocess(self, batch: Batch) -> Any:
        return pd.DataFrame({"shop": batch["shop"].to_pylist()})["shop"].to_numpy()

    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"key": [f"k_{value}" for value in outputs]}


class Truths(Keys):
    def preprocess(self, batch: Batch) -> Any:
        paid = pd.Series(batch["paid"].to_pylist())
        refused = ~paid.where(paid.notna(), False)
        return [str(value) for value in refused.to_numpy()]


class Named(Keys):
    """A count of the nulls beside a row: no matter of types."""

    inputs = Schema(shop=String(nullable=True), paid=Bool(nullable=True))

    def preprocess(self, batch: Batch) -> Any:
        return [f"{text}{batch['shop'].null_count}" for text in batch["shop"].to_pylist()]


ROWS = table_of(Keys, [{"shop": 7, "paid": True}, {"shop": None, "paid": None}, {"shop": 3, "paid": False}])


def test_a_null_neighbour_makes_integers_floats() -> None:
    with in_batch(Keys, ROWS, 0) as (divergence, engine):
        found = claims("null-promotes-dtype", divergence, engine)
    assert found.stage == "preprocess"
    assert found.cause is not None
    assert "int64" in found.cause.evidence
    assert "float64" in found.cause.evidence
    named = table_of(Named, [{"shop": "a", "paid": True}, {"shop": None, "paid": None}])
    with in_batch(Named, named, 0) as (divergence, engine):
        assert denies("null-promotes-dtype", divergence, engine)


def test_a_null_neighbour_makes_truths_objects() -> None:
    with in_batch(Truths, ROWS, 0) as (divergence, engine):
        claims("null-promotes-dtype", divergence, engine)


def test_without_a_null_nothing_is_promoted() -> None:
    assert denies("null-promotes-dtype", by_hand(["7", "8"], ["7.0", "8.0"])) == ""


class Ratio(Handler):
    inputs = Schema(a=Float64(nullable=True), b=Float64())
    outputs = Schema(y=Float64(nullable=True, non_finite="string"))
    filling: float | None = None

    def preprocess(self, batch: Batch) -> Any:
        values = batch["a"].to_pylist()
        return np.array([math.nan if value is None else self.known(value) for value in values])

    def known(self, value: float) -> float:
        return value

    def inference(self, inputs: Any) -> Any:
        return np.where(np.isnan(inputs), 100.0, inputs * 3)

    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"y": outputs}


class ZeroForNull(Ratio):
    def preprocess(self, batch: Batch) -> Any:
        return np.array([0.0 if value is None else value for value in batch["a"].to_pylist()])


class FalsyForNull(Ratio):
    def known(self, value: float) -> float:
        return value or math.nan


class Default(Ratio):
    """`value or 7`, where the other side says 7 for null only."""

    def preprocess(self, batch: Batch) -> Any:
        return np.array([value or 7.0 for value in batch["a"].to_pylist()])


class DefaultForNull(Ratio):
    def preprocess(self, batch: Batch) -> Any:
        return np.array([7.0 if value is None else value for value in batch["a"].to_pylist()])


class Negated(Ratio):
    def preprocess(self, batch: Batch) -> Any:
        return -super().preprocess(batch)


NULLS = table_of(Ratio, [{"a": value, "b": 1.0} for value in (1.5, None, 2.5, 0.0, 3.5, None, 4.5)])


@pytest.mark.parametrize(
    ("handler", "rows", "words"),
    [(ZeroForNull, (1, 5), "NaN"), (FalsyForNull, (3,), "0.0, NaN"), (Default, (3,), "same values for null")],
)
def test_missing_values_taken_for_others(handler: type[Handler], rows: tuple[int, ...], words: str) -> None:
    reference = DefaultForNull if handler is Default else Ratio
    with against(reference, handler, NULLS) as (divergence, engine):
        found = claims("null-nan-missing", divergence, engine)
    assert found.rows == rows
    assert found.cause is not None
    assert words in found.cause.evidence


def test_rows_that_differ_without_missing_values_have_another_cause() -> None:
    with against(Ratio, Negated, NULLS) as (divergence, engine):
        assert "no missing value" in denies("null-nan-missing", divergence, engine)


class Pairs(Handler):
    """|x - y| over all pairs of rows, where each row's own is meant."""

    inputs = Schema(x=Float64(), y=Float64())
    outputs = Schema(d=Float64())

    def preprocess(self, batch: Batch) -> Any:
        return {"x": batch["x"].numpy()[:, None], "y": batch["y"].numpy()}

    def inference(self, inputs: Any) -> Any:
        return np.abs(inputs["x"] - inputs["y"])

    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"d": outputs.mean(axis=1)}


class MeanOfPairs(Pairs):
    def inference(self, inputs: Any) -> Any:
        return np.abs(inputs["x"] - inputs["y"]).mean(axis=1)[:, None]


class Centred(Pairs):
    def inference(self, inputs: Any) -> Any:
        return np.abs(inputs["x"] - inputs["x"].mean()) + inputs["y"][:, None]


POINTS = table_of(Pairs, [{"x": x, "y": y} for x, y in ((1.0, 4.0), (2.5, 0.5), (7.0, 3.0))])


@pytest.mark.parametrize(
    ("handler", "words"), [(Pairs, "has shape (1,) in a batch of 1"), (MeanOfPairs, "mean")]
)
def test_columns_against_rows(handler: type[Handler], words: str) -> None:
    with in_batch(handler, POINTS, 1) as (divergence, engine):
        found = claims("broadcast", divergence, engine)
    assert found.stage == "inference"
    assert found.cause is not None
    assert words in found.cause.evidence


def test_a_mean_over_the_batch_is_no_broadcast() -> None:
    with in_batch(Centred, POINTS, 1) as (divergence, engine):
        assert denies("broadcast", divergence, engine)
