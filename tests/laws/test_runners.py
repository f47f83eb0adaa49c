from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from parity import Batch, Context, Engine, Float32, Handler, Profile, Result, Schema, load_handler
from parity.column import Column
from parity.errors import ConfigError, RowError, RunnerError
from parity.examples import example_batch
from parity.handler import LoadedHandler
from parity.laws import chosen_rows, law_rows
from parity.registry import Runner
from tests.laws.trying import FIXTURES, try_laws


class Rounding:
    """A runner whose answers come back rounded to six digits, as some JSON encoders send them."""

    name = "rounding"
    command_name = "round"
    wire_forms: tuple[str, ...] = ("json", "exact")
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
        return result if wire == "exact" else rounded(result)


def rounded(result: Result) -> Result:
    values = [float(f"{value:.6g}") for value in result.outputs["y"].to_pylist()]
    column = Column(result.outputs["y"].field, numpy=np.array(values))
    return Result(result.num_rows, Batch(result.outputs.schema, {"y": column}), result.index, result.errors)


def _one(table: pa.Table, name: str) -> Any:
    return pa.concat_arrays(table.column(name).chunks)


@pytest.mark.slow
def test_a_runner_that_rounds_breaks_the_runners_law() -> None:
    assert isinstance(Rounding(), Runner)
    outcome = try_laws(load_handler(FIXTURES / "batch_mean_fixed"), ["runner"], runners=[Rounding()])[
        "runner"
    ]
    assert outcome.verdict == "broken"
    assert outcome.detail.startswith("in this process, and through the rounding runner as json")
    assert outcome.counterexample is not None
    assert "find_runner('rounding')" in outcome.counterexample.snippet
    assert outcome.diagnosis is not None
    assert outcome.diagnosis.column == "y"


@pytest.mark.slow
def test_a_runner_that_keeps_every_bit_leaves_the_law_whole() -> None:
    class Exact(Rounding):
        wire_forms = ("exact",)

    outcome = try_laws(load_handler(FIXTURES / "nan_guard_fixed"), ["runner"], runners=[Exact()])["runner"]
    assert outcome.verdict == "holds"


def test_a_runner_that_crashes_leaves_the_law_untried() -> None:
    class Crashing(Rounding):
        def replay(self, handler_ref: str, rows: pa.Table, profile: Profile, **options: Any) -> Result:
            raise RunnerError("runner rounding ended with code 9")

    outcome = try_laws(load_handler(FIXTURES / "nan_guard_fixed"), ["runner"], runners=[Crashing()])["runner"]
    assert (outcome.verdict, outcome.detail) == ("unable", "runner rounding ended with code 9")


def test_answers_that_were_collected_already_are_compared() -> None:
    loaded = load_handler(FIXTURES / "batch_mean_fixed")
    rows, _ = law_rows(loaded, [])
    with Engine(loaded) as engine:
        result = engine.run(rows)
    answers = {"online rows": result, "batch": rounded(result).to_table()}
    outcome = try_laws(loaded, ["runner"], runner_answers=answers)["runner"]
    assert outcome.verdict == "broken"
    assert outcome.detail.startswith("in this process, and through the runner batch")
    example = outcome.counterexample
    assert example is not None
    assert example.rows.num_rows == 1
    assert example.column == "y"
    assert outcome.diagnosis is not None
    same = try_laws(loaded, ["runner"], runner_answers={"online rows": result})["runner"]
    assert same.verdict == "holds"


def test_too_few_answers_of_a_runner_are_refused() -> None:
    loaded = load_handler(FIXTURES / "batch_mean_fixed")
    with Engine(loaded) as engine:
        result = engine.run(example_batch(loaded.inputs, 3))
    with pytest.raises(ConfigError, match="the answers of 'batch' are 3, for 64 rows"):
        try_laws(loaded, ["runner"], runner_answers={"batch": result})


def test_without_runners_or_profiles_the_laws_say_so() -> None:
    outcomes = try_laws(load_handler(FIXTURES / "batch_mean_fixed"), ["runner", "device"])
    assert {outcome.verdict for outcome in outcomes.values()} == {"skipped"}
    assert "no runner was given" in outcomes["runner"].detail
    assert "no other profile was named" in outcomes["device"].detail


def test_the_rows_that_are_chosen_are_those_of_the_laws() -> None:
    assert chosen_rows(3) == [0, 1, 2]
    assert len(chosen_rows(1000)) == 64


