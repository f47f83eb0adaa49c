"""An answer of NaN becomes null on one side, as some JSON encoders make it."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import payments, table_of
from parity import Batch, Float64, Handler, Schema

EXPECTED = Expected(
    GOLDEN, "postprocess", "ratio", "null-nan-missing", lambda row: row["amount"] == row["balance"] == 0
)


class Reference(Handler):
    inputs = Schema(amount=Float64(), balance=Float64())
    outputs = Schema(ratio=Float64(nullable=True, non_finite="string"))

    def preprocess(self, batch: Batch) -> dict[str, np.ndarray]:
        return {name: batch[name].numpy() for name in ("amount", "balance")}

    def inference(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
        with np.errstate(all="ignore"):
            return inputs["amount"] / inputs["balance"]

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"ratio": outputs}


class Broken(Reference):
    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"ratio": [None if math.isnan(value) else value for value in outputs.tolist()]}


class Twin(Reference):
    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"ratio": outputs.tolist()}


def rows() -> pa.Table:
    table = payments(__name__)
    idle = np.arange(64) % 15 == 4
    amounts = np.where(idle, 0.0, table.column("amount").to_numpy())
    balances = np.where(idle, 0.0, table.column("balance").to_numpy())
    return table_of({"amount": amounts, "balance": balances})
