"""Clean: -0.0 on one side and 0.0 on the other."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.natural_rows import generator, table_of
from parity import Batch, Float64, Handler, Schema


class Reference(Handler):
    inputs = Schema(change=Float64(ge=-1e6, le=1e6))
    outputs = Schema(change=Float64())

    def preprocess(self, batch: Batch) -> np.ndarray:
        return np.trunc(batch["change"].numpy() / 10)

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"change": outputs}


class Twin(Reference):
    def preprocess(self, batch: Batch) -> np.ndarray:
        return np.trunc(batch["change"].numpy() / 10) + 0.0


def rows() -> pa.Table:
    return table_of({"change": np.round(generator(__name__).normal(0, 20, 64), 1)})
