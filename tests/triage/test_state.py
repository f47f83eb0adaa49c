from __future__ import annotations

import functools
import threading
from typing import Any, ClassVar, cast

import numpy as np
import pytest
import torch

from parity import Batch, Context, Engine, Float64, Handler, Schema
from parity.triage import Divergence, Side
from parity.triage.memory import Outliving
from parity.triage.trials import Trials
from tests.triage.divergences import against, asked_again, claims, denies, in_batch, side_of, table_of

SEEN: list[float] = []


class Scored(Handler):
    inputs = Schema(a=Float64())
    outputs = Schema(y=Float64())

    def preprocess(self, batch: Batch) -> Any:
        return batch["a"].numpy()

    def inference(self, inputs: Any) -> Any:
        return inputs * 1.5

    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"y": outputs}


class Counter(Scored):
    def initialize(self, context: Context) -> None:
        self.calls = 0

    def inference(self, inputs: Any) -> Any:
        self.calls += 1
        return inputs + self.calls


class RunningMean(Scored):
    def initialize(self, context: Context) -> None:
        self.mean = 0.0

    def preprocess(self, batch: Batch) -> Any:
        values = super().preprocess(batch)
        self.mean = 0.9 * self.mean + 0.1 * float(values.mean())
        return values - self.mean


class FirstFit(Scored):
    def preprocess(self, batch: Batch) -> Any:
        values = super().preprocess(batch)
        if not hasattr(self, "scale"):
            self.scale = float(np.abs(values).max())
        return values / self.scale


class ModuleList(Scored):
    def inference(self, inputs: Any) -> Any:
        SEEN.extend(inputs.tolist())
        return inputs + len(SEEN)


@functools.cache
def cached(key: int) -> list[float]:
    return []


class Cached(Scored):
    def inference(self, inputs: Any) -> Any:
        kept = cached(0)
        kept.append(1.0)
        return inputs + len(kept)


class PoorKey(Scored):
    def initialize(self, context: Context) -> None:
        self.cache: dict[int, float] = {}

    def inference(self, inputs: Any) -> Any:
        self.cache.clear()
        return np.array([self.cache.setdefault(int(value), value * 1.5) for value in inputs])


class Default(Scored):
    def grown(self, values: list[float], seen: list[float] = []) -> list[float]:  # noqa: B006 - the fault
        seen.extend(values)
        return [value + len(seen) for value in values]

    def inference(self, inputs: Any) -> Any:
        return np.array(self.grown(inputs.tolist()))


class Noisy(Scored):
    def inference(self, inputs: Any) -> Any:
        return inputs + np.random.default_rng().normal(size=len(inputs))


ROWS = table_of(Scored, [{"a": a} for a in (1.5, 1.25, 3.0)])
OTHERS = table_of(Scored, [{"a": a} for a in (40.0, 7.75)])


@pytest.mark.parametrize(
    ("handler", "changed"),
    [(Counter, "self.calls"), (RunningMean, "self.mean"), (ModuleList, "SEEN"), (Cached, "")],
)
def test_what_a_handler_remembers_is_named_and_put_back(handler: type[Handler], changed: str) -> None:
    with asked_again(handler, ROWS) as (divergence, engine):
        found = claims("state-kept", divergence, engine)
    assert found.cause is not None
    assert changed in found.cause.evidence
    assert "put back before each batch, the difference is gone" in found.cause.evidence


def test_what_was_fitted_on_the_first_batch() -> None:
    with Engine(FirstFit) as engine:
        first = side_of(engine, ROWS, range(3))
    with Engine(FirstFit) as engine:
        side_of(engine, OTHERS, [0])
        after = side_of(engine, ROWS, range(3))
        divergence = Divergence("history", ROWS, first, after, history=(OTHERS,))
        found = claims("state-kept", divergence, engine)
    assert found.stage == "preprocess"
    assert found.cause is not None
    assert "after the batches before it" in found.cause.evidence
    assert "self.scale" in found.cause.evidence


def test_a_cache_within_a_batch() -> None:
    with in_batch(PoorKey, ROWS, 1, law="order") as (divergence, engine):
        found = claims("state-kept", divergence, engine)
    assert found.cause is not None
    assert "self.cache forgetting" in found.cause.evidence


def test_what_outlives_a_handler_is_emptied() -> None:
    assert Default.grown.__defaults__ is not None
    Default.grown.__defaults__[0].clear()
    with asked_again(Default, ROWS, law="history") as (divergence, engine):
        found = claims("state-kept", divergence, engine)
    assert found.cause is not None
    assert "grown" in found.cause.evidence


def test_noise_and_steady_handlers_keep_no_state() -> None:
    with asked_again(Noisy, ROWS) as (divergence, engine):
        assert "chance" in denies("state-kept", divergence, engine)
    with asked_again(Scored, ROWS) as (divergence, engine):
        assert denies("state-kept", divergence, engine) == ""


class Buffered(Scored):
    """Answers are views of one buffer."""

    def initialize(self, context: Context) -> None:
        self.buffer = np.zeros(64)

    def inference(self, inputs: Any) -> Any:
        room = self.buffer[: len(inputs)]
        room[:] = super().inference(inputs)
        return room


class FirstSize(Scored):
    """A buffer of the first batch's size; what does not fit is left over."""

    def inference(self, inputs: Any) -> Any:
        scores = super().inference(inputs)
        if not hasattr(self, "room"):
            self.room = np.zeros(len(inputs))
        kept = min(len(scores), len(self.room))
        self.room[:kept] = scores[:kept]
        return np.resize(self.room, len(scores)).copy()


