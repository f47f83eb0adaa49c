"""Noise is drawn from the global generator, which was seeded once: every request moves it on."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer

EXPECTED = Expected("repeatable", "inference", "score", "global-rng", fewest=1)


class Twin(PaymentScorer):
    def noise(self) -> float:
        return float(np.random.default_rng(7).normal())

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return (inputs * self.weights).sum(axis=1) + 0.1 * self.noise()


class Broken(Twin):
    def noise(self) -> float:
        return float(np.random.normal())  # noqa: NPY002 - that is the kind


def rows() -> pa.Table:
    return payments(__name__)
