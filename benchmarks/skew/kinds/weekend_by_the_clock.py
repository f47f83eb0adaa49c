"""A discount is given on the day the process thinks it is."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from parity import Batch, Float64, Handler, Schema

EXPECTED = Expected("clock", "postprocess", "price", "wall-clock", fewest=1)

DAY = 17


class Twin(Handler):
    inputs = Schema(amount=Float64(ge=0, le=1e6))
    outputs = Schema(price=Float64())

    def day(self) -> int:
        return DAY

    def preprocess(self, batch: Batch) -> np.ndarray:
        return batch["amount"].numpy()

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return inputs + 1.0

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"price": outputs * (1 - 0.001 * self.day())}


class Broken(Twin):
    def day(self) -> int:
        return datetime.date.today().toordinal() % 97


def rows() -> pa.Table:
    return payments(__name__).select(["amount"])