class Precise(Handler):
    inputs = Schema(x=Float32(ge=0.0, le=1.0))
    outputs = Schema(y=Float32())

    def initialize(self, context: Context) -> None:
        self.dtype = np.dtype(context.profile.precision)

    def inference(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
        return (inputs["x"].astype(self.dtype) / 3).astype(np.float32)

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"y": outputs}


def test_another_precision_is_judged_by_the_rules_for_the_pair() -> None:
    loaded = LoadedHandler.of(Precise)
    close, far = Profile("wide", precision="float64"), Profile("narrow", precision="float16")
    outcome = try_laws(loaded, ["device"], profiles=[close])["device"]
    assert bool(outcome)
    assert outcome.pairs == 64
    outcome = try_laws(loaded, ["device"], profiles=[close, far])["device"]
    assert outcome.verdict == "broken"
    assert outcome.pairs == 128
    assert outcome.counterexample is not None
    assert "under profile narrow" in outcome.counterexample.how


def test_a_device_that_is_not_there_leaves_the_law_untried() -> None:
    absent = Profile("gpu", device="cuda:99")
    outcome = try_laws(LoadedHandler.of(Precise), ["device"], profiles=[absent])["device"]
    assert outcome.verdict == "unable"
    assert "which is not there" in outcome.detail


def test_runners_after_one_that_crashes_are_heard_too() -> None:
    class Crashing(Rounding):
        name = "crashing"

        def replay(self, handler_ref: str, rows: pa.Table, profile: Profile, **options: Any) -> Result:
            raise RunnerError("runner crashing ended with code 9")

    class Exact(Rounding):
        wire_forms = ("exact",)

    loaded = load_handler(FIXTURES / "batch_mean_fixed")
    found = try_laws(loaded, ["runner"], runners=[Crashing(), Rounding()])["runner"]
    assert found.verdict == "broken"
    assert "through the rounding runner as json" in found.detail
    found = try_laws(loaded, ["runner"], runners=[Crashing(), Exact()])["runner"]
    assert (found.verdict, found.detail) == ("unable", "runner crashing ended with code 9")


_LOGARITHM = """
import numpy as np

from parity import Batch, Float64, Handler, Schema


class Logarithm(Handler):
    inputs = Schema(x=Float64(ge=-10, le=10))
    outputs = Schema(y=Float64())

    def inference(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.log(inputs["x"])

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"y": outputs}
"""


class WithoutNaN(Rounding):
    """A runner that cannot send NaN: it refuses such rows as "json", and makes them zero as "zero"."""

    name = "without-nan"
    wire_forms: tuple[str, ...] = ("json",)
    lost: int | None = None

    def replay(
        self,
        handler_ref: str,
        rows: pa.Table,
        profile: Profile,
        *,
        app_dir: str | None = None,
        wire: str | None = None,
    ) -> Result:
        result = super().replay(handler_ref, rows, profile, app_dir=app_dir, wire="exact")
        values = result.outputs["y"].numpy()
        kept = np.flatnonzero(~np.isnan(values))
        if wire == "zero":
            column = Column(result.outputs["y"].field, numpy=np.nan_to_num(values, nan=0.0, neginf=-np.inf))
            outputs = Batch(result.outputs.schema, {"y": column})
            return Result(result.num_rows, outputs, result.index, result.errors)
        refused = set(range(len(values))) - set(kept.tolist())
        if self.lost is not None and self.lost < len(kept):
            refused.add(int(kept[self.lost]))
            kept = np.delete(kept, self.lost)
        errors = tuple(RowError(row, "failed", "field 'y': JSON has no NaN", "y") for row in sorted(refused))
        return Result(result.num_rows, result.outputs.take(kept), result.index[kept], errors)


@pytest.mark.parametrize(
    ("wire", "lost", "verdict"),
    [("json", None, "holds"), ("json", 3, "broken"), ("zero", None, "broken")],
    ids=["refused", "another row lost", "made zero"],
)
def test_answers_that_are_nan_are_judged_where_a_form_can_carry_them(
    tmp_path: Path, wire: str, lost: int | None, verdict: str
) -> None:
    (tmp_path / "handler.py").write_text(_LOGARITHM, encoding="utf-8")
    runner = WithoutNaN()
    runner.wire_forms, runner.lost = (wire,), lost
    loaded = load_handler(f"{tmp_path / 'handler.py'}:Logarithm")
    assert try_laws(loaded, ["runner"], runners=[runner])["runner"].verdict == verdict
    assert try_laws(loaded, ["wire-form"])["wire-form"].verdict == "holds"
