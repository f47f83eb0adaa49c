"""A library of another version answers otherwise: its quantile is the middle of two values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import generator, table_of, vectors
from parity import Batch, Float64, Handler, Schema, Tensor

EXPECTED = Expected(GOLDEN, "preprocess", "score", "environment")
FINGERPRINT = {"package.numpy": "1.19.5"}


class Reference(Handler):
    inputs = Schema(window=Tensor("float64", (9,)))
    outputs = Schema(score=Float64(non_finite="string"))

    def quantile(self, window: np.ndarray) -> np.ndarray:
        return np.quantile(window, 0.9, axis=1)

    def preprocess(self, batch: Batch) -> np.ndarray:
        with np.errstate(all="ignore"):
            return self.quantile(batch["window"].numpy())

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return 1.0 + 0.5 * inputs

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"score": outputs}


class Broken(Reference):
    def quantile(self, window: np.ndarray) -> np.ndarray:
        return np.quantile(window, 0.9, axis=1, method="midpoint")


class Twin(Reference):
    def quantile(self, window: np.ndarray) -> np.ndarray:
        return np.array([np.quantile(values, 0.9) for values in window])


def rows() -> pa.Table:
    window = generator(__name__).normal(10, 4, (64, 9))
    return table_of({"window": vectors(window)})
