"""A mean over everything, the batch included: each row's loss is divided by the number of rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer

EXPECTED = Expected("batch-size", "inference", "score", "batch-length", fewest=2)


class Twin(PaymentScorer):
    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return (inputs**2).sum(axis=1) / inputs.shape[1]


class Broken(PaymentScorer):
    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return (inputs**2).sum(axis=1) / inputs.size


def rows() -> pa.Table:
    return payments(__name__)
