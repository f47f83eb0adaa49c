"""A threshold is read from an environment variable, which the other process does not have."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer
from parity import Batch, Bool, Schema

EXPECTED = Expected("declared-access", "postprocess", "", "undeclared-read")


class Twin(PaymentScorer):
    outputs = Schema(alarm=Bool())

    def threshold(self) -> float:
        return 0.5

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"alarm": outputs > self.threshold()}


class Broken(Twin):
    def threshold(self) -> float:
        return float(os.environ.get("PAYMENT_THRESHOLD", "0.5"))


def rows() -> pa.Table:
    return payments(__name__)
