from __future__ import annotations

import json

import numpy as np
import pytest

from parity import Batch, Engine, Float64, Handler, Int64, Schema, load_handler
from parity.errors import ConfigError
from parity.handler import LoadedHandler
from parity.laws import LAWS, Bench, law_rows, laws_named, noise_floor
from tests.laws.trying import FIXTURES, HERE, try_laws

ALL = {
    "repeatable",
    "batch-size",
    "neighbours",
    "order",
    "history",
    "concurrency",
    "process",
    "wire-form",
    "clock",
    "inputs-untouched",
    "eval-mode",
    "declared-access",
    "declared-outputs",
    "empty-batch",
    "single-row",
    "failing-rows",
    "runner",
    "device",
}


class Echo(Handler):
    inputs = Schema(x=Int64(ge=0, le=9))
    outputs = Schema(x=Int64())


def test_every_law_has_a_name_of_its_own_and_a_sentence() -> None:
    names = [law.name for law in LAWS]
    assert set(names) == ALL
    assert len(names) == len(ALL)
    assert all(law.sentence[0].islower() and not law.sentence.endswith(".") for law in LAWS)


def test_laws_are_found_by_name_in_their_fixed_order() -> None:
    assert laws_named(None) == LAWS
    assert [law.name for law in laws_named(["order", "repeatable"])] == ["repeatable", "order"]
    with pytest.raises(ConfigError, match=r"no law 'ordre'; did you mean 'order'"):
        laws_named(["ordre"])


def test_progress_is_told_law_by_law() -> None:
    lines: list[str] = []
    try_laws(LoadedHandler.of(Echo), ["order", "repeatable"], progress=lines.append)
    assert lines == ["law repeatable", "law order"]


def test_laws_for_which_there_is_no_time_left_could_not_be_tried() -> None:
    now = [0.0]

    def clock() -> float:
        now[0] += 1.0
        return now[0]

    outcomes = try_laws(LoadedHandler.of(Echo), HERE, deadline_s=6, clock=clock)
    verdicts = [outcome.verdict for outcome in outcomes.values()]
    assert verdicts[0] == "holds"
    assert verdicts[-1] == "unable"
    assert not all(outcomes.values())
    assert "the time for all laws was over" in outcomes["device"].detail


def test_outcomes_serialise() -> None:
    outcomes = try_laws(load_handler(FIXTURES / "sorted_output"), ["order", "neighbours"])
    for outcome in outcomes.values():
        found = json.loads(json.dumps(outcome.to_dict(), allow_nan=False))
        assert found["verdict"] == outcome.verdict
        assert found["counterexample"]["snippet"]
        assert found["noise"][0]["column"] == "y"


@pytest.mark.slow
def test_thorough_tries_more() -> None:
    loaded = load_handler(FIXTURES / "position_fixed")
    some = try_laws(loaded, ["batch-size"])["batch-size"]
    more = try_laws(loaded, ["batch-size"], thorough=True)["batch-size"]
    assert more.pairs > 2 * some.pairs
    assert len(more.executed) > len(some.executed)


def test_the_noise_floor_tells_shape_from_repetition_and_from_neighbours() -> None:
    class Noisy(Handler):
        """Off by one bit in batches of an odd size."""

        inputs = Schema(x=Float64(ge=1.0, le=2.0))
        outputs = Schema(y=Float64(), n=Int64())

        def postprocess(self, outputs: dict[str, np.ndarray], batch: Batch) -> dict[str, object]:
            y = outputs["x"] if len(batch) % 2 else np.nextafter(outputs["x"], 9.0)
            return {"n": np.ones(len(batch), np.int64), "y": y}

    loaded = LoadedHandler.of(Noisy)
    with Engine(loaded) as engine, Bench(engine, law_rows(loaded, [])[0]) as bench:
        floor = noise_floor(bench)
    shape = {item.column: item for item in floor.batch_shape}
    assert shape["y"].differing > 0
    assert shape["y"].ulp == 1.0
    assert shape["n"].differing == 0
    assert not any(item.differing for item in (*floor.run_to_run, *floor.neighbours))
    assert floor.natural
    assert floor.largest()["y"].ulp == 1.0
    assert floor.summary().startswith("batch-shape noise: y at most 1 ulp")
    json.dumps(floor.to_dict(), allow_nan=False)


def test_run_to_run_noise_is_measured_and_called_by_its_name() -> None:
    class Jittering(Handler):
        inputs = Schema(x=Float64(ge=1.0, le=2.0))
        outputs = Schema(y=Float64())

        def postprocess(self, outputs: dict[str, np.ndarray], batch: Batch) -> dict[str, object]:
            up = np.random.default_rng().random(len(batch)) < 0.5
            return {"y": np.where(up, outputs["x"], np.nextafter(outputs["x"], 9.0))}

    outcome = try_laws(LoadedHandler.of(Jittering), ["repeatable"])["repeatable"]
    assert outcome.verdict == "noise"
    assert outcome.detail.startswith("run-to-run noise")
