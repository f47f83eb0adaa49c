"""Rejects every row."""

from __future__ import annotations

import numpy as np

from parity import Batch, Float64, Handler, Schema


class Refuses(Handler):
    inputs = Schema(x=Float64())
    outputs = Schema(y=Float64())

    def preprocess(self, batch: Batch) -> np.ndarray:
        for row in range(batch.num_rows):
            batch.reject(row, "nobody is served")
        return batch["x"].numpy()

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return inputs

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"y": outputs}
