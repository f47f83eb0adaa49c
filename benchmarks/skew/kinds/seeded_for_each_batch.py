"""The global generator is seeded for each batch, and row i gets the i-th draw."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer

EXPECTED = Expected("order", "inference", "score", "global-rng", fewest=2)


class Twin(PaymentScorer):
    def noise(self, rows: int) -> np.ndarray:
        return np.random.default_rng(7).normal(size=1)

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return (inputs * self.weights).sum(axis=1) + 0.1 * self.noise(len(inputs))


class Broken(Twin):
    def noise(self, rows: int) -> np.ndarray:
        np.random.seed(7)  # noqa: NPY002 - that is the kind
        return np.random.normal(size=rows)  # noqa: NPY002


def rows() -> pa.Table:
    return payments(__name__)
