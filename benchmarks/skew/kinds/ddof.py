"""The deviation of a window is of a sample (n - 1) on one side and of a population (n) on the other."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import generator, table_of, vectors
from parity import Batch, Float64, Handler, Schema, Tensor

EXPECTED = Expected(GOLDEN, "preprocess", "risk", "ddof")


class Reference(Handler):
    inputs = Schema(returns=Tensor("float64", (12,)))
    outputs = Schema(risk=Float64(non_finite="string"))

    def deviation(self, returns: np.ndarray) -> np.ndarray:
        return returns.std(axis=1, ddof=1)

    def preprocess(self, batch: Batch) -> np.ndarray:
        returns = batch["returns"].numpy()
        with np.errstate(all="ignore"):
            return np.stack([returns.mean(axis=1), self.deviation(returns)], axis=1)

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return 2 * inputs[:, 1] - 0.5 * inputs[:, 0]

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"risk": outputs}


class Broken(Reference):
    def deviation(self, returns: np.ndarray) -> np.ndarray:
        return returns.std(axis=1)


class Twin(Reference):
    def deviation(self, returns: np.ndarray) -> np.ndarray:
        return np.sqrt(((returns - returns.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) / 11)


def rows() -> pa.Table:
    returns = generator(__name__).normal(0.01, 0.05, (64, 12))
    return table_of({"returns": vectors(returns)})
