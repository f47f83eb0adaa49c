"""One side flushes denormal numbers to zero; their logarithm is then minus infinity."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import generator, table_of
from parity import Batch, Float32, Handler, Schema

SMALLEST = float(np.finfo(np.float32).tiny)

EXPECTED = Expected(
    GOLDEN, "preprocess", "score", "denormals", lambda row: 0 < abs(row["likelihood"]) < SMALLEST
)


class Reference(Handler):
    inputs = Schema(likelihood=Float32(ge=0, le=1))
    outputs = Schema(score=Float32(non_finite="string"))

    def preprocess(self, batch: Batch) -> np.ndarray:
        return batch["likelihood"].numpy()

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(inputs.astype(np.float64))

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"score": outputs.astype(np.float32)}


class Broken(Reference):
    def preprocess(self, batch: Batch) -> np.ndarray:
        likelihood = batch["likelihood"].numpy()
        return np.where(np.abs(likelihood) < np.float32(SMALLEST), np.float32(0), likelihood)


class Twin(Reference):
    def preprocess(self, batch: Batch) -> np.ndarray:
        return batch["likelihood"].numpy() * np.float32(1)


def rows() -> pa.Table:
    rng = generator(__name__)
    likelihood = rng.uniform(0.001, 1, 64)
    likelihood[4::16] = rng.uniform(1e-42, 1e-39, 4)
    return table_of({"likelihood": likelihood.astype(np.float32)})
