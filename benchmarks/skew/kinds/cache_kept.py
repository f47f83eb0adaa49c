"""Scores are cached for ever under a key that other rows share: an earlier request's score is answered."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer
from parity import Context

EXPECTED = Expected("history", "inference", "score", "state-kept")


class Twin(PaymentScorer):
    def initialize(self, context: Context) -> None:
        self.cache: dict[bytes, float] = {}

    def key(self, row: np.ndarray) -> bytes:
        return row.tobytes()

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        scores = super().inference(inputs)
        return np.array(
            [self.cache.setdefault(self.key(row), score) for row, score in zip(inputs, scores, strict=True)]
        )


class Broken(Twin):
    def key(self, row: np.ndarray) -> bytes:
        return np.round(row, 0).tobytes()


def rows() -> pa.Table:
    return payments(__name__)
