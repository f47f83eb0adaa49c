"""The mean over a sequence counts the padding: the answer depends on the longest neighbour."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import generator, table_of
from parity import Batch, Float64, Handler, List, Schema

EXPECTED = Expected(
    "batch-size", "inference", "score", "padding-without-mask", lambda row: bool(row["visits"]), fewest=2
)


class Twin(Handler):
    inputs = Schema(visits=List(Float64(ge=-1e6, le=1e6)))
    outputs = Schema(score=Float64())

    def preprocess(self, batch: Batch) -> dict[str, np.ndarray]:
        visits = batch["visits"].to_pylist()
        longest = max(1, *(len(row) for row in visits))
        padded = np.zeros((len(visits), longest))
        for row, values in enumerate(visits):
            padded[row, : len(values)] = values
        return {"values": padded, "length": np.array([len(row) for row in visits])}

    def counted(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
        return np.maximum(inputs["length"], 1)

    def inference(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
        # One after the other, so that the length does not decide in which order numbers are added.
        total = np.cumsum(inputs["values"], axis=1)[:, -1]
        return total / self.counted(inputs)

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"score": outputs}


class Broken(Twin):
    def counted(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
        return np.full(len(inputs["length"]), inputs["values"].shape[1])


def rows() -> pa.Table:
    rng = generator(__name__)
    visits = [np.round(rng.uniform(1, 60, rng.integers(2, 9)), 1).tolist() for _ in range(64)]
    return table_of({"visits": pa.array(visits, pa.list_(pa.float64()))})
