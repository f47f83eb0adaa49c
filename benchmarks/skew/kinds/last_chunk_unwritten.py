"""Rows are scored in chunks into an array of zeros, and the last, ragged chunk is never written."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer

EXPECTED = Expected("batch-size", "inference", "score", "ragged-last-batch")

CHUNK = 8


class Twin(PaymentScorer):
    def chunks(self, rows: int) -> range:
        return range(0, rows, CHUNK)

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        scores = np.zeros(len(inputs))
        for at in self.chunks(len(inputs)):
            scores[at : at + CHUNK] = super().inference(inputs[at : at + CHUNK])
        return scores


class Broken(Twin):
    def chunks(self, rows: int) -> range:
        return range(0, rows - rows % CHUNK, CHUNK)


def rows() -> pa.Table:
    return payments(__name__)
