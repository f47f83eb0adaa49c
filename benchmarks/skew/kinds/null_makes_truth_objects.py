"""pandas makes a column of truths objects when a neighbour is null: ~True is then -2."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import generator, table_of
from parity import Batch, Bool, Float32, Handler, Schema

EXPECTED = Expected(
    "batch-size",
    "preprocess",
    "risk",
    "null-promotes-dtype",
    beside=lambda row: row["verified"] is None,
    fewest=2,
)


class Twin(Handler):
    inputs = Schema(verified=Bool(nullable=True))
    outputs = Schema(risk=Float32())

    def doubtful(self, verified: list[bool | None]) -> np.ndarray:
        return np.array([float(value is False) for value in verified], np.float32)

    def preprocess(self, batch: Batch) -> np.ndarray:
        return self.doubtful(batch["verified"].to_pylist())

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return np.float32(0.1) + np.float32(0.3) * inputs

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"risk": outputs}


class Broken(Twin):
    def doubtful(self, verified: list[bool | None]) -> np.ndarray:
        column = pd.DataFrame({"verified": verified})["verified"].fillna(value=True)
        return (~column).to_numpy().astype(np.float32)


def rows() -> pa.Table:
    truths = generator(__name__).integers(0, 2, 64).astype(bool).tolist()
    return table_of({"verified": pa.array([None if row % 16 == 5 else t for row, t in enumerate(truths)])})
