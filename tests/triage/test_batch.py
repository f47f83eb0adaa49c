from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from parity import Batch, Float64, Handler, List, Schema, String
from tests.triage.divergences import claims, denies, in_batch, table_of

pytestmark = pytest.mark.slow


class Scored(Handler):
    """Every row for itself."""

    inputs = Schema(a=Float64(), b=Float64())
    outputs = Schema(y=Float64(non_finite="string"))

    def preprocess(self, batch: Batch) -> Any:
        return np.stack([batch["a"].numpy(), batch["b"].numpy()], axis=1)

    def inference(self, inputs: Any) -> Any:
        return inputs[:, 0] - 0.5 * inputs[:, 1]

    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"y": outputs}


class Centred(Scored):
    def preprocess(self, batch: Batch) -> Any:
        values = super().preprocess(batch)
        return values - values.mean(axis=0)


class OverLargest(Scored):
    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"y": outputs / np.abs(outputs).max()}


class SoftmaxOverBatch(Scored):
    def inference(self, inputs: Any) -> Any:
        powers = np.exp(super().inference(inputs))
        return powers / powers.sum(axis=0)


class Ranked(Scored):
    def inference(self, inputs: Any) -> Any:
        scores = super().inference(inputs)
        return (scores[:, None] > scores[None, :]).mean(axis=1)


class NeighbourWeighted(Scored):
    """Attention over the batch."""

    def inference(self, inputs: Any) -> Any:
        weights = np.exp(-np.abs(inputs[:, None, 0] - inputs[None, :, 0]))
        weights = weights / weights.sum(axis=1, keepdims=True)
        return (weights * inputs[None, :, 1]).sum(axis=1)


class Guarded(Scored):
    def inference(self, inputs: Any) -> Any:
        scores = super().inference(inputs)
        return scores if np.isfinite(inputs).all() else np.zeros_like(scores)


class Masked(Scored):
    def inference(self, inputs: Any) -> Any:
        with np.errstate(invalid="ignore"):
            return (np.eye(len(inputs))[:, :, None] * inputs).sum(axis=(1, 2))


class OverLength(Scored):
    def inference(self, inputs: Any) -> Any:
        return super().inference(inputs) / len(inputs)


class LargeBatches(Scored):
    def inference(self, inputs: Any) -> Any:
        return super().inference(inputs) * (2.0 if len(inputs) >= 3 else 1.0)


class Squeezed(Scored):
    def inference(self, inputs: Any) -> Any:
        values = np.squeeze(inputs[:, None, :])
        return np.atleast_1d(values.mean(axis=-1) if values.ndim > 1 else values.mean() * 2)


class SqueezedAway(Scored):
    """Alone, the answer is no array any more."""

    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"y": outputs.squeeze()}


class Chunked(Scored):
    """Four at a time; the last ragged piece stays zero."""

    def inference(self, inputs: Any) -> Any:
        found = np.zeros(len(inputs))
        for start in range(0, len(inputs) - 3, 4):
            found[start : start + 4] = super().inference(inputs[start : start + 4])
        return found


class Dropped(Scored):
    """Three at a time; the last ragged piece is dropped."""

    def inference(self, inputs: Any) -> Any:
        return super().inference(inputs[: len(inputs) // 3 * 3])


class CutAtFive(Scored):
    def inference(self, inputs: Any) -> Any:
        found = np.zeros(len(inputs))
        found[:5] = super().inference(inputs[:5])
        return found


class Positioned(Scored):
    def inference(self, inputs: Any) -> Any:
        return super().inference(inputs) + np.sin(np.arange(len(inputs)))


class FirstOptions(Scored):
    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"y": outputs * batch["b"].numpy()[0]}


class LastOptions(Scored):
    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"y": outputs * batch["b"].numpy()[-1]}


class EverySecond(Scored):
    def inference(self, inputs: Any) -> Any:
        return super().inference(inputs) * (1 + np.arange(len(inputs)) % 2)


class Lagged(Scored):
    def preprocess(self, batch: Batch) -> Any:
        values = super().preprocess(batch)
        values[:, 0] -= np.concatenate([[0.0], values[:-1, 0]])
        return values


ROWS = table_of(
    Scored, [{"a": a, "b": b} for a, b in ((1.3, 2.0), (4.1, -1.0), (2.2, 0.7), (-3.0, 6.0), (0.25, 1.5))]
)
UNFIT = table_of(Scored, [{"a": 1.0, "b": 3.0}, {"a": math.nan, "b": math.inf}])


