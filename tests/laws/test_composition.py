from __future__ import annotations

import json

import numpy as np
import pytest

from parity import Batch, Engine, Float32, Float64, Handler, Int64, List, Schema, String, Tensor, load_handler
from parity.examples import example_batch
from parity.handler import LoadedHandler
from parity.laws import check_laws
from tests.laws.trying import FIXTURES, HERE, broken, try_laws

COMPOSITION = ["single-row", "order", "neighbours", "batch-size"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("handler", "law"),
    [
        ("batch_mean", "batch-size"),
        ("batch_mean", "neighbours"),
        ("drop_row", "batch-size"),
        ("nan_guard", "neighbours"),
        ("null_float", "neighbours"),
        ("sorted_output", "order"),
        ("position", "order"),
    ],
)
def test_a_broken_handler_is_caught_with_the_two_rows_it_takes(handler: str, law: str) -> None:
    outcome = try_laws(load_handler(FIXTURES / handler), [law])[law]
    assert outcome.verdict == "broken"
    assert outcome.pairs > 0
    assert outcome.executed
    example = outcome.counterexample
    assert example is not None
    assert example.rows.num_rows == len(example.labels) == 2
    assert example.row in (0, 1)
    assert example.expected != example.obtained
    assert example.column in example.summary()
    assert outcome.diagnosis is not None
    assert example.row in outcome.diagnosis.rows
    json.dumps(outcome.to_dict(), allow_nan=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("handler", "first"),
    [
        ("batch_mean", "neighbours"),
        ("nan_guard", "neighbours"),
        ("null_float", "neighbours"),
        ("position", "order"),
        ("sorted_output", "order"),
    ],
)
def test_the_law_that_says_it_best_is_told_first_and_the_others_follow_it(handler: str, first: str) -> None:
    outcomes = try_laws(load_handler(FIXTURES / handler), COMPOSITION)
    assert broken(outcomes) == [first]
    assert {outcome.follows for outcome in outcomes.values()} <= {"", first}


@pytest.mark.slow
@pytest.mark.parametrize(
    "handler",
    [path.name for path in sorted(FIXTURES.iterdir()) if path.name.endswith("_fixed")],
)
def test_a_clean_twin_breaks_no_law(handler: str) -> None:
    outcomes = try_laws(load_handler(FIXTURES / handler), HERE)
    assert {law: (outcome.verdict, outcome.detail) for law, outcome in outcomes.items() if not outcome} == {}
    tried = [outcome for outcome in outcomes.values() if outcome.verdict != "skipped"]
    assert len(tried) >= 12
    assert all(outcome.pairs > 0 for outcome in tried)
    assert {outcome.verdict for outcome in tried} == {"holds"}


class Squeezing(Handler):
    """Drops the batch's dimension with all others of size 1."""

    inputs = Schema(x=Tensor("float32", (3,)))
    outputs = Schema(y=Float32(non_finite="string"))

    def inference(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
        with np.errstate(all="ignore"):
            return inputs["x"].sum(axis=1, keepdims=True).squeeze()

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"y": outputs}


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 5])
def test_a_row_that_fails_alone_is_the_single_rows_law_and_no_other(rows: int) -> None:
    outcomes = try_laws(LoadedHandler.of(Squeezing), HERE, example_batch(Squeezing.inputs, rows))
    if rows > 1:  # with one row only, every golden row fails, as the outputs say
        assert broken(outcomes) == ["single-row"]
    example = outcomes["single-row"].counterexample
    assert example is not None
    assert example.column == "_error"
    assert example.rows.num_rows == 2
    assert ".squeeze()" in str(example.obtained)


@pytest.mark.slow
def test_an_answer_that_depends_on_the_number_of_rows_alone_is_the_batch_sizes_law() -> None:
    class Counting(Handler):
        inputs = Schema(x=Int64(ge=0, le=1000))
        outputs = Schema(y=Int64())

        def postprocess(self, outputs: dict[str, np.ndarray], batch: Batch) -> dict[str, object]:
            return {"y": outputs["x"] + (len(batch) > 12)}

    outcomes = try_laws(LoadedHandler.of(Counting), COMPOSITION)
    assert broken(outcomes) == ["batch-size"]
    example = outcomes["batch-size"].counterexample
    assert example is not None
    assert example.rows.num_rows == 13
    assert example.rows.column("x").to_pylist() == [0] * 13


