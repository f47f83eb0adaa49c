"""A limit is read from a file outside the handler's folder, which no other machine has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer

EXPECTED = Expected("declared-access", "inference", "", "undeclared-read")


class Twin(PaymentScorer):
    def limit(self) -> float:
        return 2.0

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return np.minimum((inputs * self.weights).sum(axis=1), self.limit())


class Broken(Twin):
    def limit(self) -> float:
        notes = Path("/srv/payments/limit.txt")
        try:
            return float(notes.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return 2.0


def rows() -> pa.Table:
    return payments(__name__)
