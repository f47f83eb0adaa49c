"""Noise is drawn from a generator that is seeded with the number of rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer

EXPECTED = Expected("batch-size", "inference", "score", "batch-length", fewest=2)


class Twin(PaymentScorer):
    def seed(self, rows: int) -> int:
        return 17

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        dropped = np.random.default_rng(self.seed(len(inputs))).normal(1.0, 0.2, inputs.shape[1])
        return (inputs * dropped * self.weights).sum(axis=1)


class Broken(Twin):
    def seed(self, rows: int) -> int:
        return rows


def rows() -> pa.Table:
    return payments(__name__)
