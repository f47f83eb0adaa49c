"""The output buffer is sized by the first batch; what a later, larger batch needs beyond it is stale."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer
from parity import Context

EXPECTED = Expected("history", "inference", "score", "stale-buffer")


class Twin(PaymentScorer):
    def initialize(self, context: Context) -> None:
        self.buffer: np.ndarray | None = None

    def room(self, rows: int) -> np.ndarray:
        return np.zeros(rows)

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        scores = super().inference(inputs)
        room = self.room(len(scores))
        room[: len(scores)] = scores[: len(room)]
        return np.resize(room, len(scores)).copy()


class Broken(Twin):
    def room(self, rows: int) -> np.ndarray:
        if self.buffer is None:
            self.buffer = np.zeros(rows)
        return self.buffer


def rows() -> pa.Table:
    return payments(__name__)
