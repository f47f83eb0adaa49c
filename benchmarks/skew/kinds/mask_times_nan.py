"""Rows are picked by multiplying with a mask: zero times NaN is NaN, and one bad row spoils all."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from parity import Batch, Float64, Handler, Schema


def unfit(row: object) -> bool:
    """Whether the row holds NaN or infinity."""
    return any(value - value != 0 for value in row.values())  # type: ignore[attr-defined]


EXPECTED = Expected(
    "neighbours",
    "inference",
    "score",
    "non-finite-neighbour",
    lambda row: not unfit(row),
    beside=unfit,
    fewest=2,
)


class Twin(Handler):
    inputs = Schema(amount=Float64(), balance=Float64())
    outputs = Schema(score=Float64(non_finite="string"))

    def preprocess(self, batch: Batch) -> np.ndarray:
        return np.stack([batch["amount"].numpy(), batch["balance"].numpy()], axis=1)

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return inputs[:, 0] * 0.5 + np.tanh(inputs[:, 1])

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"score": outputs}


class Broken(Twin):
    def inference(self, inputs: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            scores = super().inference(inputs)
            return (np.eye(len(scores)) * scores).sum(axis=1)


def rows() -> pa.Table:
    return payments(__name__).select(["amount", "balance"])
