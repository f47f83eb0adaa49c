"""A batch that a device's memory does not hold is tried once more in fewer rows, and then fails by name."""

from __future__ import annotations

import gc
import weakref
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from parity import Batch, Engine, Handler, Int64, Profile, Schema
from parity.column import Column
from parity.result import Result

INPUTS = Schema(x=Int64())


class Hungry(Handler):
    """Doubles x in at most `most` rows at once; 13 is refused, and 77 fails by itself."""

    inputs = INPUTS
    outputs = Schema(y=Int64())
    most: ClassVar[int] = 4
    stage: ClassVar[str] = "inference"
    seen: ClassVar[list[int]] = []
    held: ClassVar[list[Any]] = []

    def preprocess(self, batch: Batch) -> Any:
        x = batch["x"].numpy()
        for row in np.flatnonzero(x == 13):
            batch.reject(int(row), "13 brings bad luck")
        return self.at("preprocess", x)

    def inference(self, inputs: Any) -> Any:
        self.seen.append(len(inputs))
        if (inputs == 77).any():
            raise ValueError("77")
        return self.at("inference", inputs) * 2

    def postprocess(self, outputs: Any, batch: Batch) -> Any:
        return {"y": self.at("postprocess", outputs)}

    def at(self, stage: str, x: Any) -> Any:
        activations = torch.zeros(3)
        self.held.append(weakref.ref(activations))
        if stage == self.stage and len(x) > self.most:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return x


@pytest.fixture(autouse=True)
def fresh() -> None:
    Hungry.seen.clear()
    Hungry.held.clear()


def run(
    values: list[int], monkeypatch: pytest.MonkeyPatch, *, most: int, stage: str = "inference", **kwargs: Any
) -> Result:
    monkeypatch.setattr(Hungry, "most", most)
    monkeypatch.setattr(Hungry, "stage", stage)
    with Engine(Hungry, Profile(**kwargs)) as engine:
        return engine.run(Batch(INPUTS, {"x": Column(INPUTS["x"], numpy=np.array(values))}))


def answers(result: Result) -> dict[int, int]:
    return dict(zip(result.index.tolist(), result.outputs["y"].to_pylist(), strict=True))


@pytest.mark.parametrize("stage", ["preprocess", "inference", "postprocess"])
def test_halves_that_fit_give_all_answers(
    stage: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    result = run(list(range(7)), monkeypatch, most=4, stage=stage)
    assert answers(result) == {row: 2 * row for row in range(7)}
    assert not result.errors
    (record,) = caplog.records
    assert f"event=out_of_memory handler=hungry stage={stage} device=cpu rows=7 again=4" in record.message


def test_the_next_smaller_bucket_is_taken_and_no_other_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(list(range(100, 130)), monkeypatch, most=8, buckets=(2, 8, 32))
    assert answers(result) == {row: 200 + 2 * row for row in range(30)}
    assert Hungry.seen == [32, 8, 8, 8, 8]
    assert set(result.buckets.tolist()) == {8}


def test_a_batch_is_split_once_and_then_fails_with_what_was_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(list(range(100, 116)), monkeypatch, most=2)
    assert Hungry.seen == [16, 8, 8]
    assert len(result.errors) == 16
    assert result.errors[0].message == (
        "handler hungry: inference ran out of memory on cpu with rows at once: 16, then 8; give the profile "
        "buckets = [N], or free memory on the device: CUDA out of memory. Tried to allocate 2.00 GiB."
    )
    assert {(error.kind, error.stage, error.type) for error in result.errors} == {
        ("failed", "inference", "OutOfMemoryError")
    }


def test_without_a_smaller_shape_nothing_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run([1, 2], monkeypatch, most=8, buckets=(32,))
    assert Hungry.seen == [32]
    assert "on cpu with rows at once: 32; give the profile a smaller bucket" in result.errors[0].message
    assert (
        run([1], monkeypatch, most=0)
        .errors[0]
        .message.startswith("handler hungry: inference ran out of memory on cpu with rows at once: 1; give")
    )


def test_other_rows_of_the_batch_keep_their_own_fate(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [1, 13, 3, 4, 5, 6, 7, 77]
    result = run(values, monkeypatch, most=4)
    assert answers(result) == {row: 2 * values[row] for row in (0, 2, 3, 4, 5, 6)}
    assert [(error.row, error.kind) for error in result.errors] == [(1, "rejected"), (7, "failed")]
    assert "77" in result.errors[1].message
    lost = run(values, monkeypatch, most=1)
    assert [(error.row, error.kind) for error in lost.errors][1] == (1, "rejected")


def test_what_the_failed_stage_held_is_let_go_before_it_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alive: list[bool] = []
    inference = Hungry.inference

    def watched(self: Hungry, x: Any) -> Any:
        alive.append(any(held() is not None for held in self.held))
        self.held.clear()
        return inference(self, x)

    monkeypatch.setattr(Hungry, "inference", watched)
    gc.disable()
    try:
        run([1, 2, 3, 4, 5, 6], monkeypatch, most=3)
    finally:
        gc.enable()
    assert alive == [False, False, False]


@pytest.mark.gpu
def test_a_real_devices_memory_that_runs_out_is_taken_so() -> None:
    from parity.out_of_memory import is_out_of_memory

    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
    assert is_out_of_memory(caught.value)