class Padded(Handler):
    """Averages over the longest of the batch's lists, so that a neighbour's length counts."""

    inputs = Schema(words=List(String()), weight=Float64(ge=0.0, le=10.0), name=String())
    outputs = Schema(score=Float64())

    def postprocess(self, outputs: dict[str, np.ndarray], batch: Batch) -> dict[str, object]:
        longest = max(len(words) for words in outputs["words"])
        sums = np.array([sum(map(len, words)) for words in outputs["words"]], np.float64)
        return {"score": sums / max(longest, 1)}


@pytest.mark.slow
def test_a_counterexample_has_the_simplest_values_that_still_break_the_law() -> None:
    outcome = try_laws(LoadedHandler.of(Padded), ["neighbours"])["neighbours"]
    example = outcome.counterexample
    assert example is not None
    assert example.rows.num_rows == 2
    assert example.rows.column("weight").to_pylist() == [0.0, 0.0]
    assert example.rows.column("name").to_pylist() == ["", ""]
    words: list[list[str]] = example.rows.column("words").to_pylist()  # pyright: ignore[reportAssignmentType]
    assert len(words[example.row]) == 1
    assert len(words[1 - example.row]) == 2
    assert any("simplified" in label for label in example.labels)


@pytest.mark.slow
def test_natural_float_noise_is_called_by_its_name_and_size() -> None:
    outcomes = try_laws(load_handler(FIXTURES / "mlp"), HERE)
    assert broken(outcomes) == []
    outcome = outcomes["batch-size"]
    if outcome.verdict == "noise":  # on some machines all batch sizes take one path
        assert outcome.detail.startswith("batch-shape noise")
        noise = {item.column: item for item in outcome.noise}
        assert noise["label"].differing == 0
        assert noise["score"].ulp is not None
        assert 0 < noise["score"].ulp <= 64
        assert outcome.worst_ulp == noise["score"].ulp


@pytest.mark.slow
def test_a_real_dependence_below_the_tolerance_is_not_called_batch_shape_noise() -> None:
    class Leaking(Handler):
        inputs = Schema(x=Float64(ge=0.0, le=1.0))
        outputs = Schema(y=Float64())

        def inference(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
            return 1.0 + inputs["x"] + 1e-14 * inputs["x"].max()

        def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
            return {"y": outputs}

    outcome = try_laws(LoadedHandler.of(Leaking), ["neighbours"])["neighbours"]
    assert outcome.verdict == "noise"
    assert "depends on the values of the rows beside" in outcome.detail


@pytest.mark.slow
@pytest.mark.parametrize("rows", [2, 10])
def test_edge_rows_of_vast_answers_do_not_hide_what_happens_to_the_others(rows: int) -> None:
    class Places(Handler):
        inputs = Schema(**{name: Int64() for name in "abcde"})
        outputs = Schema(y=Float64())

        def postprocess(self, outputs: dict[str, np.ndarray], batch: Batch) -> dict[str, object]:
            total = sum(values.astype(np.float64) for values in outputs.values())
            return {"y": total + 0.5 * np.arange(len(batch))}

    with Engine(Places) as engine:
        outcomes = check_laws(engine, example_batch(Places.inputs, rows))
    assert {"order", "batch-size"} <= {outcome.law for outcome in outcomes if outcome.verdict == "broken"}


@pytest.mark.slow
def test_ties_dict_order_nan_and_negative_zero_break_nothing() -> None:
    class Clean(Handler):
        inputs = Schema(x=Float64())
        outputs = Schema(top=List(Int64()), y=Float64(non_finite="string"), same=Float64(non_finite="string"))

        def postprocess(self, outputs: dict[str, np.ndarray], batch: Batch) -> dict[str, object]:
            x = outputs["x"]
            top = [np.argsort([value, value, 0.0])[::-1].tolist() for value in x]
            return {"same": np.where(x == 0, -0.0, x), "y": np.where(x > 1, np.nan, x), "top": top}

    outcomes = try_laws(LoadedHandler.of(Clean), HERE)
    assert {law: outcome.detail for law, outcome in outcomes.items() if not outcome} == {}
