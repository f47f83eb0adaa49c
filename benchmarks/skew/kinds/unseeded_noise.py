"""Noise is drawn from a generator that nobody seeds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer

EXPECTED = Expected("repeatable", "inference", "score", "unseeded-rng", fewest=1)


class Twin(PaymentScorer):
    def noise(self) -> np.random.Generator:
        return np.random.default_rng(7)

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return (inputs * self.weights).sum(axis=1) + 0.1 * self.noise().normal()


class Broken(Twin):
    def noise(self) -> np.random.Generator:
        return np.random.default_rng()


def rows() -> pa.Table:
    return payments(__name__)
