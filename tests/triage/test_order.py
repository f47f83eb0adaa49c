from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from parity import Batch, Float64, Handler, List, Schema, String
from parity.triage import Divergence
from tests.triage.divergences import against, by_hand, claims, columns, denies, in_batch, table_of

RNG = np.random.default_rng(5)
SCORES = RNG.normal(size=7)


class Squares(Handler):
    """A number's square, as it comes."""

    inputs = Schema(x=Float64())
    outputs = Schema(y=Float64())

    def preprocess(self, batch: Batch) -> Any:
        return batch["x"].numpy()

    def inference(self, inputs: Any) -> Any:
        return inputs**2 + inputs

    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"y": outputs}


class Sorted(Squares):
    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"y": np.sort(outputs)}


class Shifted(Squares):
    def inference(self, inputs: Any) -> Any:
        return np.roll(super().inference(inputs), 1)


class Doubled(Squares):
    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"y": outputs * len(batch)}


ROWS = table_of(Squares, [{"x": x} for x in (3.0, 1.0, 2.0, 5.0)])


def test_answers_sorted_beside_the_rows() -> None:
    with in_batch(Sorted, ROWS, 0, law="order") as (divergence, engine):
        found = claims("row-order", divergence, engine)
    assert found.stage == "postprocess"
    claims("row-order", by_hand(SCORES, np.sort(SCORES)))


def test_two_rows_are_enough_to_tell_an_order() -> None:
    with in_batch(Sorted, ROWS.slice(0, 2), 0, law="order") as (divergence, engine):
        claims("row-order", divergence, engine)


@pytest.mark.parametrize("step", [1, -2])
def test_answers_a_few_rows_too_late_or_too_early(step: int) -> None:
    found = claims("row-shift", by_hand(SCORES, np.roll(SCORES, step)))
    assert found.cause is not None
    assert f"{abs(step)} place" in found.cause.evidence


def test_answers_shifted_in_the_batch() -> None:
    with in_batch(Shifted, ROWS.slice(0, 2), 1, law="order") as (divergence, engine):
        found = claims("row-shift", divergence, engine)
    assert found.stage == "inference"


def test_a_batch_that_sorting_only_shifts_is_no_shift() -> None:
    rows = table_of(Squares, [{"x": x} for x in (9.0, 1.0, 2.0, 3.0, 4.0)])
    with in_batch(Sorted, rows, 0, law="order") as (divergence, engine):
        claims("row-order", divergence, engine)


def test_other_values_are_no_order_and_no_shift() -> None:
    with in_batch(Doubled, ROWS, 1) as (divergence, engine):
        assert denies("row-order", divergence, engine)
        assert denies("row-shift", divergence, engine)
    assert denies("row-order", by_hand(SCORES, np.roll(SCORES, 1)))
    assert denies("row-shift", by_hand(SCORES, np.sort(SCORES)))


def test_features_in_another_order() -> None:
    features = RNG.normal(size=(9, 4)) * np.array([1.0, 20.0, 5.0, 3.0])
    found = claims("column-order", by_hand(features, features[:, [2, 0, 1, 3]]))
    assert found.cause is not None
    assert "columns [2, 0, 1, 3]" in found.cause.evidence
    mean, deviation = features.mean(axis=0), features.std(axis=0)
    scaled = ((features - mean) / deviation, (features[:, [1, 0, 2, 3]] - mean) / deviation)
    found = claims("column-order", by_hand(*scaled))
    assert found.cause is not None
    assert "but for a scale and offset of each" in found.cause.evidence
    assert denies("column-order", by_hand(features, features[:, [0, 0, 2, 3]]))
    assert denies("column-order", by_hand(features, features**2))


class Sums(Handler):
    inputs = Schema(a=Float64(), b=Float64(), c=String())
    outputs = Schema(y=Float64())
    swapped = False

    def preprocess(self, batch: Batch) -> Any:
        a, b = batch["a"].numpy(), batch["b"].numpy()
        return {"a": b if self.swapped else a, "b": a if self.swapped else b}

    def inference(self, inputs: Any) -> Any:
        return inputs["a"] - 3 * inputs["b"]

    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"y": outputs}


class Swapped(Sums):
    swapped = True


class Inside(Sums):
    def preprocess(self, batch: Batch) -> Any:
        values = super().preprocess(batch)
        return values["a"] - 3 * values["b"]

    def inference(self, inputs: Any) -> Any:
        return inputs


class SwappedInside(Inside):
    swapped = True


class Plus(Inside):
    def preprocess(self, batch: Batch) -> Any:
        return super().preprocess(batch) + 1


