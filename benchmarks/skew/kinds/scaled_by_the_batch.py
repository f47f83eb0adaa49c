"""Features are scaled by the mean and deviation of the batch, not of the training rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer
from parity import Batch

EXPECTED = Expected("batch-size", "preprocess", "score", "batch-statistics", fewest=2)


class Twin(PaymentScorer):
    pass


class Broken(PaymentScorer):
    def preprocess(self, batch: Batch) -> np.ndarray:
        features = self.features(batch)
        return (features - features.mean(axis=0)) / (features.std(axis=0) + 1e-6)


def rows() -> pa.Table:
    return payments(__name__)
