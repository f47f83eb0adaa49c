"""A product of integers wraps round in 32 bits on one side; small ones hide it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import generator, table_of
from parity import Batch, Float64, Handler, Int32, Schema

EXPECTED = Expected(GOLDEN, "preprocess", "worth", "wrap", lambda row: row["units"] * row["cents"] >= 2**31)


class Reference(Handler):
    inputs = Schema(units=Int32(ge=0), cents=Int32(ge=0))
    outputs = Schema(worth=Float64())

    def preprocess(self, batch: Batch) -> np.ndarray:
        return batch["units"].numpy().astype(np.int64) * batch["cents"].numpy()

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return inputs / 100.0

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"worth": outputs}


class Broken(Reference):
    def preprocess(self, batch: Batch) -> np.ndarray:
        return batch["units"].numpy() * batch["cents"].numpy()


class Twin(Reference):
    def preprocess(self, batch: Batch) -> np.ndarray:
        pairs = zip(batch["units"].to_pylist(), batch["cents"].to_pylist(), strict=True)
        return np.array([units * cents for units, cents in pairs], np.int64)


def rows() -> pa.Table:
    rng = generator(__name__)
    units, cents = rng.integers(1, 900, 64), rng.integers(100, 90000, 64)
    units[7::14] = rng.integers(60000, 90000, len(units[7::14]))
    cents[7::14] = rng.integers(60000, 90000, len(cents[7::14]))
    return table_of({"units": units.astype(np.int32), "cents": cents.astype(np.int32)})
