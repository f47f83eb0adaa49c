"""Softmax over the wrong axis: over the batch. A batch of one always answers 1."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer
from parity import Batch, Schema, Tensor

EXPECTED = Expected("batch-size", "inference", "classes", "batch-statistics", fewest=2)

MATRIX = np.array([[0.7, -0.4, 0.2], [-0.3, 0.8, 0.1], [0.2, 0.1, -0.9]])


class Twin(PaymentScorer):
    outputs = Schema(classes=Tensor("float64", (3,)))
    axis = 1

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        logits = (inputs[:, None, :] * MATRIX).sum(axis=2)
        powers = np.exp(logits - logits.max(axis=self.axis, keepdims=True))
        return powers / powers.sum(axis=self.axis, keepdims=True)

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"classes": outputs}


class Broken(Twin):
    axis = 0


def rows() -> pa.Table:
    return payments(__name__)
