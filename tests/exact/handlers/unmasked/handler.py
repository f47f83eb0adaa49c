"""Averages sequences that are padded to the longest of their batch, padding included."""

from __future__ import annotations

import numpy as np
import torch

from parity import Batch, Float32, Handler, Schema, Tensor


class Unmasked(Handler):
    inputs = Schema(x=Tensor("int64", (None,)))
    outputs = Schema(y=Float32())

    def preprocess(self, batch: Batch) -> dict[str, torch.Tensor]:
        rows = [row for row in batch["x"].arrays() if row is not None]
        length = max(1, *map(len, rows))
        x = np.zeros((len(rows), length), np.float32)
        mask = np.zeros(x.shape, bool)
        for place, row in enumerate(rows):
            x[place, : len(row)] = row % 100
            mask[place, : len(row)] = True
        return {"x": torch.from_numpy(x), "mask": torch.from_numpy(mask)}

    def inference(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        return inputs["x"].mean(-1)

    def postprocess(self, outputs: torch.Tensor, batch: Batch) -> dict[str, object]:
        return {"y": outputs}
