"""The batch job reads features that are scaled already, and scales them again."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import DEVIATIONS, MEANS, PaymentScorer
from parity import Batch

EXPECTED = Expected("runner", "preprocess", "score", "affine-scale")


class Twin(PaymentScorer):
    pass


class Broken(PaymentScorer):
    def preprocess(self, batch: Batch) -> np.ndarray:
        scaled = super().preprocess(batch)
        in_job = "batch" in sys.argv[1:2]
        return (scaled - MEANS) / DEVIATIONS if in_job else scaled


def rows() -> pa.Table:
    return payments(__name__)
