"""Answers are put to the rows one place too late: each row gets its neighbour's."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer
from parity import Batch

EXPECTED = Expected("order", "postprocess", "score", "row-shift", fewest=3)


class Twin(PaymentScorer):
    pass


class Broken(PaymentScorer):
    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"score": np.roll(outputs, 1)}


def rows() -> pa.Table:
    return payments(__name__)
