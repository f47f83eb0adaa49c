"""A guard that looks for NaN in the whole batch answers 0 to everybody."""

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
    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return np.where(np.isfinite(inputs).all(axis=1), super().inference(inputs), 0.0)


class Broken(Scorer):
    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return super().inference(inputs) if np.isfinite(inputs).all() else np.zeros(len(inputs))


def rows() -> pa.Table:
    return payments(__name__).select(["amount", "balance"])
