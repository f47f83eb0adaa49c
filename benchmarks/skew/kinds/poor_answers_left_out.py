"""postprocess leaves out the rows that score too little: fewer answers than rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import DEVIATIONS, MEANS, NAMES, PaymentScorer
from parity import Batch

LEAST = -0.8

EXPECTED = Expected(
    GOLDEN,
    "postprocess",
    "_error",
    "row-count",
    lambda row: (
        sum(
            (row[name] - mean) / deviation * weight
            for name, mean, deviation, weight in zip(
                NAMES, MEANS, DEVIATIONS, PaymentScorer.weights, strict=True
            )
        )
        <= LEAST
    ),
)


class Reference(PaymentScorer):
    pass


class Broken(PaymentScorer):
    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"score": outputs[outputs > LEAST]}


class Twin(PaymentScorer):
    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"score": outputs.tolist()}


def rows() -> pa.Table:
    return payments(__name__)
