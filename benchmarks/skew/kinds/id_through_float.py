"""An id beyond 2^53 passes through a float and becomes its neighbour's: another row of the embedding."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import generator, table_of
from parity import Batch, Float32, Handler, Int64, Schema

EXPECTED = Expected(
    GOLDEN,
    "preprocess",
    "score",
    "integer-through-float",
    lambda row: int(float(row["user"])) != row["user"],
)


class Reference(Handler):
    inputs = Schema(user=Int64(ge=0))
    outputs = Schema(score=Float32())

    def preprocess(self, batch: Batch) -> np.ndarray:
        return batch["user"].numpy()

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        table = np.random.default_rng(5).normal(size=997).astype(np.float32)
        return table[inputs % 997]

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"score": outputs}


class Broken(Reference):
    def preprocess(self, batch: Batch) -> np.ndarray:
        users = batch["user"].numpy().astype(np.float64)
        return np.minimum(users, 2.0**63 - 1024).astype(np.int64)


class Twin(Reference):
    def preprocess(self, batch: Batch) -> np.ndarray:
        return np.array([int(str(user)) for user in batch["user"].to_pylist()], np.int64)


def rows() -> pa.Table:
    rng = generator(__name__)
    users = rng.integers(1, 10**6, 64)
    users[::5] = 2**53 + 1 + 2 * rng.integers(0, 10**9, len(users[::5]))
    return table_of({"user": users})
