"""Answers are views of one buffer: the next batch overwrites those that are still on their way."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer
from parity import Context

EXPECTED = Expected("concurrency", "inference", "score", "stale-buffer")


class Twin(PaymentScorer):
    def initialize(self, context: Context) -> None:
        self.buffer = np.zeros(100_000)

    def given(self, scores: np.ndarray) -> np.ndarray:
        return scores.copy()

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        room = self.buffer[: len(inputs)]
        room[:] = super().inference(inputs)
        return self.given(room)


class Broken(Twin):
    def given(self, scores: np.ndarray) -> np.ndarray:
        return scores


def rows() -> pa.Table:
    return payments(__name__)
