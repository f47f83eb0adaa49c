from __future__ import annotations

import datetime
import time

import numpy as np
import pytest

from parity import Batch, Context, Float64, Handler, Int64, Schema, Timestamp
from parity.handler import LoadedHandler
from parity.laws.clock import travelled
from tests.laws.trying import HERE, broken, try_laws


class DaysAgo(Handler):
    """A feature of the age in days, by the clock of the machine."""

    inputs = Schema(at=Timestamp(tz="UTC"), weight=Float64(ge=0.0, le=1.0))
    outputs = Schema(days=Int64())

    def preprocess(self, batch: Batch) -> np.ndarray:
        now = np.datetime64(int(time.time()) // 86_400, "D")
        return (now - batch["at"].numpy().astype("datetime64[D]")).astype(np.int64)

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"days": outputs}


class LoadedIn(Handler):
    """Remembers the year that it was loaded in."""

    inputs = Schema(year=Int64(ge=1900, le=2100))
    outputs = Schema(age=Int64())

    def initialize(self, context: Context) -> None:
        self.year = datetime.date.today().year

    def postprocess(self, outputs: dict[str, np.ndarray], batch: Batch) -> dict[str, object]:
        return {"age": self.year - outputs["year"]}


class Stamping(Handler):
    """Answers with the time: another answer every time, and always the same one while the clock stands."""

    inputs = Schema(x=Int64(ge=0, le=9))
    outputs = Schema(at=Float64())

    def postprocess(self, outputs: dict[str, np.ndarray], batch: Batch) -> dict[str, object]:
        return {"at": np.full(len(batch), time.time())}


@pytest.mark.slow
@pytest.mark.parametrize(("handler", "how"), [(DaysAgo, "now, and "), (LoadedIn, "loaded then")])
def test_the_wall_clock_is_caught_in_a_stage_and_in_initialize(handler: type[Handler], how: str) -> None:
    outcomes = try_laws(LoadedHandler.of(handler), HERE)
    assert broken(outcomes) == ["clock"]
    example = outcomes["clock"].counterexample
    assert example is not None
    assert example.rows.num_rows == 1
    assert how in example.how


@pytest.mark.slow
def test_a_handler_whose_every_answer_is_the_time_is_caught_while_the_clock_stands_still() -> None:
    outcomes = try_laws(LoadedHandler.of(Stamping), HERE)
    assert broken(outcomes) == ["repeatable", "clock"]
    assert outcomes["order"].verdict == "skipped"


@pytest.mark.slow
class Second(Handler):
    inputs = Schema(x=Float64())
    outputs = Schema(y=Float64())

    def postprocess(self, outputs, batch):
        return {"y": np.full(len(batch), time.time() % 60)}


def test_a_handler_that_reads_the_second_only_is_caught_too() -> None:
    assert try_laws(LoadedHandler.of(Second), ["clock"])["clock"].verdict == "broken"


def test_a_handler_that_draws_at_random_says_nothing_about_the_clock() -> None:
    class Drawing(Handler):
        inputs = Schema(x=Int64(ge=0, le=9))
        outputs = Schema(y=Float64())

        def postprocess(self, outputs: dict[str, np.ndarray], batch: Batch) -> dict[str, object]:
            return {"y": np.random.default_rng().random(len(batch))}

    outcome = try_laws(LoadedHandler.of(Drawing), ["clock"])["clock"]
    assert (outcome.verdict, bool(outcome)) == ("nothing", False)
    assert outcome.counterexample is None


def test_the_clock_is_put_back() -> None:
    before = time.time()
    with travelled(datetime.datetime(2040, 1, 1, tzinfo=datetime.UTC)):
        assert datetime.datetime.now(datetime.UTC).year == 2040
    assert abs(time.time() - before) < 3600
