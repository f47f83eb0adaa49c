"""A row's answer depends on whether its place in the batch is odd."""

from __future__ import annotations

import numpy as np

from parity import Batch, Float32, Handler, Schema


class OddPlaces(Handler):
    inputs = Schema(x=Float32(ge=1.0, le=2.0))
    outputs = Schema(y=Float32())

    def inference(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
        x = inputs["x"].copy()
        x[1::2] = np.nextafter(x[1::2], np.float32(3))
        return x

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"y": outputs}