@pytest.mark.parametrize(
    ("handler", "stage", "words"),
    [
        (Centred, "preprocess", ""),
        (OverLargest, "postprocess", "divided by its largest in the batch"),
        (SoftmaxOverBatch, "inference", "adds up to 1 over the 3 rows"),
        (Ranked, "inference", ""),
        (NeighbourWeighted, "inference", ""),
    ],
)
def test_statistics_over_the_batch(handler: type[Handler], stage: str, words: str) -> None:
    with in_batch(handler, ROWS.slice(0, 3), 2) as (divergence, engine):
        found = claims("batch-statistics", divergence, engine)
    assert found.stage == stage
    assert found.cause is not None
    assert words in found.cause.evidence


@pytest.mark.parametrize("handler", [Positioned, OverLength, FirstOptions, Lagged])
def test_what_depends_on_number_or_place_is_no_statistic(handler: type[Handler]) -> None:
    with in_batch(handler, ROWS.slice(0, 3), 1) as (divergence, engine):
        assert denies("batch-statistics", divergence, engine)


@pytest.mark.parametrize("handler", [Guarded, Masked])
def test_a_neighbour_that_is_not_finite(handler: type[Handler]) -> None:
    with in_batch(handler, UNFIT, 0, law="neighbours") as (divergence, engine):
        found = claims("non-finite-neighbour", divergence, engine)
    assert found.cause is not None
    assert "'a'" in found.cause.evidence
    assert "gets the value that it gets alone" in found.cause.evidence


def test_a_mean_over_finite_and_other_neighbours_is_no_matter_of_finiteness() -> None:
    with in_batch(Positioned, table_of(Scored, [{"a": math.nan, "b": 1.0}, {"a": 1.0, "b": 1.0}]), 1) as (
        divergence,
        engine,
    ):
        assert denies("non-finite-neighbour", divergence, engine)
    with in_batch(Centred, ROWS, 1) as (divergence, engine):
        assert denies("non-finite-neighbour", divergence, engine) == ""


@pytest.mark.parametrize(("handler", "rows"), [(OverLength, 2), (LargeBatches, 3)])
def test_the_number_of_rows(handler: type[Handler], rows: int) -> None:
    with in_batch(handler, ROWS.slice(0, rows), 1) as (divergence, engine):
        claims("batch-length", divergence, engine)
    with in_batch(Centred, ROWS, 1) as (divergence, engine):
        assert denies("batch-length", divergence, engine)


@pytest.mark.parametrize("handler", [Squeezed, SqueezedAway])
def test_a_batch_of_one_loses_its_axis(handler: type[Handler]) -> None:
    with in_batch(handler, ROWS.slice(0, 2), 1) as (divergence, engine):
        claims("squeezed-axis", divergence, engine)
    with in_batch(OverLength, ROWS.slice(0, 2), 1) as (divergence, engine):
        assert denies("squeezed-axis", divergence, engine)


@pytest.mark.parametrize(("handler", "size", "place"), [(Chunked, 4, 2), (Dropped, 3, 0)])
def test_the_last_ragged_piece(handler: type[Handler], size: int, place: int) -> None:
    with in_batch(handler, ROWS.slice(0, size), place) as (divergence, engine):
        found = claims("ragged-last-batch", divergence, engine)
    assert found.stage == "inference"
    assert found.cause is not None
    assert f"batches of {size} and its multiples" in found.cause.evidence
    with in_batch(CutAtFive, _many(6), 5) as (divergence, engine):
        assert denies("ragged-last-batch", divergence, engine)


def _many(count: int) -> Any:
    return table_of(Scored, [{"a": float(row), "b": 1.0} for row in range(count)])


@pytest.mark.parametrize(("handler", "rows", "place"), [(Positioned, 3, 2), (CutAtFive, 6, 5)])
def test_the_place_in_the_batch(handler: type[Handler], rows: int, place: int) -> None:
    with in_batch(handler, _many(rows), place, law="order") as (divergence, engine):
        found = claims("position", divergence, engine)
    assert found.cause is not None
    assert "first that differs from place 0" in found.cause.evidence
    with in_batch(Centred, ROWS, 1) as (divergence, engine):
        assert denies("position", divergence, engine)


def test_the_first_rows_options_for_all() -> None:
    with in_batch(FirstOptions, ROWS.slice(0, 2), 1, law="order") as (divergence, engine):
        found = claims("first-row", divergence, engine)
    assert found.cause is not None
    assert "its 'b' decides" in found.cause.evidence
    with in_batch(LastOptions, ROWS.slice(0, 3), 1, law="order") as (divergence, engine):
        found = claims("first-row", divergence, engine)
    assert found.cause is not None
    assert "last row" in found.cause.sentence
    for handler in (Lagged, EverySecond):
        with in_batch(handler, ROWS.slice(0, 3), 1, law="order") as (divergence, engine):
            assert denies("first-row", divergence, engine)


