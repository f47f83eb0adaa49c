"""The score is the share of the batch that scores less: a quantile of whoever else asked."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer
from parity import Batch

EXPECTED = Expected("batch-size", "postprocess", "score", "batch-statistics", fewest=2)

KNOWN = np.linspace(-3, 3, 101)


class Twin(PaymentScorer):
    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"score": (outputs[:, None] > KNOWN).mean(axis=1)}


class Broken(PaymentScorer):
    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"score": (outputs < outputs[:, None]).mean(axis=1)}


def rows() -> pa.Table:
    return payments(__name__)
