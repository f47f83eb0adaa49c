from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from parity import Batch, Context, Engine, Float32, Float64, Handler, List, Schema, String
from parity.compare import Tolerances
from parity.result import ERROR_COLUMN, ERROR_TYPE
from parity.stages import Traces
from parity.triage import Diagnosis, Divergence, Side, diagnose
from parity.triage.alignment import aligned
from parity.triage.case import Case
from parity.triage.checks import compare_stages
from parity.triage.diagnosing import _examined
from parity.triage.trials import LARGEST, OutOfTimeError, Trials
from tests.triage.divergences import against, asked_again, by_hand, side_of, table_of, taken


class Steps(Handler):
    """Halves, adds one, and rounds; each step can be spoiled."""

    inputs = Schema(x=Float64())
    outputs = Schema(y=Float64())

    def preprocess(self, batch: Batch) -> Any:
        return {"half": batch["x"].numpy() / 2, "same": batch["x"].numpy()}

    def inference(self, inputs: Any) -> Any:
        return inputs["half"] + 1

    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"y": np.round(outputs, 3)}


class OtherPreprocess(Steps):
    def preprocess(self, batch: Batch) -> Any:
        values = super().preprocess(batch)
        return {**values, "half": np.where(batch["x"].numpy() > 3, np.cos(values["half"]), values["half"])}


class OtherInference(Steps):
    def inference(self, inputs: Any) -> Any:
        return np.sin(inputs["half"] * inputs["same"]) + inputs["half"]


class OtherPostprocess(Steps):
    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"y": np.where(batch["x"].numpy() == 2, 17.25, np.round(outputs, 3))}


ROWS = table_of(Steps, [{"x": float(number)} for number in range(6)])


def stages(found: Diagnosis) -> dict[str, str]:
    return {check.stage: check.verdict for check in found.stages}


@pytest.mark.parametrize(
    ("handler", "stage", "place", "rows"),
    [
        (OtherPreprocess, "preprocess", "value['half']", (4, 5)),
        (OtherInference, "inference", "value", (0, 1, 2, 3, 4, 5)),
        (OtherPostprocess, "postprocess", "y", (2,)),
    ],
)
def test_the_first_stage_that_differs_is_named_with_its_place_and_rows(
    handler: type[Handler], stage: str, place: str, rows: tuple[int, ...]
) -> None:
    with against(Steps, handler, ROWS) as (divergence, engine):
        found = diagnose(divergence, engine=engine)
    assert (found.stage, found.place, found.column, found.rows) == (stage, place, "y", rows)
    names = ["decode", "preprocess", "inference", "postprocess", "encode"]
    assert list(stages(found)) == names
    assert {name for name, verdict in stages(found).items() if verdict == "identical"} >= set(
        names[: names.index(stage)]
    )
    assert found.figures["rows differing"] == len(rows)
    json.dumps(found.to_dict(), allow_nan=False)


def test_rows_decoded_to_something_else_are_blamed_on_decode() -> None:
    with Engine(Steps) as engine:
        right = side_of(engine, ROWS, range(6))
        shifted = table_of(Steps, [{"x": number + (0.5 if number == 4 else 0)} for number in range(6)])
        wrong = side_of(engine, shifted, range(6))
    found = diagnose(Divergence("wire-form", ROWS, right, wrong))
    assert (found.stage, found.place, found.rows) == ("decode", "x", (4,))


def test_answers_changed_after_postprocess_are_blamed_on_encode() -> None:
    with Engine(Steps) as engine:
        right = side_of(engine, ROWS, range(6))
    changed = pa.array([1.0, 1.5, 2.0, 2.5, 3.0, 3.25])
    answers = right.answers.set_column(0, right.answers.schema.field(0), changed)
    found = diagnose(Divergence("runner", ROWS, right, Side("sent", answers, right.traces)))
    assert (found.stage, found.place, found.rows) == ("encode", "y", (5,))
    alone = diagnose(
        Divergence("runner", ROWS, Side("recorded", right.answers), Side("sent", answers, right.traces))
    )
    assert (alone.stage, alone.rows) == ("encode", (5,))


def test_without_traces_the_stages_are_unknown_and_the_answers_still_tell() -> None:
    with Engine(Steps) as engine:
        right = side_of(engine, ROWS, range(6)).answers
    values = pa.array([255 * value for value in (1.0, 1.5, 2.0, 2.5, 3.0, 3.5)])
    scaled = right.set_column(0, right.schema.field(0), values)
    found = diagnose(Divergence("golden", ROWS, Side("a", right), Side("b", scaled)))
    assert found.stage is None
    assert set(stages(found).values()) == {"unknown"}
    assert found.column == "y"
    assert found.cause is not None
    assert found.cause.name == "affine-scale"
    assert "1/255" in found.cause.evidence


def test_traces_on_one_side_only_are_unknown_and_say_whose_are_missing() -> None:
    with against(Steps, OtherInference, ROWS) as (divergence, engine):
        expected = Side("recorded", divergence.expected.answers)
        found = diagnose(Divergence("golden", ROWS, expected, divergence.obtained), engine=engine)
    assert found.stage is None
    assert stages(found)["inference"] == "unknown"
    assert "expected side's values were not kept" in found.stages[2].detail


