"""Answers that differ from process to process, and never within one."""

from __future__ import annotations

import os

import numpy as np

from parity import Batch, Float64, Handler, Schema


class ProcessId(Handler):
    inputs = Schema(x=Float64(ge=0.0, le=1.0))
    outputs = Schema(y=Float64())

    def inference(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
        return inputs["x"] + os.getpid()

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"y": outputs}
