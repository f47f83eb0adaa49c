"""A counter on the handler goes into the answer: the thousandth request gets another price."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer
from parity import Context

EXPECTED = Expected("repeatable", "inference", "score", "state-kept", fewest=1)


class Twin(PaymentScorer):
    def initialize(self, context: Context) -> None:
        self.asked = 0

    def load(self) -> int:
        return 0

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        self.asked += 1
        return (inputs * self.weights).sum(axis=1) + 0.01 * self.load()


class Broken(Twin):
    def load(self) -> int:
        return self.asked


def rows() -> pa.Table:
    return payments(__name__)
