from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

from parity import Batch, Float32, Handler, Schema, Tensor
from parity.errors import ConfigError
from parity_notebook import Session, load
from tests.notebook.conftest import PRICES
from tests.notebook.test_markup import read


class Shrink(Handler):
    inputs = Schema(image=Tensor("uint8", (28, 28)))
    outputs = Schema(mean=Float32())

    def preprocess(self, batch: Batch) -> torch.Tensor:
        return batch["image"].torch().to(torch.float32) / 255

    def inference(self, inputs: torch.Tensor) -> torch.Tensor:
        return inputs.mean(dim=(1, 2))

    def postprocess(self, outputs: torch.Tensor, batch: Batch) -> dict[str, Any]:
        return {"mean": outputs}


def test_every_stage_is_there_with_its_values(prices: Session, rows: list[dict[str, Any]]) -> None:
    trace = prices.trace(rows)
    np.testing.assert_array_equal(trace.preprocess["units"], [3.0, 0.0, float(2**53)])
    np.testing.assert_array_equal(trace.inference, [9.0, 0.0, -0.0])
    assert trace.outputs["greeting"].to_pylist()[0] == "hello Ada"
    assert trace.inputs["units"].to_pylist() == [3, None, 2**53 + 1]
    assert trace.index == (0, 1, 2)
    assert trace.buckets == (3, 3, 3)
    assert set(trace.timings) == {"preprocess", "inference", "postprocess"}
    assert trace.errors == ()
    assert "1969-12-31T23:59:00+00:00" in repr(trace)
    price, units = trace.leaves("preprocess")
    assert (price.path, units.path, units.dtype, units.shape) == ("['price']", "['units']", "float64", (3,))


def test_only_the_first_rows_are_run(prices: Session) -> None:
    rows = [{"price": float(row), "units": 1} for row in range(100)]
    assert prices.trace(rows).num_rows == 5
    assert prices.trace(rows, limit=2).inference.tolist() == [0.0, 1.5]
    assert prices.trace(rows[7]).inference.tolist() == [10.5]
    with pytest.raises(ConfigError, match="limit = 0"):
        prices.trace(rows, limit=0)


def test_tracing_changes_no_answer(prices: Session, rows: list[dict[str, Any]]) -> None:
    assert (
        prices.trace(rows).outputs.drop_columns(["_error"]).to_pylist()
        == prices.score(rows).outputs.to_table().to_pylist()
    )


def test_the_padding_is_told_and_not_shown() -> None:
    with load(PRICES, "exact") as session:
        trace = session.trace([{"price": 1.0, "units": 1}] * 3)
        assert trace.buckets == (8, 8, 8)
        assert trace.inference.shape == (3,)
        assert "inference on 8 rows" in repr(trace)
    with load(PRICES, "two") as session:
        assert session.trace([{"price": 1.0, "units": 1}] * 9).num_rows == 2


def test_bad_rows_are_told_and_the_others_are_traced(prices: Session) -> None:
    rows: list[dict[str, Any]] = [
        {"price": "dear", "units": 1},
        {"price": 13.0, "units": 1},
        {"price": 2.0, "units": 1, "name": "reject me"},
        {"price": 3.0, "units": 1},
    ]
    trace = prices.trace(rows)
    assert [(error.row, error.kind) for error in trace.errors] == [
        (0, "invalid"),
        (1, "failed"),
        (2, "rejected"),
    ]
    assert trace.index == (1, 2, 3)
    assert trace.stages[0].rows.tolist() == [2, 3]
    assert trace.inference.tolist() == [3.0, 4.5]
    for text in ("rows without an answer", "thirteen is <unlucky>", "nobody is called that"):
        assert text in repr(trace)
    page = read(trace._repr_html_())
    assert "thirteen is <unlucky>" in page.text
    assert "unlucky" not in page.seen


def test_a_trace_of_bad_rows_only_has_no_stages(prices: Session) -> None:
    trace = prices.trace([{"price": "dear", "units": 1}])
    assert (trace.stages, trace.preprocess, trace.leaves("inference")) == ((), None, ())
    assert "rows without an answer" in repr(trace)
    read(trace._repr_html_())


def test_tensors_are_told_on_one_line() -> None:
    with load(Shrink) as session:
        trace = session.trace([{"image": np.full((28, 28), 51, np.uint8)}])
    text = repr(trace)
    assert "uint8 (28, 28) 51 to 51, mean 51" in text
    words = " ".join(text.split())
    assert "(value) torch.Tensor float32 (1, 28, 28) 0.2 to 0.2, mean 0.2" in words
    assert text.splitlines()[-1].split() == ["0", str(trace.inference.numpy()[0])]  # with float32's digits
    assert trace.inference.shape == (1,)


def test_a_trace_is_frozen(prices: Session, rows: list[dict[str, Any]]) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        prices.trace(rows).handler = "other"  # pyright: ignore[reportAttributeAccessIssue]


def test_hostile_values_stay_text(prices: Session) -> None:
    page = read(
        prices.trace({"price": 1.0, "units": 1, "name": "<img src=x onerror=alert(1)>"})._repr_html_()
    )
    assert "img" not in page.seen
    assert "<img src=x" in page.text
