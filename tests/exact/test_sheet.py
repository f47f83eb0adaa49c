"""What counts as the same bits, and how large a difference is."""

from __future__ import annotations

import logging
import math
from typing import Any

import numpy as np
import pytest
import torch

from parity import (
    Batch,
    BFloat16,
    Engine,
    Float32,
    Handler,
    Int64,
    List,
    Profile,
    Schema,
    String,
    Tensor,
)
from parity.codec.rows import RowDecoder
from parity.exact.sheet import Sheet, run_sheet


class Echo(Handler):
    """Answer what was asked; -1 fails."""

    inputs = Schema(x=Float32(nullable=True), n=Int64(default=0))
    outputs = Schema(
        x=Float32(nullable=True, non_finite="string"), word=String(), many=List(Int64()), half=BFloat16()
    )

    def preprocess(self, batch: Batch) -> dict[str, Any]:
        if (batch["n"].numpy() < 0).any():
            raise ValueError("negative")
        return {"n": batch["n"].numpy()}

    def inference(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return {"twice": torch.from_numpy(inputs["n"].copy()) * 2, "batch size": len(inputs["n"])}

    def postprocess(self, outputs: dict[str, Any], batch: Batch) -> dict[str, object]:
        numbers = outputs["twice"].tolist()
        return {
            "x": batch["x"].to_pylist(),
            "word": [f"{number}é" for number in numbers],
            "many": [[number] * (number % 3) for number in numbers],
            "half": torch.tensor(numbers, dtype=torch.bfloat16),
        }


def sheet(*rows: dict[str, Any], bucket: int = 4) -> Sheet:
    decoded = RowDecoder(Echo.inputs).decode(list(rows))
    assert not decoded.errors
    with Engine(Echo) as engine:
        before = engine.profile
        found = run_sheet(engine, decoded.batch, bucket)
        assert engine.profile is before
    return found


def test_a_row_is_the_same_wherever_it_stands_and_what_is_no_row_is_not_judged() -> None:
    one = sheet({"x": 1.5, "n": 4}, {"x": 2.5, "n": 7})
    other = sheet({"x": 9.0, "n": 9}, {"x": 2.5, "n": 7}, {"x": 1.5, "n": 4}, bucket=8)
    assert one.first_difference(0, other, 2) is None
    assert one.first_difference(1, other, 1) is None
    assert one.digest(0, one.leaves) == other.digest(2, one.leaves)
    assert set(one.leaves) == {
        "preprocess value['n']",
        "inference value['twice']",
        *(f"postprocess {name}" for name in ("x", "word", "many", "half")),
    }


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ({"x": "NaN"}, {"x": "NaN"}, True),
        ({"x": 0.0}, {"x": -0.0}, False),
        ({"x": None}, {"x": 0.0}, False),
        ({"x": None}, {"x": None}, True),
        ({"x": 1.0, "n": 1}, {"x": 1.0, "n": 4}, False),
        ({"x": 1.0, "n": -1}, {"x": 1.0, "n": 1}, False),
        ({"x": 1.0, "n": -1}, {"x": 2.0, "n": -1}, True),
    ],
)
def test_bits_decide(left: dict[str, Any], right: dict[str, Any], same: bool) -> None:
    one, other = sheet(left), sheet(right)
    assert (one.first_difference(0, other, 0) is None) is same
    paths = [path for path in one.leaves if not path.startswith("preprocess")]
    assert (one.digest(0, paths) == other.digest(0, paths)) is same


def test_nan_payloads_are_alike() -> None:
    quiet = np.array([np.nan], np.float32)
    loud = quiet.copy()
    loud.view(np.uint32)[0] |= 1
    leaves = []
    for values in (quiet, loud):

        class Payload(Handler):
            inputs = Schema(x=Float32())
            outputs = Schema(y=Float32(non_finite="string"))
            kept = values

            def postprocess(self, outputs: object, batch: Batch) -> dict[str, object]:
                return {"y": np.repeat(self.kept, batch.num_rows)}

        batch = RowDecoder(Payload.inputs).decode([{"x": 1.0}]).batch
        with Engine(Payload) as engine:
            leaves.append(run_sheet(engine, batch, 1))
    assert leaves[0].first_difference(0, leaves[1], 0) is None


def test_a_difference_is_measured_at_the_scale_of_its_column() -> None:
    rows = [{"x": value} for value in (8.0, 1.0, 8.0, 8.0)]
    moved = [dict(row) for row in rows]
    moved[1]["x"] = float(np.nextafter(np.float32(8), np.float32(9)) - np.float32(7))
    assert sheet(*rows).ulp(1, sheet(*moved), 1) == 1.0
    assert sheet(*rows).ulp(0, sheet(*moved), 0) == 0.0


def test_what_is_no_float_or_an_error_is_infinitely_far() -> None:
    assert sheet({"x": 1.0, "n": 1}).ulp(0, sheet({"x": 1.0, "n": 2}), 0) == math.inf
    assert sheet({"x": 1.0, "n": 1}).ulp(0, sheet({"x": 1.0, "n": -2}), 0) == math.inf
    assert sheet({"x": 1.0}).ulp(0, sheet({"x": "Infinity"}), 0) == math.inf


def test_sheets_are_put_together_row_after_row() -> None:
    one, other = sheet({"x": 1.0, "n": 3}), sheet({"x": 2.0, "n": -1})
    both = Sheet.concat([one, other])
    assert both.num_rows == 2
    assert both.errors == ("", "failed ValueError")
    assert both.first_difference(0, one, 0) is None
    assert both.first_difference(1, other, 0) is None
    assert "negative" in both.reason


def test_rows_that_fail_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "parity.engine"):
        assert sheet({"x": 1.0, "n": -1}).errors == ("failed ValueError",)
    assert not caplog.records


def test_the_shape_that_inference_saw_is_told_in_words() -> None:
    class Shapes(Handler):
        inputs = Schema(x=Tensor("float32", (2, 3)))
        outputs = Schema(y=Float32())

        def postprocess(self, outputs: dict[str, Any], batch: Batch) -> dict[str, object]:
            return {"y": outputs["x"][:, 0, 0]}

    batch = RowDecoder(Shapes.inputs).decode([{"x": [[1, 2, 3], [4, 5, 6]]}]).batch
    with Engine(Shapes, Profile(buckets=(2,))) as engine:
        assert run_sheet(engine, batch, 4).shape == "2x3"
        assert engine.profile.buckets == (2,)
    assert sheet({"x": 1.0}).shape == ""


class Large(Echo):
    """Runs out of memory at the larger bucket."""

    def inference(self, inputs: dict[str, Any]) -> dict[str, Any]:
        if len(inputs["n"]) > 4:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return super().inference(inputs)


def test_a_bucket_that_does_not_fit_is_not_answered_at_another() -> None:
    rows = RowDecoder(Large.inputs).decode([{"x": 1.0, "n": n} for n in range(6)])
    with Engine(Large, Profile(buckets=(4, 8))) as engine:
        found = run_sheet(engine, rows.batch, 8)
        assert engine.run(rows.batch).errors == ()
    assert found.errors == ("failed OutOfMemoryError",) * 6
