from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parity import (
    Batch,
    Engine,
    Float32,
    Float64,
    Handler,
    Int64,
    Profile,
    Result,
    Schema,
    Tensor,
    load_handler,
)
from parity.column import Column
from parity.errors import ConfigError
from parity.examples import example_batch
from parity.handler import LoadedHandler
from parity.laws import LAWS, LawOutcome, check_laws, law_rows, laws_named
from parity.laws.shrink import shrink
from parity.registry import Runner

HANDLERS = Path(__file__).parent / "fixtures" / "handlers"


def try_laws(
    loaded: LoadedHandler, laws: Sequence[str] | None = None, **options: Any
) -> dict[str, LawOutcome]:
    with Engine(loaded) as engine:
        rows, labels = law_rows(loaded, [])
        found = check_laws(engine, rows, laws=laws_named(laws), labels=labels, **options)
    return {outcome.law: outcome for outcome in found}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("handler", "law", "fewest"),
    [
        ("counter", "repeatable", 1),
        ("global_rng", "repeatable", 1),
        ("batch_mean", "batch-size", 2),
        ("drop_row", "batch-size", 2),
        ("stale_buffer", "batch-size", 2),
        ("kept_on_self", "batch-size", 2),
        ("nan_guard", "neighbours", 2),
        ("null_float", "neighbours", 2),
        ("sorted_output", "order", 2),
        ("position", "order", 2),
    ],
)
def test_a_broken_handler_is_caught_with_the_fewest_rows(handler: str, law: str, fewest: int) -> None:
    outcome = try_laws(load_handler(HANDLERS / handler), [law])[law]
    assert outcome.verdict == "broken"
    assert outcome.pairs > 0
    example = outcome.counterexample
    assert example is not None
    assert example.rows.num_rows == len(example.labels) == fewest
    assert 0 <= example.row < fewest
    assert example.expected != example.obtained
    assert example.column in example.summary()
    json.dumps(outcome.to_dict(), allow_nan=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    "handler",
    [path.name for path in sorted(HANDLERS.iterdir()) if path.name.endswith("_fixed")],
)
def test_a_clean_twin_breaks_no_law(handler: str) -> None:
    outcomes = try_laws(load_handler(HANDLERS / handler))
    assert {law: (outcome.verdict, outcome.detail) for law, outcome in outcomes.items() if not outcome} == {}
    assert all(outcome.pairs > 0 for outcome in outcomes.values())
    assert {outcome.verdict for outcome in outcomes.values()} == {"holds"}


@pytest.mark.slow
def test_natural_float_noise_is_called_by_its_name_and_size() -> None:
    outcome = try_laws(load_handler(HANDLERS / "mlp"), ["batch-size"])["batch-size"]
    assert outcome.verdict in ("noise", "holds")
    if outcome.verdict == "noise":
        assert "natural float noise of batch shapes" in outcome.detail
        assert outcome.worst_ulp is not None
        assert 0 < outcome.worst_ulp <= 64


@pytest.mark.parametrize("handler", ["mutated", "mutated_tensor"])
def test_a_handler_that_writes_into_its_inputs_breaks_the_first_law_and_ends_the_trial(handler: str) -> None:
    outcomes = try_laws(load_handler(HANDLERS / handler))
    assert [outcome.verdict for outcome in outcomes.values()] == ["broken", *["nothing"] * 4]
    assert "copy first" in outcomes["repeatable"].detail
    assert "not tried" in outcomes["order"].detail


