"""A handler whose time is known: one tray of 8 rows after the other, 200 ms each."""

import math
import time

import numpy as np

from parity import Batch, Handler, Int64, Schema

TRAY_ROWS = 8
TRAY_S = 0.2


class Tray(Handler):
    """Answer y = 2 x + 1, and how many rows the batch had."""

    inputs = Schema(x=Int64())
    outputs = Schema(y=Int64(), rows=Int64())

    def preprocess(self, batch: Batch) -> np.ndarray:
        """The numbers."""
        return batch["x"].numpy()

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        """Compute, for as long as the trays take."""
        time.sleep(math.ceil(len(inputs) / TRAY_ROWS) * TRAY_S)
        return inputs * 2 + 1

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        """The answers."""
        return {"y": outputs, "rows": np.full(batch.num_rows, batch.num_rows)}
