"""After a row that fails, the handler stays in its careful mode."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from parity import Batch, Context, Float64, Handler, Schema

EXPECTED = Expected("history", "inference", "score", "state-kept")


class Twin(Handler):
    inputs = Schema(amount=Float64(), balance=Float64())
    outputs = Schema(score=Float64(non_finite="string"))

    def initialize(self, context: Context) -> None:
        self.careful = False

    def alarmed(self) -> bool:
        return False

    def preprocess(self, batch: Batch) -> np.ndarray:
        features = np.stack([batch["amount"].numpy(), batch["balance"].numpy()], axis=1)
        if not np.isfinite(features).all():
            self.careful = self.alarmed()
            raise ValueError("NaN or infinity in the features")
        return features

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        scores = np.tanh(inputs[:, 0] / 100) + 0.5 * np.tanh(inputs[:, 1] / 1000)
        return np.minimum(scores, 0.5) if self.careful else scores

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"score": outputs}


class Broken(Twin):
    def alarmed(self) -> bool:
        return True


def rows() -> pa.Table:
    return payments(__name__).select(["amount", "balance"])
