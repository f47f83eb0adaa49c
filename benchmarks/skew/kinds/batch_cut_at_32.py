"""A batch is cut at 32 rows, the most that was ever tried; the others get the padding's answer."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer

EXPECTED = Expected("batch-size", "inference", "score", "position")

MOST = 32


class Twin(PaymentScorer):
    def inference(self, inputs: np.ndarray) -> np.ndarray:
        pieces = [inputs[at : at + MOST] for at in range(0, len(inputs), MOST)]
        return np.concatenate([super(Twin, self).inference(piece) for piece in pieces])


class Broken(PaymentScorer):
    def inference(self, inputs: np.ndarray) -> np.ndarray:
        scores = super().inference(inputs[:MOST])
        return np.concatenate([scores, np.zeros(len(inputs) - len(scores))])


def rows() -> pa.Table:
    return payments(__name__)
