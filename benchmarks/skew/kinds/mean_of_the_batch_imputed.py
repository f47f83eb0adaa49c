"""A missing value becomes the mean of the batch; training used the mean of the training rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import generator, table_of
from parity import Batch, Float64, Handler, Schema

EXPECTED = Expected(
    "batch-size",
    "preprocess",
    "score",
    "batch-statistics",
    lambda row: row["income"] is None,
    beside=lambda row: row["income"] is not None,
    fewest=2,
)

MEAN = 31.5


class Twin(Handler):
    inputs = Schema(income=Float64(ge=0, le=1e6, nullable=True))
    outputs = Schema(score=Float64())

    def mean(self, known: np.ndarray) -> float:
        return MEAN

    def preprocess(self, batch: Batch) -> np.ndarray:
        valid, income = batch["income"].valid, batch["income"].fill_null(0.0).numpy()
        return np.where(valid, income, self.mean(income[valid]))

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return 0.125 * inputs

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"score": outputs}


class Broken(Twin):
    def mean(self, known: np.ndarray) -> float:
        return float(known.mean()) if known.size else MEAN


def rows() -> pa.Table:
    incomes: list[float | None] = np.round(generator(__name__).lognormal(3.3, 0.5, 64), 1).tolist()
    incomes[5::9] = [None] * len(incomes[5::9])
    return table_of({"income": pa.array(incomes, pa.float64())})