def noise(values: np.ndarray, ulp: int) -> np.ndarray:
    return (values.view(np.int32) + ulp).view(np.float32)


def test_float_noise_is_not_blamed_and_what_grows_after_it_is_said() -> None:
    values = [np.asarray([1.5, 2.5, 100.0], np.float32) + row for row in range(3)]
    noisy = [noise(value, 3) for value in values]
    rows = pa.table({"row": [0, 1, 2]})
    sides: list[Side] = []
    for preprocess, scores in ((values, [1.0, 2.0, 3.0]), (noisy, [1.0, 2.5, 3.0])):
        answers = pa.table({"score": scores, ERROR_COLUMN: pa.nulls(3, ERROR_TYPE)})
        inference = {"value": [np.asarray(score) for score in scores]}
        sides.append(Side("", answers, Traces(rows, {"value": preprocess}, inference, answers)))
    found = diagnose(Divergence("golden", rows, sides[0], sides[1]))
    assert (found.stage, found.rows) == ("inference", (1,))
    assert stages(found)["preprocess"] == "within"
    assert "float noise of" in found.stages[1].detail
    assert "times as much" in found.stages[1].detail


class Threshold(Handler):
    """A step at 0.1: the least difference decides."""

    inputs = Schema(x=Float64())
    outputs = Schema(y=Float64())

    def preprocess(self, batch: Batch) -> Any:
        return batch["x"].numpy()

    def inference(self, inputs: Any) -> Any:
        return np.where(inputs < 0.3, 0.0, 1.0)

    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"y": outputs}


class Summed(Threshold):
    def preprocess(self, batch: Batch) -> Any:
        return np.nextafter(batch["x"].numpy(), np.inf)


class OtherThreshold(Summed):
    def inference(self, inputs: Any) -> Any:
        return np.where(inputs < 0.7, 0.0, 1.0)


def test_a_small_difference_that_a_swap_shows_to_decide_is_blamed_on_the_stage_that_made_it() -> None:
    edge = np.nextafter(0.3, 0.0)
    rows = table_of(Threshold, [{"x": value} for value in (0.05, 0.3, float(edge), 0.5, 0.9)])
    with against(Threshold, Summed, rows) as (divergence, engine):
        assert divergence.expected.answers["y"].to_pylist() != divergence.obtained.answers["y"].to_pylist()
        found = diagnose(divergence, engine=engine)
    assert found.stage == "preprocess"
    assert found.rows == (2,)
    assert "what comes after makes it large" in found.stages[1].detail
    with against(Threshold, OtherThreshold, rows) as (divergence, engine):
        found = diagnose(divergence, engine=engine)
    assert found.stage == "inference"


def test_a_swap_confirms_the_blame_of_a_stage() -> None:
    with against(Steps, OtherPreprocess, ROWS) as (divergence, engine):
        found = diagnose(divergence, engine=engine)
    assert "given the other side's values of this stage" in found.stages[1].detail


class Means(Handler):
    """The mean of a sequence, padded to the longest with zeros, and with a mask."""

    inputs = Schema(items=List(Float64()))
    outputs = Schema(y=Float64())
    masked = False

    def preprocess(self, batch: Batch) -> Any:
        rows = batch["items"].to_pylist()
        longest = max(map(len, rows))
        padded = np.array([[*row, *[0.0] * (longest - len(row))] for row in rows])
        return {"items": padded, "lengths": np.array(list(map(len, rows)))}

    def inference(self, inputs: Any) -> Any:
        return inputs["items"].sum(axis=1) / inputs["items"].shape[1]

    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"y": outputs}


def test_padding_alone_is_no_difference_of_a_stage() -> None:
    batch = table_of(Means, [{"items": [1.0, 2.0]}, {"items": [1.0, 2.0, 3.0, 4.0]}])
    with Engine(Means) as engine:
        alone, together = side_of(engine, batch.slice(0, 1), [0]), side_of(engine, batch, [0])
        found = diagnose(Divergence("batch-size", batch.slice(0, 1), alone, together))
    assert found.stage == "inference"
    assert stages(found)["preprocess"] == "within"
    assert "padded" in found.stages[1].detail


class Refusing(Handler):
    inputs = Schema(text=String())
    outputs = Schema(size=Float32())
    picky = False

    def initialize(self, context: Context) -> None:
        del context

    def preprocess(self, batch: Batch) -> Any:
        texts = batch["text"].to_pylist()
        if self.picky and "" in texts:
            raise ValueError("an empty text")
        return texts

    def inference(self, inputs: Any) -> Any:
        return np.array([len(text) for text in inputs], np.float32)

    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"size": outputs}


class Picky(Refusing):
    picky = True


