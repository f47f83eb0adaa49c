"""A handler of vectors of any length, which tells how many lengths it was given at once."""

import time
from pathlib import Path
from typing import Any

import numpy as np

from parity import Batch, Float32, Handler, Int64, Schema, String, Tensor


class Ragged(Handler):
    """Answer the sum of x, and how many shapes and rows the batch had."""

    inputs = Schema(
        x=Tensor("float32", (None,)),
        wait=String(default="", doc="the batch waits until this file exists; an absolute path"),
    )
    outputs = Schema(total=Float32(), shapes=Int64(), rows=Int64())

    def preprocess(self, batch: Batch) -> list[Any]:
        """Wait for the file, with another one beside it meanwhile; then hand the vectors on."""
        for name in batch["wait"].to_pylist():
            if name.startswith("/"):
                Path(f"{name}.waits").touch()
            while name.startswith("/") and not Path(name).exists():
                time.sleep(0.001)
        return batch["x"].arrays()

    def inference(self, inputs: list[Any]) -> tuple[np.ndarray, int]:
        """The sums, and the number of shapes."""
        sums = np.array([x.sum(dtype=np.float32) for x in inputs], np.float32)
        return sums, len({x.shape for x in inputs})

    def postprocess(self, outputs: tuple[np.ndarray, int], batch: Batch) -> dict[str, object]:
        """The answers."""
        totals, shapes = outputs
        rows = batch.num_rows
        return {"total": totals, "shapes": np.full(rows, shapes), "rows": np.full(rows, rows)}
