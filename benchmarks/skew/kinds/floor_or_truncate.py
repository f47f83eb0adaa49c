"""-7 // 2 is -4 in Python and -3 in C: negative numbers fall into another bin."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import generator, table_of
from parity import Batch, Float64, Handler, Int64, Schema

EXPECTED = Expected(
    GOLDEN, "preprocess", "score", "rounding", lambda row: row["change"] < 0 and row["change"] % 10 != 0
)


class Reference(Handler):
    inputs = Schema(change=Int64(ge=-1000000, le=1000000))
    outputs = Schema(score=Float64())

    def preprocess(self, batch: Batch) -> np.ndarray:
        return batch["change"].numpy() // 10

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return 0.5 * inputs

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"score": outputs}


class Broken(Reference):
    def preprocess(self, batch: Batch) -> np.ndarray:
        return np.trunc(batch["change"].numpy() / 10).astype(np.int64)


class Twin(Reference):
    def preprocess(self, batch: Batch) -> np.ndarray:
        return np.floor(batch["change"].numpy() / 10).astype(np.int64)


def rows() -> pa.Table:
    return table_of({"change": generator(__name__).integers(-60, 240, 64)})