PAIRS = table_of(Sums, [{"a": float(a), "b": float(b), "c": "x"} for a, b in RNG.normal(size=(5, 2))])


@pytest.mark.parametrize(
    ("reference", "handler", "words"),
    [
        (Sums, Swapped, "value['b'] to value['a']"),
        (Inside, SwappedInside, "'a' and 'b' given in each other's"),
    ],
)
def test_features_in_each_others_place(reference: type[Handler], handler: type[Handler], words: str) -> None:
    with against(reference, handler, PAIRS) as (divergence, engine):
        found = claims("column-order", divergence, engine)
    assert found.cause is not None
    assert words in found.cause.evidence


def test_features_in_their_place() -> None:
    with against(Inside, Plus, PAIRS) as (divergence, engine):
        assert denies("column-order", divergence, engine) == ""


def test_labels_by_another_list() -> None:
    places = [0, 1, 2, 0, 1, 2, 0, 1, 2, 1]
    one, other = ["cat", "dog", "eel"], ["dog", "eel", "cat"]
    found = claims("label-map", by_hand([one[at] for at in places], [other[at] for at in places]))
    assert found.cause is not None
    assert "'cat' for 'dog'" in found.cause.evidence
    spoiled = [other[at] for at in places]
    spoiled[3] = "eel"
    assert denies("label-map", by_hand([one[at] for at in places], spoiled))
    assert denies("label-map", by_hand(["a", "b", "c"], ["b", "c", "a"])) == ""


def test_nulls_sorted_to_the_other_end() -> None:
    first = [np.array([np.nan, 1.0, 2.0]), np.array([np.nan, 3.0, 4.0])]
    last = [np.array([1.0, 2.0, np.nan]), np.array([3.0, 4.0, np.nan])]
    found = claims("null-order", by_hand(first, last))
    assert found.cause is not None
    assert "nulls first and nulls last" in found.cause.evidence
    claims("null-order", by_hand([json.dumps([None, "a", "b"])], [json.dumps(["a", "b", None])]))
    assert denies("null-order", by_hand(first, [value[[2, 1, 0]] for value in last]))
    assert denies("null-order", by_hand([np.array([2.0, 1.0])], [np.array([1.0, 2.0])])) == ""


class Cheapest(Handler):
    inputs = Schema(prices=List(Float64(nullable=True)))
    outputs = Schema(y=Float64(non_finite="string"))
    last = True

    def preprocess(self, batch: Batch) -> Any:
        rows = batch["prices"].to_pylist()
        ordered = [sorted(row, key=lambda x: ((x is None) is self.last, x or 0.0)) for row in rows]
        return np.array([np.nan if row[0] is None else row[0] for row in ordered])

    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"y": outputs}


class NullsFirst(Cheapest):
    last = False


def test_rows_with_nulls_among_their_values_whose_first_one_decides() -> None:
    prices = [[3.0, 1.0], [2.0, None], [5.0, 4.0], [None, 7.0], [6.0, 8.0]]
    rows = table_of(Cheapest, [{"prices": row} for row in prices])
    with against(Cheapest, NullsFirst, rows) as (divergence, engine):
        found = claims("null-order", divergence, engine)
    assert found.rows == (1, 3)


class Filtered(Squares):
    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"y": outputs[outputs > 3]}


class ShortInference(Squares):
    def inference(self, inputs: Any) -> Any:
        return super().inference(inputs[inputs > 1])


class Failing(Squares):
    def preprocess(self, batch: Batch) -> Any:
        if (batch["x"].numpy() == 2).any():
            raise ArithmeticError("two is not enough")
        return super().preprocess(batch)


@pytest.mark.parametrize(("handler", "stage"), [(Filtered, "postprocess"), (ShortInference, "inference")])
def test_rows_that_get_lost_are_counted_at_the_stage_that_loses_them(
    handler: type[Handler], stage: str
) -> None:
    with against(Squares, handler, ROWS) as (divergence, engine):
        found = claims("row-count", divergence, engine)
    assert found.stage == stage
    assert found.rows == (1,)
    assert found.cause is not None
    assert "for 4 rows" in found.cause.evidence


def test_a_stage_that_raises_on_one_side() -> None:
    with against(Squares, Failing, ROWS) as (divergence, engine):
        found = claims("raises", divergence, engine)
        assert denies("row-count", divergence, engine) == ""
    assert found.stage == "preprocess"
    assert found.cause is not None
    assert "two is not enough" in found.cause.evidence
    divergence: Divergence = by_hand([1.0], [2.0], columns(x=[1.0]))
    assert denies("raises", divergence) == ""
