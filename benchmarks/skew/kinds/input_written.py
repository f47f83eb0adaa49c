"""A feature is centred in place, in the memory of the rows themselves."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer
from parity import Batch

EXPECTED = Expected("inputs-untouched", "preprocess", "balance", "input-mutated")


class Twin(PaymentScorer):
    def own(self, values: np.ndarray) -> np.ndarray:
        return values.copy()

    def preprocess(self, batch: Batch) -> np.ndarray:
        balance = self.own(batch["balance"].numpy())
        balance -= 2500.0
        return np.stack([batch["amount"].numpy(), balance, batch["age"].numpy()], axis=1)


class Broken(Twin):
    def own(self, values: np.ndarray) -> np.ndarray:
        return values


def rows() -> pa.Table:
    return payments(__name__)
