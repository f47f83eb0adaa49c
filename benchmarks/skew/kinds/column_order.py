"""The features stand in another order than the model was trained with; it takes arrays, and says nothing."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import DEVIATIONS, MEANS, PaymentScorer
from parity import Batch

EXPECTED = Expected(GOLDEN, "preprocess", "score", "column-order")


class Reference(PaymentScorer):
    pass


class Broken(PaymentScorer):
    def preprocess(self, batch: Batch) -> np.ndarray:
        return super().preprocess(batch)[:, [2, 0, 1]]  # in alphabetical order: age, amount, balance


class Twin(PaymentScorer):
    def preprocess(self, batch: Batch) -> np.ndarray:
        named = {name: batch[name].numpy() for name in sorted(batch.schema)}
        features = np.stack([named[name] for name in ("amount", "balance", "age")], axis=1)
        return (features - MEANS) / DEVIATIONS


def rows() -> pa.Table:
    return payments(__name__)
