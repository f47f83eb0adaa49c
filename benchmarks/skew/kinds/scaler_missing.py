"""The scaler is applied on one side only."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import DEVIATIONS, MEANS, PaymentScorer
from parity import Batch

EXPECTED = Expected(GOLDEN, "preprocess", "score", "affine-scale")


class Reference(PaymentScorer):
    pass


class Broken(PaymentScorer):
    def preprocess(self, batch: Batch) -> np.ndarray:
        return self.features(batch)


class Twin(PaymentScorer):
    def preprocess(self, batch: Batch) -> np.ndarray:
        features = self.features(batch)
        return np.stack([(features[:, at] - MEANS[at]) / DEVIATIONS[at] for at in range(3)], axis=1)


def rows() -> pa.Table:
    return payments(__name__)
