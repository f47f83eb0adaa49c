"""A numpy scalar goes into JSON: the notebook prints it, the server's encoder raises."""

from __future__ import annotations

import json
import sys

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer
from parity import Batch, Schema, String

EXPECTED = Expected("runner", "postprocess", "_error", "raises")


class Twin(PaymentScorer):
    outputs = Schema(answer=String())

    def encoded(self, score: np.float32) -> str:
        return json.dumps({"score": score.item()})

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"answer": [self.encoded(score) for score in outputs.astype(np.float32)]}


class Broken(Twin):
    def encoded(self, score: np.float32) -> str:
        if "uvicorn" in sys.modules:
            return json.dumps({"score": score})
        return json.dumps({"score": score}, default=float)


def rows() -> pa.Table:
    return payments(__name__)
