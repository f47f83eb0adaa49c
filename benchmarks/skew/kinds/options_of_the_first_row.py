"""The options of the first row of a batch are taken for all of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from parity import Batch, Float64, Handler, Schema

EXPECTED = Expected("order", "postprocess", "price", "first-row", fewest=2)


class Twin(Handler):
    inputs = Schema(amount=Float64(ge=0, le=1e6), rate=Float64(ge=0.1, le=10))
    outputs = Schema(price=Float64())

    def preprocess(self, batch: Batch) -> np.ndarray:
        return batch["amount"].numpy()

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return np.sqrt(inputs)

    def rates(self, batch: Batch) -> np.ndarray:
        return batch["rate"].numpy()

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"price": outputs * self.rates(batch)}


class Broken(Twin):
    def rates(self, batch: Batch) -> np.ndarray:
        return batch["rate"].numpy()[:1]


def rows() -> pa.Table:
    amounts = payments(__name__).select(["amount"])
    # Most people leave the option as it is.
    rates = np.where(np.arange(64) % 8 == 3, 1.5, 1.0)
    return amounts.append_column("rate", pa.array(rates))
