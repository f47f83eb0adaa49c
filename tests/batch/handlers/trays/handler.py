"""A handler whose time is known: one tray of 256 rows after the other, 5 ms each, or `TRAY_S` seconds."""

from __future__ import annotations

import math
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from parity import Batch, Handler, Int64, Schema

TRAY_ROWS = 256


class Trays(Handler):
    """Answer y = 2 x + 1, and how many rows the batch had; rows below 0 fail."""

    inputs = Schema(x=Int64())
    outputs = Schema(y=Int64(), rows=Int64())

    def preprocess(self, batch: Batch) -> np.ndarray[Any, Any]:
        """The numbers; the sizes of all batches go to a file, where one is named."""
        if log := os.environ.get("TRAYS_LOG"):
            with Path(log).open("a") as file:
                file.write(f"{batch.num_rows}\n")
        x = batch["x"].numpy()
        if (x < 0).any():
            raise ValueError("a row is below 0")
        return x

    def inference(self, inputs: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Compute, for as long as the trays take."""
        time.sleep(math.ceil(len(inputs) / TRAY_ROWS) * float(os.environ.get("TRAY_S", "0.005")))
        return inputs * 2 + 1

    def postprocess(self, outputs: np.ndarray[Any, Any], batch: Batch) -> dict[str, object]:
        """The answers."""
        return {"y": outputs, "rows": np.full(batch.num_rows, batch.num_rows)}
