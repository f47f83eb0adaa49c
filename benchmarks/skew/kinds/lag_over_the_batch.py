"""The change since the row before is a feature, and the row before is whoever asked before."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import DEVIATIONS, MEANS, PaymentScorer
from parity import Batch

EXPECTED = Expected("order", "preprocess", "score", "previous-row", fewest=2)


class Twin(PaymentScorer):
    def before(self, balance: np.ndarray) -> np.ndarray:
        return np.full(len(balance), MEANS[1])

    def preprocess(self, batch: Batch) -> np.ndarray:
        features = self.features(batch)
        features[:, 1] = features[:, 1] - self.before(features[:, 1]) + MEANS[1]
        return (features - MEANS) / DEVIATIONS


class Broken(Twin):
    def before(self, balance: np.ndarray) -> np.ndarray:
        return np.concatenate([[MEANS[1]], balance[:-1]])


def rows() -> pa.Table:
    return payments(__name__)
