"""The answer is a percentage on one side and a fraction on the other."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer
from parity import Batch

EXPECTED = Expected(GOLDEN, "postprocess", "score", "affine-scale")


class Reference(PaymentScorer):
    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"score": 1 / (1 + np.exp(-np.clip(outputs, -50, 50)))}


class Broken(PaymentScorer):
    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"score": 100 / (1 + np.exp(-np.clip(outputs, -50, 50)))}


class Twin(PaymentScorer):
    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        odds = np.exp(np.clip(outputs, -50, 50))
        return {"score": odds / (1 + odds)}


def rows() -> pa.Table:
    return payments(__name__)
