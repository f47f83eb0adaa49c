"""Clean: the answers are the same, in a dict whose keys stand in another order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer
from parity import Batch, Bool, Float64, Schema, Struct


class Reference(PaymentScorer):
    outputs = Schema(score=Float64(), good=Bool(), parts=Struct(high=Float64(), low=Float64()))

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        parts = [{"high": score + 1, "low": score - 1} for score in outputs.tolist()]
        return {"score": outputs, "good": outputs > 0, "parts": parts}


class Twin(Reference):
    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        parts = [{"low": score - 1, "high": score + 1} for score in outputs.tolist()]
        return {"parts": parts, "good": outputs > 0, "score": outputs}


def rows() -> pa.Table:
    return payments(__name__)
