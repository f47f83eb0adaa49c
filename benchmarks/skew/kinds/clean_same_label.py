"""Clean: the same label while scores differ by a millionth, under a rule for labels."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer
from parity import Batch, Float64, Int64, Schema

TOLERANCE = {"margin": {"kind": "close", "atol": 1e-5}, "label": {"kind": "label"}}


class Reference(PaymentScorer):
    outputs = Schema(label=Int64(), margin=Float64())

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"label": (outputs > 0).astype(np.int64), "margin": np.abs(outputs)}


class Twin(Reference):
    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return super().postprocess(outputs + 1e-6, batch)


def rows() -> pa.Table:
    return payments(__name__)
