from __future__ import annotations

import numpy as np
import pytest

from parity import Batch, Float64, Handler, Int64, Schema, load_handler
from parity.handler import LoadedHandler
from parity.laws.forms import WIRES
from tests.laws.trying import FIXTURES, HERE, try_laws


class RejectsTheNext(Handler):
    """Refuses the row behind the one that it means."""

    inputs = Schema(x=Float64(ge=-1e6, le=1e6))
    outputs = Schema(y=Float64())

    def postprocess(self, outputs: dict[str, np.ndarray], batch: Batch) -> dict[str, object]:
        for row in np.flatnonzero(outputs["x"] < -9e5):
            batch.reject(min(int(row) + 1, len(batch) - 1), "too small")
        return {"y": outputs["x"] * 2}


@pytest.mark.slow
def test_a_failing_row_that_harms_another_is_caught_with_both() -> None:
    outcome = try_laws(LoadedHandler.of(RejectsTheNext), ["failing-rows"])["failing-rows"]
    assert outcome.verdict == "broken"
    example = outcome.counterexample
    assert example is not None
    assert example.rows.num_rows == 2
    assert example.column == "_error"


@pytest.mark.slow
def test_a_handler_that_rejects_and_one_that_raises_keep_their_failures_to_themselves() -> None:
    class Raising(RejectsTheNext):
        def postprocess(self, outputs: dict[str, np.ndarray], batch: Batch) -> dict[str, object]:
            if (outputs["x"] < -9e5).any():
                raise ValueError("too small")
            return {"y": outputs["x"] * 2}

    for loaded in (load_handler(FIXTURES / "drop_row_fixed"), LoadedHandler.of(Raising)):
        outcome = try_laws(loaded, ["failing-rows"])["failing-rows"]
        assert outcome.verdict == "holds"
        assert any("failing rows in the middle" in how for how in outcome.executed)


@pytest.mark.slow
def test_where_no_row_fails_unfit_rows_are_sent_and_that_is_said() -> None:
    class Plain(Handler):
        inputs = Schema(x=Int64(ge=0, le=9))
        outputs = Schema(x=Int64())

    outcome = try_laws(LoadedHandler.of(Plain), ["failing-rows"])["failing-rows"]
    assert outcome.verdict == "holds"
    assert outcome.pairs > 0
    assert "only unfit rows were" in outcome.detail
    assert outcome.executed == ("in this batch of 64, and among rows that do not fit the schema",)


@pytest.mark.slow
def test_an_empty_batch_is_asked_in_every_form_and_rows_after_it() -> None:
    class AfterNothing(Handler):
        inputs = Schema(x=Int64(ge=0, le=9))
        outputs = Schema(x=Int64())

    outcome = try_laws(LoadedHandler.of(AfterNothing), ["empty-batch"])["empty-batch"]
    assert outcome.verdict == "holds"
    assert outcome.pairs == 64
    assert outcome.detail.startswith(f"{len(WIRES) + 1} empty batches answered")


def test_every_law_says_what_it_did_or_why_it_did_nothing() -> None:
    class Plain(Handler):
        inputs = Schema(x=Int64(ge=0, le=9))
        outputs = Schema(x=Int64())

    for outcome in try_laws(LoadedHandler.of(Plain), HERE).values():
        assert outcome.detail
        if outcome.verdict in ("holds", "noise", "broken"):
            assert outcome.pairs > 0
            assert outcome.executed
