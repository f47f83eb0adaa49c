"""Elementwise, exact at every bucket, without torch; `AFFINE_DRIFT` moves its answers and no file changes."""

from __future__ import annotations

import os

import numpy as np

from parity import Batch, Context, Float32, Handler, Schema


class Affine(Handler):
    inputs = Schema(x=Float32(ge=-100.0, le=100.0))
    outputs = Schema(y=Float32())

    def initialize(self, context: Context) -> None:
        self.drift = np.float32(os.environ.get("AFFINE_DRIFT", "0"))

    def inference(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
        return inputs["x"] * np.float32(1.7) + self.drift

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"y": outputs}
