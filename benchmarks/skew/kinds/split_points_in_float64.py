"""A tree grown on float32 is asked in float64: 0.1 is below its split point in one of them only."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import generator, table_of
from parity import Batch, Float32, Float64, Handler, Schema

SPLIT = float(np.float32(0.1))

EXPECTED = Expected(
    GOLDEN,
    "preprocess",
    "risk",
    "recast",
    lambda row: (row["ratio"] < SPLIT) != (np.float32(row["ratio"]) < SPLIT),
)


class Reference(Handler):
    inputs = Schema(ratio=Float64(), age=Float64())
    outputs = Schema(risk=Float32())

    def preprocess(self, batch: Batch) -> np.ndarray:
        return np.stack([batch["ratio"].numpy(), batch["age"].numpy()], axis=1).astype(np.float32)

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        risk = np.where(inputs[:, 0] < SPLIT, 0.25, 0.75)
        return (risk - np.where(inputs[:, 1] < 30, 0.125, 0.0)).astype(np.float32)

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"risk": outputs}


class Broken(Reference):
    def preprocess(self, batch: Batch) -> np.ndarray:
        return np.stack([batch["ratio"].numpy(), batch["age"].numpy()], axis=1)


class Twin(Reference):
    def preprocess(self, batch: Batch) -> np.ndarray:
        return np.stack([batch[name].numpy().astype(np.float32) for name in ("ratio", "age")], axis=1)


def rows() -> pa.Table:
    rng = generator(__name__)
    ratios = np.round(rng.uniform(0, 0.3, 64), 3)
    ratios[::9] = 0.1
    return table_of({"ratio": ratios, "age": rng.integers(18, 90, 64).astype(np.float64)})