def test_a_handler_that_answers_no_row_has_obeyed_no_law() -> None:
    class Never(Square):
        def inference(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
            raise RuntimeError("no model")

    outcomes = try_laws(LoadedHandler.of(Never))
    assert {outcome.verdict for outcome in outcomes.values()} == {"nothing"}
    assert not any(outcomes.values())


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
    broken = {outcome.law for outcome in outcomes if outcome.verdict == "broken"}
    assert broken == {"batch-size", "neighbours", "order"}


class Rounding:
    """A runner whose answers come back rounded to six digits, as some JSON encoders send them."""

    name = "rounding"
    command_name = "round"
    wire_forms = ("json", "exact")
    command = None

    def replay(
        self,
        handler_ref: str,
        rows: pa.Table,
        profile: Profile,
        *,
        app_dir: str | None = None,
        wire: str | None = None,
    ) -> Result:
        loaded = load_handler(handler_ref, app_dir=app_dir)
        columns = {name: Column(field, arrow=_one(rows, name)) for name, field in loaded.inputs.items()}
        with Engine(loaded, profile) as engine:
            result = engine.run(Batch(loaded.inputs, columns))
        if wire == "exact":
            return result
        rounded = [float(f"{value:.6g}") for value in result.outputs["y"].to_pylist()]
        column = Column(result.outputs["y"].field, numpy=np.array(rounded))
        return Result(
            result.num_rows, Batch(result.outputs.schema, {"y": column}), result.index, result.errors
        )


def _one(table: pa.Table, name: str) -> Any:
    return pa.concat_arrays(table.column(name).chunks)


@pytest.mark.slow
def test_a_runner_that_rounds_breaks_the_law_of_the_wire_form() -> None:
    assert isinstance(Rounding(), Runner)
    loaded = load_handler(HANDLERS / "batch_mean_fixed")
    outcome = try_laws(loaded, ["wire-form"], runners=[Rounding()])["wire-form"]
    assert outcome.verdict == "broken"
    assert outcome.detail.startswith("in this process, and through the rounding runner as json")
    assert outcome.counterexample is not None
    assert outcome.counterexample.rows.num_rows == 1


@pytest.mark.slow
def test_a_runner_that_keeps_every_bit_leaves_the_wire_law_whole() -> None:
    class Exact(Rounding):
        wire_forms = ("exact",)

    loaded = load_handler(HANDLERS / "nan_guard_fixed")
    assert try_laws(loaded, ["wire-form"], runners=[Exact()])["wire-form"].verdict == "holds"


class Square(Handler):
    inputs = Schema(x=Tensor("float32", (3,)))
    outputs = Schema(y=Float32(non_finite="string"))

    def inference(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
        with np.errstate(all="ignore"):
            return (inputs["x"] ** 2).sum(axis=1)

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"y": outputs}


@pytest.mark.slow
def test_a_class_without_a_folder_and_a_single_row_can_be_tried() -> None:
    loaded = LoadedHandler.of(Square)
    with Engine(loaded) as engine:
        outcomes = check_laws(engine, example_batch(Square.inputs, 1))
    assert all(outcomes)


def test_no_rows_are_refused() -> None:
    with Engine(Square) as engine, pytest.raises(ConfigError, match="no rows"):
        check_laws(engine, example_batch(Square.inputs, 0))


def test_laws_are_found_by_name_in_their_fixed_order() -> None:
    assert laws_named(None) == LAWS
    assert [law.name for law in laws_named(["order", "repeatable"])] == ["repeatable", "order"]
    with pytest.raises(ConfigError, match=r"no law 'ordre'; did you mean 'order'"):
        laws_named(["ordre"])


def test_every_law_has_a_sentence() -> None:
    assert [law.name for law in LAWS] == ["repeatable", "batch-size", "neighbours", "order", "wire-form"]
    assert all(law.sentence for law in LAWS)


@given(
    size=st.integers(1, 60),
    needed=st.sets(st.integers(0, 59), min_size=1, max_size=4),
)
def test_shrinking_finds_exactly_the_items_that_are_needed(size: int, needed: set[int]) -> None:
    items = list(range(60))[: max(size, max(needed) + 1)]
    assert shrink(items, lambda chosen: needed <= set(chosen), max_trials=10_000) == sorted(needed)


def test_shrinking_stops_after_its_trials_with_the_best_so_far() -> None:
    calls: list[list[int]] = []

    def fails(chosen: list[int]) -> bool:
        calls.append(chosen)
        return 7 in chosen and 90 in chosen

    found = shrink(list(range(100)), fails, max_trials=5)
    assert {7, 90} <= set(found)
    assert len(calls) == 5
