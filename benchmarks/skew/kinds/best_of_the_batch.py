"""The ten best are taken of the whole batch and not of each row's candidates."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer
from parity import Batch, Int64, Schema

EXPECTED = Expected("batch-size", "postprocess", "offers", "batch-statistics", fewest=2)

OFFERS = np.array([[0.7, -0.4, 0.2], [-0.3, 0.8, 0.1], [0.2, 0.1, -0.9], [0.5, 0.5, 0.1], [-0.6, 0.3, 0.4]])


class Twin(PaymentScorer):
    outputs = Schema(offers=Int64())

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return (inputs[:, None, :] * OFFERS).sum(axis=2)

    def kept(self, scores: np.ndarray) -> np.ndarray:
        return np.sort(scores, axis=1)[:, -3:-2]

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"offers": (outputs >= self.kept(outputs)).sum(axis=1) * 100 + outputs.argmax(axis=1)}


class Broken(Twin):
    def kept(self, scores: np.ndarray) -> np.ndarray:
        return np.sort(scores.ravel())[-3]


def rows() -> pa.Table:
    return payments(__name__)
