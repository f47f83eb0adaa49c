"""squeeze() makes the answers of one row a number where a list was meant, and the row fails."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer
from parity import Batch

EXPECTED = Expected("single-row", "postprocess", "_error", "squeezed-axis")


class Twin(PaymentScorer):
    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return super().inference(inputs)[:, None]

    def flat(self, outputs: np.ndarray) -> np.ndarray:
        return outputs.squeeze(axis=1)

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"score": self.flat(outputs)}


class Broken(Twin):
    def flat(self, outputs: np.ndarray) -> np.ndarray:
        return outputs.squeeze()


def rows() -> pa.Table:
    return payments(__name__)
