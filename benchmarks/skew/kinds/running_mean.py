"""Features are centred by a mean that every batch moves."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import DEVIATIONS, MEANS, PaymentScorer
from parity import Batch, Context

EXPECTED = Expected("repeatable", "preprocess", "score", "state-kept", fewest=1)


class Twin(PaymentScorer):
    def initialize(self, context: Context) -> None:
        self.means = MEANS

    def learn(self, features: np.ndarray) -> None:
        pass

    def preprocess(self, batch: Batch) -> np.ndarray:
        features = self.features(batch)
        self.learn(features)
        return (features - self.means) / DEVIATIONS


class Broken(Twin):
    def learn(self, features: np.ndarray) -> None:
        self.means = 0.95 * self.means + 0.05 * features.mean(axis=0)


def rows() -> pa.Table:
    return payments(__name__)
