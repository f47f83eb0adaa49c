"""A guard divides by the largest score when it is beyond a limit, and the largest may be NaN."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.kinds.mask_times_nan import Twin as Scorer
from benchmarks.skew.kinds.mask_times_nan import unfit
from benchmarks.skew.natural_rows import payments

EXPECTED = Expected(
    "neighbours",
    "inference",
    "score",
    "non-finite-neighbour",
    lambda row: not unfit(row),
    beside=unfit,
    fewest=2,
)


class Twin(Scorer):
    pass


class Broken(Scorer):
    def inference(self, inputs: np.ndarray) -> np.ndarray:
        scores = super().inference(inputs)
        with np.errstate(all="ignore"):
            return scores / np.maximum(1.0, np.abs(scores).max() / 1e308)


def rows() -> pa.Table:
    return payments(__name__).select(["amount", "balance"])
