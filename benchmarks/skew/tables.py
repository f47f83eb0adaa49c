"""The handler that scores payments; the kinds differ in how columns become features."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from parity import Batch, Float64, Handler, Schema

NAMES = ("amount", "balance", "age")
MEANS = np.array([50.0, 2500.0, 54.0])
DEVIATIONS = np.array([60.0, 900.0, 21.0])


class PaymentScorer(Handler):
    """Scores a payment by its scaled amount, balance and age."""

    inputs = Schema(
        amount=Float64(ge=-1e6, le=1e6), balance=Float64(ge=-1e6, le=1e6), age=Float64(ge=0, le=150)
    )
    outputs = Schema(score=Float64())
    weights: ClassVar[tuple[float, ...]] = (0.7, -0.4, 0.2)

    def features(self, batch: Batch) -> np.ndarray:
        """The columns side by side, (n, 3)."""
        return np.stack([batch[name].numpy() for name in NAMES], axis=1)

    def preprocess(self, batch: Batch) -> Any:
        return (self.features(batch) - MEANS) / DEVIATIONS

    def inference(self, inputs: Any) -> Any:
        return (inputs * self.weights).sum(axis=1)

    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, object]:
        return {"score": outputs}
