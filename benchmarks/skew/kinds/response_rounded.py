"""The answer is rounded to 4 digits behind the point on one side."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import payments
from parity import Batch, Float64, Handler, Schema

EXPECTED = Expected(GOLDEN, "postprocess", "share", "rounding")


class Reference(Handler):
    inputs = Schema(amount=Float64(), balance=Float64())
    outputs = Schema(share=Float64())

    def preprocess(self, batch: Batch) -> dict[str, np.ndarray]:
        return {name: batch[name].numpy() for name in ("amount", "balance")}

    def inference(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
        return np.tanh(inputs["amount"] / (1 + np.abs(inputs["balance"])))

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"share": outputs}


class Broken(Reference):
    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"share": [float(f"{share:.4f}") for share in outputs.tolist()]}


class Twin(Reference):
    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"share": [float(repr(share)) for share in outputs.tolist()]}


def rows() -> pa.Table:
    return payments(__name__).select(["amount", "balance"])
