"""A row's answer depends on the mean of its batch."""

from __future__ import annotations

import torch

from parity import Batch, Float32, Handler, Schema


class BatchMean(Handler):
    inputs = Schema(x=Float32(ge=-100.0, le=100.0))
    outputs = Schema(y=Float32())

    def preprocess(self, batch: Batch) -> torch.Tensor:
        return batch["x"].torch()

    def inference(self, inputs: torch.Tensor) -> torch.Tensor:
        return inputs - inputs.mean()

    def postprocess(self, outputs: torch.Tensor, batch: Batch) -> dict[str, object]:
        return {"y": outputs}
