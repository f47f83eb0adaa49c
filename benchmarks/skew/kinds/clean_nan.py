"""Clean: NaN on both sides, of another payload and sign."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.natural_rows import payments
from parity import Batch, Float64, Handler, Schema


class Reference(Handler):
    inputs = Schema(amount=Float64(), balance=Float64())
    outputs = Schema(ratio=Float64(non_finite="string"))

    def nothing(self) -> float:
        return float("nan")

    def preprocess(self, batch: Batch) -> np.ndarray:
        return np.stack([batch["amount"].numpy(), batch["balance"].numpy()], axis=1)

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.where(inputs[:, 1] < 0, self.nothing(), inputs[:, 0] * 0.5)

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"ratio": outputs}


class Twin(Reference):
    def nothing(self) -> float:
        return -np.array([0x7FF8_0000_0000_BEEF], np.uint64).view(np.float64)[0]


def rows() -> pa.Table:
    table = payments(__name__).select(["amount", "balance"])
    balance = table.column("balance").to_numpy().copy()
    balance[::9] *= -1
    return table.set_column(1, "balance", pa.array(balance))
