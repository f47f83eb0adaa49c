"""A duration arrives in milliseconds on one side and in seconds on the other."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import generator, table_of
from parity import Batch, Float64, Handler, Int64, Schema

EXPECTED = Expected(GOLDEN, "preprocess", "bored", "affine-scale")


class Reference(Handler):
    inputs = Schema(waited_ms=Int64(ge=0, le=10**9))
    outputs = Schema(bored=Float64())

    def preprocess(self, batch: Batch) -> np.ndarray:
        return batch["waited_ms"].numpy() / 1000.0

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return np.log1p(inputs)

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"bored": outputs}


class Broken(Reference):
    def preprocess(self, batch: Batch) -> np.ndarray:
        return batch["waited_ms"].numpy().astype(np.float64)


class Twin(Reference):
    def preprocess(self, batch: Batch) -> np.ndarray:
        return np.array([waited / 1000 for waited in batch["waited_ms"].to_pylist()])


def rows() -> pa.Table:
    return table_of({"waited_ms": generator(__name__).integers(20, 90000, 64)})
