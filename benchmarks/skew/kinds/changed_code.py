"""The code of a feature was changed on one side, and nothing else was."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import payments
from parity import Batch, Float64, Handler, Schema

EXPECTED = Expected(GOLDEN, "preprocess", "score", "source")


class Reference(Handler):
    inputs = Schema(amount=Float64(ge=0, le=1e6), balance=Float64(ge=-1e6, le=1e6))
    outputs = Schema(score=Float64())

    def strain(self, amount: np.ndarray, balance: np.ndarray) -> np.ndarray:
        return np.log1p(amount) * np.sqrt(np.abs(balance))

    def preprocess(self, batch: Batch) -> np.ndarray:
        return self.strain(batch["amount"].numpy(), batch["balance"].numpy())

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return 1.0 + 0.125 * inputs

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"score": outputs}


class Broken(Reference):
    def strain(self, amount: np.ndarray, balance: np.ndarray) -> np.ndarray:
        return np.sqrt(amount) * np.log1p(np.abs(balance) + amount)


class Twin(Reference):
    def strain(self, amount: np.ndarray, balance: np.ndarray) -> np.ndarray:
        return np.abs(balance) ** 0.5 * np.log1p(amount)


def rows() -> pa.Table:
    return payments(__name__).select(["amount", "balance"])
