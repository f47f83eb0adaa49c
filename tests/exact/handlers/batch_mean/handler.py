"""A row's answer depends on the mean of its batch."""

from __future__ import annotations

import numpy as np

from parity import Batch, Float32, Handler, Schema


class BatchMean(Handler):
    inputs = Schema(x=Float32(ge=-100.0, le=100.0))
    outputs = Schema(y=Float32())

    def inference(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
        return inputs["x"] - inputs["x"].mean()

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"y": outputs}
