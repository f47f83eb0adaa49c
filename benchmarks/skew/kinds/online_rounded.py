"""The server rounds answers to three digits."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer
from parity import Batch

EXPECTED = Expected("runner", "postprocess", "score", "rounding")


class Twin(PaymentScorer):
    pass


class Broken(PaymentScorer):
    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        if "uvicorn" in sys.modules:
            return {"score": np.round(outputs, 3)}
        return {"score": outputs}


def rows() -> pa.Table:
    return payments(__name__)
