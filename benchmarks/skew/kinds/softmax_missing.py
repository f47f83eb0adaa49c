"""One side answers logits, the other probabilities."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer
from parity import Batch, Schema, Tensor

EXPECTED = Expected(GOLDEN, "inference", "classes", "softmax-missing")

MATRIX = np.array([[0.7, -0.4, 0.2], [-0.3, 0.8, 0.1], [0.2, 0.1, -0.9], [0.4, 0.4, 0.4]])


class Reference(PaymentScorer):
    outputs = Schema(classes=Tensor("float64", (4,)))

    def logits(self, inputs: np.ndarray) -> np.ndarray:
        return (inputs[:, None, :] * MATRIX).sum(axis=2)

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        logits = self.logits(inputs)
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"classes": outputs}


class Broken(Reference):
    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return self.logits(inputs)


class Twin(Reference):
    def inference(self, inputs: np.ndarray) -> np.ndarray:
        logits = self.logits(inputs)
        most = logits.max(axis=1, keepdims=True)
        return np.exp(logits - most - np.log(np.exp(logits - most).sum(axis=1, keepdims=True)))


def rows() -> pa.Table:
    return payments(__name__)
