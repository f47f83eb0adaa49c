"""The loader drops the last, ragged batch: its rows get no answer."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer

EXPECTED = Expected("batch-size", "inference", "_error", "ragged-last-batch")

CHUNK = 4


class Twin(PaymentScorer):
    def inference(self, inputs: np.ndarray) -> np.ndarray:
        starts = range(0, len(inputs), CHUNK)
        return np.concatenate([super(Twin, self).inference(inputs[at : at + CHUNK]) for at in starts])


class Broken(PaymentScorer):
    def inference(self, inputs: np.ndarray) -> np.ndarray:
        starts = range(0, len(inputs) - CHUNK + 1, CHUNK)
        found = [super(Broken, self).inference(inputs[at : at + CHUNK]) for at in starts]
        return np.concatenate(found) if found else np.empty(0)


def rows() -> pa.Table:
    return payments(__name__)