def test_the_row_before() -> None:
    with in_batch(Lagged, ROWS.slice(0, 2), 1, law="order") as (divergence, engine):
        claims("previous-row", divergence, engine)
    for handler in (FirstOptions, EverySecond):
        with in_batch(handler, ROWS.slice(0, 3), 1, law="order") as (divergence, engine):
            assert denies("previous-row", divergence, engine)


class Sequences(Handler):
    """The mean of a sequence padded to the longest."""

    inputs = Schema(items=List(Float64()), text=String())
    outputs = Schema(y=Float64())

    def preprocess(self, batch: Batch) -> Any:
        rows = batch["items"].to_pylist()
        longest = max(1, *map(len, rows))
        return np.array([[*row, *[0.0] * (longest - len(row))] for row in rows])

    def inference(self, inputs: Any) -> Any:
        return inputs.sum(axis=1) / inputs.shape[1]

    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"y": outputs}


class TextLengths(Sequences):
    def preprocess(self, batch: Batch) -> Any:
        texts = batch["text"].to_pylist()
        longest = max(map(len, texts))
        return np.array([len(text) / longest for text in texts])

    def inference(self, inputs: Any) -> Any:
        return np.sqrt(inputs)


class BySum(Sequences):
    def inference(self, inputs: Any) -> Any:
        return inputs.sum(axis=1) / (1 + np.abs(inputs).sum())


SEQUENCES = table_of(
    Sequences,
    [{"items": [1.0, 2.0], "text": "ab c"}, {"items": [5.0, 4.0, 3.0, 1.0], "text": "a longer text"}],
)


@pytest.mark.parametrize("handler", [Sequences, TextLengths])
def test_padding_to_the_longest_that_is_counted(handler: type[Handler]) -> None:
    with in_batch(handler, SEQUENCES, 0) as (divergence, engine):
        claims("padding-without-mask", divergence, engine)
    with in_batch(BySum, SEQUENCES, 0) as (divergence, engine):
        assert denies("padding-without-mask", divergence, engine)


class Coded(Handler):
    inputs = Schema(country=String(), size=Float64())
    outputs = Schema(y=Float64())

    def preprocess(self, batch: Batch) -> Any:
        names = batch["country"].to_pylist()
        return np.array([sorted(set(names)).index(name) for name in names])

    def inference(self, inputs: Any) -> Any:
        return np.array([0.1, 0.7, 0.3, 0.9, 0.2, 0.5])[inputs]

    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"y": outputs}


class ByAppearance(Coded):
    def preprocess(self, batch: Batch) -> Any:
        names = batch["country"].to_pylist()
        return np.array([list(dict.fromkeys(names)).index(name) for name in names])


class OneHot(Coded):
    def preprocess(self, batch: Batch) -> Any:
        names = batch["country"].to_pylist()
        return np.array([[float(name == other) for other in sorted(set(names))] for name in names])

    def inference(self, inputs: Any) -> Any:
        return (inputs * np.arange(1, inputs.shape[1] + 1)).sum(axis=1)


class Sized(Coded):
    def preprocess(self, batch: Batch) -> Any:
        sizes = batch["size"].numpy()
        return np.digitize(sizes, [sizes.mean()])


COUNTRIES = table_of(
    Coded, [{"country": name, "size": size} for name, size in (("Peru", 4.0), ("Chad", 1.0), ("Oman", 2.0))]
)


@pytest.mark.parametrize(("handler", "place"), [(Coded, 0), (ByAppearance, 2), (OneHot, 0)])
def test_categories_of_the_batch(handler: type[Handler], place: int) -> None:
    with in_batch(handler, COUNTRIES, place) as (divergence, engine):
        found = claims("categories-per-batch", divergence, engine)
    assert found.stage == "preprocess"


def test_bins_of_numbers_are_no_categories() -> None:
    with in_batch(Sized, COUNTRIES, 1) as (divergence, engine):
        assert denies("categories-per-batch", divergence, engine)


def test_without_an_engine_nothing_is_said_of_the_batch() -> None:
    with in_batch(Centred, ROWS, 1) as (divergence, _):
        assert denies("batch-statistics", divergence) == ""
        assert denies("position", divergence) == ""


def test_a_difference_that_does_not_come_back_is_no_matter_of_the_batch() -> None:
    class Once(Scored):
        calls = 0

        def inference(self, inputs: Any) -> Any:
            type(self).calls += 1
            return super().inference(inputs) + (1.0 if type(self).calls == 2 else 0.0)

    with in_batch(Once, ROWS, 1) as (divergence, engine):
        for name in ("batch-statistics", "position", "batch-length", "first-row", "squeezed-axis"):
            assert denies(name, divergence, engine) == ""
