"""preprocess keeps something on self for postprocess, and another request comes in between."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer
from parity import Batch

EXPECTED = Expected("concurrency", "postprocess", "score", "shared-state")


class Twin(PaymentScorer):
    def remember(self, batch: Batch) -> None:
        pass

    def recalled(self, batch: Batch) -> np.ndarray:
        return batch["age"].numpy()

    def preprocess(self, batch: Batch) -> np.ndarray:
        self.remember(batch)
        return super().preprocess(batch)

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"score": outputs + 0.01 * np.resize(self.recalled(batch), len(outputs))}


class Broken(Twin):
    def remember(self, batch: Batch) -> None:
        self.ages = batch["age"].numpy()

    def recalled(self, batch: Batch) -> np.ndarray:
        return self.ages


def rows() -> pa.Table:
    return payments(__name__)
