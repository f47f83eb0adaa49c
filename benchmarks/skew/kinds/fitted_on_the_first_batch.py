"""The scaler is fitted on the first batch that comes, and kept."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import DEVIATIONS, MEANS, PaymentScorer
from parity import Batch, Context

EXPECTED = Expected("history", "preprocess", "score", "state-kept")


class Twin(PaymentScorer):
    def initialize(self, context: Context) -> None:
        self.means: np.ndarray | None = None

    def fitted(self, features: np.ndarray) -> np.ndarray:
        return MEANS

    def preprocess(self, batch: Batch) -> np.ndarray:
        features = self.features(batch)
        if self.means is None:
            self.means = self.fitted(features)
        return (features - self.means) / DEVIATIONS


class Broken(Twin):
    def fitted(self, features: np.ndarray) -> np.ndarray:
        return features.mean(axis=0)


def rows() -> pa.Table:
    return payments(__name__)
