"""Large batches are run in half precision, small ones are not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer
from parity import Batch

EXPECTED = Expected("batch-size", "preprocess", "score", "recast", fewest=16)


class Twin(PaymentScorer):
    pass


class Broken(PaymentScorer):
    def preprocess(self, batch: Batch) -> np.ndarray:
        features = super().preprocess(batch)
        return features.astype(np.float16).astype(np.float64) if len(batch) >= 16 else features


def rows() -> pa.Table:
    return payments(__name__)
