"""(n, 1) and (n,) broadcast to (n, n): wrong, and plausible."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from parity import Batch, Float64, Handler, Schema

EXPECTED = Expected("batch-size", "inference", "surprise", "broadcast", fewest=2)


class Twin(Handler):
    inputs = Schema(amount=Float64(ge=0, le=10000), balance=Float64(ge=-10000, le=10000))
    outputs = Schema(surprise=Float64())

    def preprocess(self, batch: Batch) -> dict[str, np.ndarray]:
        return {name: batch[name].numpy()[:, None] for name in ("amount", "balance")}

    def inference(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
        usual = 20.0 + 0.01 * inputs["balance"]
        return np.abs(inputs["amount"] - usual).mean(axis=1)

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"surprise": outputs}


class Broken(Twin):
    def inference(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
        usual = 20.0 + 0.01 * inputs["balance"][:, 0]
        return np.abs(inputs["amount"] - usual).mean(axis=1)


def rows() -> pa.Table:
    return payments(__name__).select(["amount", "balance"])
