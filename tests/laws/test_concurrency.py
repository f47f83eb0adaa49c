from __future__ import annotations

import threading

import numpy as np
import pytest

from parity import Batch, Context, Handler, Int64, Schema, load_handler
from parity.handler import LoadedHandler
from tests.laws.trying import FIXTURES, HERE, broken, try_laws


@pytest.mark.slow
@pytest.mark.parametrize("handler", ["stale_buffer", "kept_on_self"])
def test_state_kept_between_stages_is_caught_with_the_two_rows_it_takes(handler: str) -> None:
    outcomes = try_laws(load_handler(FIXTURES / handler), HERE)
    assert broken(outcomes) == ["concurrency"]
    example = outcomes["concurrency"].counterexample
    assert example is not None
    assert example.rows.num_rows == 2
    assert "interleaved" in example.how


class SharedWithinAStage(Handler):
    """Keeps the batch on self while preprocess works on it: harmless until two threads preprocess at once."""

    inputs = Schema(x=Int64(ge=0, le=1000))
    outputs = Schema(y=Int64())

    def initialize(self, context: Context) -> None:
        self.both_here = threading.Barrier(2)
        self.met = False

    def preprocess(self, batch: Batch) -> np.ndarray:
        self.current = batch
        if not self.met and threading.current_thread().name.startswith("parity-preprocess"):
            self.both_here.wait(timeout=60)  # rather than hope that two threads meet, have the first two meet
            self.met = True
        return self.current["x"].numpy()

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"y": outputs[: len(batch)] if len(outputs) >= len(batch) else np.zeros(len(batch), np.int64)}


@pytest.mark.slow
def test_state_shared_within_a_stage_is_caught_on_real_threads() -> None:
    outcomes = try_laws(LoadedHandler.of(SharedWithinAStage), ["repeatable", "history", "concurrency"])
    assert broken(outcomes) == ["concurrency"]
    assert outcomes["concurrency"].executed[-1].endswith("on the threads of a pipeline")
    assert outcomes["concurrency"].counterexample is not None