def test_rows_that_fail_on_one_side_are_blamed_on_the_stage_that_failed() -> None:
    rows = table_of(Refusing, [{"text": "a"}, {"text": ""}, {"text": "bc"}])
    with against(Refusing, Picky, rows) as (divergence, engine):
        found = diagnose(divergence, engine=engine)
    assert (found.stage, found.place, found.column, found.rows) == ("preprocess", "_error", "_error", (1,))
    assert found.cause is not None
    assert found.cause.name == "raises"
    assert "an empty text" in found.cause.evidence


def test_nothing_that_differs_has_no_cause() -> None:
    with asked_again(Steps, ROWS) as (divergence, engine):
        found = diagnose(divergence, engine=engine)
    assert (found.stage, found.cause, found.rows) == (None, None, ())


def test_traces_in_another_order_and_of_changed_rows_are_matched_by_content() -> None:
    rows = pa.table({"a": [1, 2, 3, 4], "b": ["w", "x", "y", "z"]})
    seen = pa.table({"a": [4, 2, 30, 1], "b": ["z", "x", "y", "w"]})
    values = [np.asarray(value) for value in (40, 20, 30, 10)]
    found = aligned(Traces(seen, {"v": values}, {}, seen), rows)
    assert found is not None
    assert [int(value) for value in found.preprocess["v"] if value is not None] == [10, 20, 30, 40]
    assert found.inputs["a"].to_pylist() == [1, 2, 30, 4]
    assert aligned(Traces(taken(rows, [0]), {"v": values[:1]}, {}, taken(rows, [0])), rows) is not None
    assert aligned(Traces(pa.table({"c": [1]}), {}, {}, pa.table({"c": [1]})), rows) is None


def test_a_summary_names_stage_cause_and_evidence() -> None:
    red_first = [np.arange(48.0).reshape(4, 4, 3) + row for row in range(3)]
    found = diagnose(by_hand(red_first, [value[..., ::-1] for value in red_first]))
    assert found.summary() == (
        "first differs in preprocess at value; channel-order: red and blue are swapped (channels [2, 1, 0] "
        "of value on one side equal the other side on 3 of 3 differing rows)"
    )


def test_an_unexplained_difference_says_what_was_ruled_out() -> None:
    rng = np.random.default_rng(0)
    found = diagnose(by_hand(list(rng.normal(size=(5, 4, 4, 3))), list(rng.normal(size=(5, 4, 4, 3)))))
    assert found.cause is None
    names = {item.name for item in found.ruled_out}
    assert {"channel-order", "transpose", "orientation", "affine-scale", "rounding"} <= names
    assert "no known cause explains it (ruled out: " in found.summary()
    assert all(item.why for item in found.ruled_out)


class Rounded(Steps):
    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"y": np.where(batch["x"].numpy() % 700 == 3, np.round(outputs), outputs)}


@pytest.mark.slow
def test_of_very_many_rows_some_are_looked_at_and_all_that_differ_are_named() -> None:
    many = table_of(Steps, [{"x": float(number)} for number in range(3001)])
    with against(Steps, Rounded, many) as (divergence, engine):
        few = diagnose(divergence, engine=engine)
    places = (3, 703, 1403, 2103, 2803)
    assert (few.stage, few.rows, few.stages[3].rows) == ("postprocess", places, places)
    assert few.cause is not None
    assert few.cause.name == "rounding"
    assert (few.figures["rows"], few.figures["rows differing"]) == (3001, 5)
    with against(Steps, OtherInference, many) as (divergence, engine):
        most = diagnose(divergence, engine=engine)
    assert most.stage == "inference"
    assert len(most.rows) > 2900
    json.dumps(most.to_dict(), allow_nan=False)


def test_when_the_time_is_used_up_causes_that_ask_again_are_not_tried() -> None:
    with against(Steps, OtherInference, ROWS) as (divergence, engine):
        compared = compare_stages(divergence, Tolerances())
        late = Case(divergence, compared, Trials(engine, seconds=-1))
        causes, ruled_out, _ = _examined(late)
    assert causes == []
    reasons = {item.name: item.why for item in ruled_out}
    assert reasons["shared-state"] == "not tried: the time for trials is used up"
    assert not reasons["affine-scale"].startswith("not tried")


def test_a_handler_too_large_to_be_loaded_twice_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with against(Steps, OtherInference, ROWS) as (_, engine):
        monkeypatch.setattr(engine, "loaded", replace(engine.loaded, root=tmp_path))
        with (tmp_path / "weights.bin").open("wb") as file:
            file.truncate(LARGEST + 1)
        trials = Trials(engine)
        with pytest.raises(OutOfTimeError, match=r"1\.0 GB are not loaded a second time"), trials.fresh():
            pass


def test_a_diagnosis_leaves_the_global_generators_as_they_were() -> None:
    random.seed(5)
    np.random.seed(5)  # noqa: NPY002 - the global generator is what must stay
    with against(Steps, OtherInference, ROWS) as (divergence, engine):
        random.seed(5)
        np.random.seed(5)  # noqa: NPY002
        diagnose(divergence, engine=engine)
    drawn = random.random(), float(np.random.random())  # noqa: NPY002
    assert drawn == (random.Random(5).random(), float(np.random.RandomState(5).random_sample()))
