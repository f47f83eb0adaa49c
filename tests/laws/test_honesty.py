from __future__ import annotations

import numpy as np
import pytest

from parity import Batch, Engine, Float64, Handler, Int64, Schema, load_handler
from parity.errors import ConfigError
from parity.examples import example_batch
from parity.handler import LoadedHandler
from parity.laws import check_laws, laws_named
from tests.laws.trying import FIXTURES, HERE, try_laws


@pytest.mark.slow
@pytest.mark.parametrize("handler", ["mutated", "mutated_tensor"])
def test_a_handler_that_writes_into_its_inputs_breaks_the_first_law_and_ends_the_trial(handler: str) -> None:
    outcomes = try_laws(load_handler(FIXTURES / handler), HERE)
    first, *others = outcomes.values()
    assert (first.law, first.verdict) == ("inputs-untouched", "broken")
    assert {outcome.verdict for outcome in others} == {"skipped"}
    assert "copy first" in first.detail
    assert "not tried" in outcomes["order"].detail
    assert first.counterexample is not None
    assert first.counterexample.rows.num_rows == 1
    assert first.diagnosis is not None
    assert first.diagnosis.stage == "preprocess"
    assert first.diagnosis.cause is not None
    assert first.diagnosis.cause.name == "input-mutated"


def test_the_column_that_a_refused_write_was_for_is_named() -> None:
    class Writes(Handler):
        inputs = Schema(a=Int64(), b=Float64(), c=Float64())
        outputs = Schema(y=Float64())

        def inference(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
            inputs["b"] += 1.0
            return inputs["b"]

        def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
            return {"y": outputs}

    outcome = try_laws(LoadedHandler.of(Writes), ["inputs-untouched"])["inputs-untouched"]
    assert outcome.diagnosis is not None
    assert (outcome.diagnosis.stage, outcome.diagnosis.place) == ("inference", "batch['b']")


@pytest.mark.slow
def test_a_write_met_by_another_law_is_told_there_and_points_to_its_own() -> None:
    outcomes = try_laws(load_handler(FIXTURES / "mutated"), ["order", "batch-size"])
    assert outcomes["order"].verdict == "broken"
    assert outcomes["order"].follows == "inputs-untouched"
    assert outcomes["batch-size"].verdict == "skipped"


class Dropping(Handler):
    """Leaves out the answers of rows that it does not like, and says nothing of it."""

    inputs = Schema(x=Float64(ge=-1e6, le=1e6))
    outputs = Schema(y=Float64())

    def postprocess(self, outputs: dict[str, np.ndarray], batch: Batch) -> dict[str, object]:
        return {"y": outputs["x"][outputs["x"] > 0]}


class Undeclared(Dropping):
    def postprocess(self, outputs: dict[str, np.ndarray], batch: Batch) -> dict[str, object]:
        return {"y": outputs["x"].copy(), "debug": outputs["x"].copy()}


class WrongType(Dropping):
    def postprocess(self, outputs: dict[str, np.ndarray], batch: Batch) -> dict[str, object]:
        return {"y": outputs["x"].astype(np.float32)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("handler", "column", "cause"),
    [
        (Dropping, "y", "row-count"),
        (Undeclared, "debug", "undeclared-output"),
        (WrongType, "y", "undeclared-output"),
    ],
)
def test_outputs_that_were_not_declared_are_caught(handler: type[Handler], column: str, cause: str) -> None:
    outcome = try_laws(LoadedHandler.of(handler), ["declared-outputs"])["declared-outputs"]
    assert outcome.verdict == "broken"
    assert outcome.differing > 0
    example = outcome.counterexample
    assert example is not None
    assert example.rows.num_rows == 1
    assert example.column == column
    assert outcome.diagnosis is not None
    assert outcome.diagnosis.stage == "postprocess"
    assert outcome.diagnosis.cause is not None
    assert outcome.diagnosis.cause.name == cause


def test_a_handler_that_raises_has_not_returned_what_it_did_not_declare() -> None:
    class Raising(Dropping):
        def inference(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
            raise RuntimeError("no model")

    outcomes = try_laws(LoadedHandler.of(Raising), ["declared-outputs", "repeatable", "order", "clock"])
    assert {outcome.verdict for outcome in outcomes.values()} == {"nothing"}
    assert not any(outcomes.values())


def test_no_rows_are_refused() -> None:
    with Engine(Dropping) as engine, pytest.raises(ConfigError, match="no rows"):
        check_laws(engine, example_batch(Dropping.inputs, 0), laws=laws_named(["order"]))
