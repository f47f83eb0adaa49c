"""Prices an order with numpy; refuses some rows and fails on others, so that errors can be seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from parity import Batch, Context, Float32, Float64, Handler, Int64, Schema, String, Tensor

POISON = 666


class Orders(Handler):
    """The total of an order, and a vector to have one."""

    inputs = Schema(price=Float32(), quantity=Int64(ge=-1000))
    outputs = Schema(total=Float64(), size=String(choices=("small", "large")), vector=Tensor("float32", (3,)))

    def initialize(self, context: Context) -> None:
        self.factor = float(context.load_json("artifacts/factor.json"))

    def preprocess(self, batch: Batch) -> np.ndarray[Any, Any]:
        quantity = batch["quantity"].numpy()
        if (quantity == POISON).any():
            raise ValueError(f"quantity {POISON} is poison")
        for row in np.flatnonzero(quantity < 0):
            batch.reject(int(row), f"quantity {quantity[row]} is negative")
        return np.stack([batch["price"].numpy().astype(np.float64), quantity.astype(np.float64)], axis=1)

    def inference(self, inputs: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return inputs[:, 0] * inputs[:, 1] * self.factor

    def postprocess(self, outputs: np.ndarray[Any, Any], batch: Batch) -> dict[str, object]:
        vector = np.stack([outputs, -outputs, outputs / 2], axis=1).astype(np.float32)
        size = ["large" if total > 100 else "small" for total in outputs]
        return {"total": outputs, "size": size, "vector": vector}
