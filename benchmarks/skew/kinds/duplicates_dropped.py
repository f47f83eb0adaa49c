"""Equal rows are scored once, and the answers come back in sorted order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import generator, table_of
from parity import Batch, Float64, Handler, Int64, Schema

EXPECTED = Expected("order", "postprocess", "score", "row-order", fewest=2)


class Twin(Handler):
    inputs = Schema(item=Int64(ge=0, le=10**9))
    outputs = Schema(score=Float64())

    def preprocess(self, batch: Batch) -> np.ndarray:
        return batch["item"].numpy()

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return np.sqrt(inputs.astype(np.float64))

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        distinct, places = np.unique(outputs, return_inverse=True)
        return {"score": distinct[places]}


class Broken(Twin):
    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        distinct, counts = np.unique(outputs, return_counts=True)
        return {"score": np.repeat(distinct, counts)}


def rows() -> pa.Table:
    return table_of({"item": generator(__name__).integers(1, 100000, 64)})