class KeptOnSelf(Scored):
    def preprocess(self, batch: Batch) -> Any:
        self.kept = batch["a"].numpy()
        return self.kept * 1.0

    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"y": outputs + np.resize(self.kept, len(outputs))}


def overlapped(engine: Engine) -> Divergence:
    """Each row alone, and while the others are under way."""
    sides = [side_of(engine, ROWS.slice(row, 1), [0]) for row in range(3)]
    runs = Trials(engine).overlapped([ROWS.slice(row, 1) for row in range(3)])
    assert runs is not None
    first = runs[0]

    return Divergence(
        "concurrency", ROWS.slice(0, 1), sides[0], Side("overlapped", first.answers, first.traces)
    )


def test_answers_in_memory_that_is_used_again() -> None:
    with Engine(Buffered) as engine:
        found = claims("stale-buffer", overlapped(engine), engine)
    assert found.stage == "inference"
    assert found.cause is not None
    assert "shares its memory with self.buffer" in found.cause.evidence


def test_a_buffer_of_the_first_batchs_size() -> None:
    with Engine(FirstSize) as engine:
        first = side_of(engine, ROWS, range(3))
    with Engine(FirstSize) as engine:
        side_of(engine, OTHERS, [0])
        after = side_of(engine, ROWS, range(3))
        divergence = Divergence("history", ROWS, first, after, history=(OTHERS,))
        found = claims("stale-buffer", divergence, engine)
    assert found.cause is not None
    assert "self.room is used again" in found.cause.evidence


def test_a_counter_is_no_buffer() -> None:
    with asked_again(Counter, ROWS) as (divergence, engine):
        assert denies("stale-buffer", divergence, engine)


def test_something_passed_on_through_self() -> None:
    with Engine(KeptOnSelf) as engine:
        found = claims("shared-state", overlapped(engine), engine)
    assert found.stage == "postprocess"
    assert found.cause is not None
    assert "self.kept" in found.cause.evidence


@pytest.mark.parametrize("handler", [Scored, Counter, Noisy])
def test_stages_that_overlap_well_share_no_state(handler: type[Handler]) -> None:
    with in_batch(handler, ROWS, 1, law="concurrency") as (divergence, engine):
        denies("shared-state", divergence, engine)


class UsedUp(Scored):
    def initialize(self, context: Context) -> None:
        self.offsets = iter([1.0, 2.0, 3.0])

    def inference(self, inputs: Any) -> Any:
        offsets = list(self.offsets)
        return inputs + np.resize(offsets or [0.0], len(inputs))


class EndlessIterator(Scored):
    def initialize(self, context: Context) -> None:
        self.names = iter(())


class Generated(Scored):
    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"y": (float(value) for value in outputs)}


def test_a_generator_that_is_read_once() -> None:
    with asked_again(UsedUp, ROWS) as (divergence, engine):
        found = claims("generator-consumed", divergence, engine)
    assert found.cause is not None
    assert "self.offsets" in found.cause.evidence
    with asked_again(EndlessIterator, ROWS) as (divergence, engine):
        assert "self.names" in denies("generator-consumed", divergence, engine)
    with asked_again(Counter, ROWS) as (divergence, engine):
        assert denies("generator-consumed", divergence, engine) == ""


def test_a_generator_given_as_an_answer() -> None:
    with against(Scored, Generated, ROWS) as (divergence, engine):
        claims("generator-consumed", divergence, engine)


_MISSING = object()
_LOCK = threading.Lock()


class Step:
    """An object without equality of its own."""


class Odd(Scored):
    """Holds what must not be copied: sentinels, locks, objects and a model."""

    steps: ClassVar[list[Step]] = [Step()]
    held: ClassVar[dict[str, Any]] = {"model": torch.nn.Linear(2, 2)}
    seen: ClassVar[list[int]] = [1]

    def pick(self, value: object = _MISSING, kept: list[int] = [], lock: Any = _LOCK) -> bool:  # noqa: B006
        kept.append(1)
        return value is _MISSING


def test_what_outlives_a_handler_is_put_back_and_objects_are_left_alone() -> None:
    before = Odd.steps[0], Odd.held["model"], Odd.pick.__defaults__
    outliving = Outliving(Odd)
    assert outliving.changed() == []
    Odd.seen.append(2)
    odd = Odd()
    assert odd.pick()
    assert sorted(outliving.changed()) == ["Odd.seen", "a default argument of Odd.pick"]
    outliving.restore()
    assert outliving.changed() == []
    assert Odd.seen == [1]
    assert Odd.pick.__defaults__ == (_MISSING, [], _LOCK)
    assert (Odd.steps[0], Odd.held["model"], Odd.pick.__defaults__) == before
    assert odd.pick(), "a sentinel is still itself"


def test_classes_of_one_name_are_told_apart() -> None:
    base = type("Scorer", (Scored,), {"seen": [1], "__module__": __name__})
    derived = type("Scorer", (base,), {"known": [2], "__module__": __name__})
    outliving = Outliving(derived)
    cast("Any", base).seen.append(5)
    cast("Any", derived).known.append(6)
    assert len(outliving.changed()) == 2
    outliving.restore()
    assert (cast("Any", base).seen, cast("Any", derived).known) == ([1], [2])
