"""Says where it runs, and kills its process the first time that a row tells it to."""

from __future__ import annotations

import os
import signal
from typing import Any

import numpy as np

from parity import Batch, Bool, Context, Handler, Int64, Schema, String


class Fragile(Handler):
    """Doubles a number; leaves a mark for each load and each death in a hidden folder beside this file."""

    inputs = Schema(id=Int64(), die=Bool(default=False))
    outputs = Schema(doubled=Int64(), process=Int64(), devices=String())

    def initialize(self, context: Context) -> None:
        assert context.root is not None
        self.marks = context.root / ".marks"
        self.marks.mkdir(exist_ok=True)
        (self.marks / f"loaded-{os.getpid()}").touch(exist_ok=False)

    def preprocess(self, batch: Batch) -> np.ndarray[Any, Any]:
        if batch["die"].numpy().any():
            try:
                (self.marks / "died").touch(exist_ok=False)
            except FileExistsError:
                pass
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        return batch["id"].numpy()

    def inference(self, inputs: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return inputs * 2

    def postprocess(self, outputs: np.ndarray[Any, Any], batch: Batch) -> dict[str, object]:
        rows = len(outputs)
        devices = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        return {
            "doubled": outputs,
            "process": np.full(rows, os.getpid(), np.int64),
            "devices": [devices] * rows,
        }
