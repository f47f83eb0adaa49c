from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest

from parity import Batch, Context, Float64, Handler, Int64, Schema, String, load_handler
from parity.codec.arrow import decode_table
from parity.handler import LoadedHandler
from tests.laws.trying import FIXTURES, HERE, broken, try_laws


@pytest.mark.slow
@pytest.mark.parametrize("handler", ["counter", "global_rng"])
def test_a_handler_that_does_not_repeat_breaks_that_law_and_the_others_say_nothing(handler: str) -> None:
    outcomes = try_laws(load_handler(FIXTURES / handler), HERE)
    assert broken(outcomes) == ["repeatable"]
    example = outcomes["repeatable"].counterexample
    assert example is not None
    assert example.rows.num_rows == 1
    assert outcomes["order"].verdict == "skipped"
    assert outcomes["order"].detail == "not tried: the handler's answers do not repeat"
    assert outcomes["declared-outputs"].verdict == "holds"


class FitsOnFirst(Handler):
    """Takes the mean of the first batch that it ever sees for that of the training data."""

    inputs = Schema(x=Float64(ge=-1e6, le=1e6), other=Int64(ge=0, le=9))
    outputs = Schema(y=Float64())

    def initialize(self, context: Context) -> None:
        self.mean: float | None = None

    def inference(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
        if self.mean is None:
            self.mean = float(np.sort(inputs["x"])[0])
        return inputs["x"] - self.mean

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"y": outputs}


@pytest.mark.slow
def test_what_the_first_batch_leaves_behind_is_the_law_of_history() -> None:
    outcomes = try_laws(LoadedHandler.of(FitsOnFirst), HERE)
    assert broken(outcomes) == ["history"]
    example = outcomes["history"].counterexample
    assert example is not None
    assert example.rows.num_rows == 1
    assert example.before is not None
    assert example.before.num_rows == 1
    assert "first of a fresh handler, and after" in example.how


@pytest.mark.slow
def test_a_handler_that_is_another_after_an_error_breaks_the_law_of_history() -> None:
    class Shaken(Handler):
        inputs = Schema(x=Float64())
        outputs = Schema(y=Float64())

        def initialize(self, context: Context) -> None:
            self.failed = False

        def inference(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
            if np.isnan(inputs["x"]).any():
                self.failed = True
                raise ValueError("NaN")
            return inputs["x"] + self.failed

        def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
            return {"y": np.where(np.isfinite(outputs), outputs, 0.0)}

    outcome = try_laws(LoadedHandler.of(Shaken), ["history"])["history"]
    assert outcome.verdict == "broken"
    example = outcome.counterexample
    assert example is not None
    assert example.before is not None
    assert np.isnan(example.before.column("x").to_numpy()).any()


class CachesTooMuch(Handler):
    """Takes rows that agree to three digits for the same row."""

    inputs = Schema(x=Float64(ge=0.0, le=100.0), note=String())
    outputs = Schema(y=Float64())

    def initialize(self, context: Context) -> None:
        self.known: dict[float, float] = {}

    def inference(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
        return np.array([self.known.setdefault(round(x, 3), x * 2) for x in inputs["x"].tolist()])

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"y": outputs}


class CachesByLowerCase(CachesTooMuch):
    """Takes texts that differ in case for the same text."""

    def inference(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
        notes: list[str] = inputs["note"].tolist()
        return np.array([self.known.setdefault(hash(x.lower()), sum(map(ord, x))) for x in notes], np.float64)


@pytest.mark.slow
@pytest.mark.parametrize("handler", [CachesTooMuch, CachesByLowerCase])
def test_a_cache_that_takes_two_rows_for_one_is_caught_by_rows_that_are_nearly_the_same(
    handler: type[Handler],
) -> None:
    outcome = try_laws(LoadedHandler.of(handler), ["history"])["history"]
    assert outcome.verdict == "broken"
    example = outcome.counterexample
    assert example is not None
    assert example.before is not None
    assert (example.rows.num_rows, example.before.num_rows) == (1, 1)
    assert example.before.to_pylist() != example.rows.to_pylist()


@pytest.mark.slow
def test_what_only_the_very_first_answer_shows_is_told_with_its_stage() -> None:
    class UsedUp(Handler):
        inputs = Schema(x=Int64(ge=0, le=3))
        outputs = Schema(y=Int64())

        def initialize(self, context: Context) -> None:
            self.factors = iter([2])

        def inference(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
            return inputs["x"] + next(self.factors, 1)

        def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
            return {"y": outputs}

    shared = iter([2])

    class UsedUpForAll(UsedUp):
        def initialize(self, context: Context) -> None:
            self.factors = shared

    for handler in (UsedUp, UsedUpForAll):
        outcome = try_laws(LoadedHandler.of(handler), ["repeatable"])["repeatable"]
        assert outcome.verdict == "broken"
        assert outcome.counterexample is not None
        assert outcome.counterexample.rows.num_rows == 1
        assert outcome.diagnosis is not None
        assert outcome.diagnosis.stage == "inference"


@pytest.mark.slow
def test_a_cache_that_no_answer_shows_breaks_nothing() -> None:
    class Caching(Handler):
        inputs = Schema(x=Int64(ge=0, le=50))
        outputs = Schema(y=Int64())

        def initialize(self, context: Context) -> None:
            self.known: dict[int, int] = {}

        def inference(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
            return np.array([self.known.setdefault(x, x * x) for x in inputs["x"].tolist()], np.int64)

        def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
            return {"y": outputs}

    outcomes = try_laws(LoadedHandler.of(Caching), ["repeatable", "history", "concurrency"])
    assert {outcome.verdict for outcome in outcomes.values()} == {"holds"}


class NewWords(Handler):
    """Counts the words that were not in `seen`. Where subclasses keep that one, a word counts once, ever."""

    inputs = Schema(text=String())
    outputs = Schema(score=Float64())

    def count(self, text: str) -> int:
        return self.new(text, [])

    def new(self, text: str, seen: list[str]) -> int:
        found = [word for word in text.split() if word not in seen]
        seen.extend(found)
        return len(found)

    def preprocess(self, batch: Batch) -> list[str]:
        return batch["text"].to_pylist()

    def inference(self, inputs: list[str]) -> np.ndarray:
        return np.asarray([self.count(text) for text in inputs], np.float64)

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"score": outputs}


def filled_default() -> type[Handler]:
    class FilledDefault(NewWords):
        def count(self, text: str, seen: list[str] = []) -> int:  # noqa: B006 - that is the bug
            return self.new(text, seen)

    return FilledDefault


def filled_class() -> type[Handler]:
    class FilledClass(NewWords):
        seen: ClassVar[list[str]] = []

        def count(self, text: str) -> int:
            return self.new(text, self.seen)

    return FilledClass


@pytest.mark.slow
@pytest.mark.parametrize("handler", [filled_default, filled_class])
def test_what_outlives_a_handler_and_is_full_after_the_first_batch_is_caught(
    handler: Callable[[], type[Handler]],
) -> None:
    table = pa.table({"text": ["so far so good", "poor", "good and poor", "far"]})
    rows = decode_table(handler().inputs, table).batch
    assert broken(try_laws(LoadedHandler.of(handler()), ["history"], rows)) == ["history"]
    assert broken(try_laws(LoadedHandler.of(handler()), HERE, rows))
