"""A network left in train mode."""

from __future__ import annotations

import torch

from parity import Batch, Context, Float32, Handler, Schema, Tensor


class Dropout(Handler):
    inputs = Schema(x=Tensor("float32", (64,)))
    outputs = Schema(y=Float32(non_finite="string"))

    def initialize(self, context: Context) -> None:
        self.model = torch.nn.Dropout(0.5).train()

    def preprocess(self, batch: Batch) -> torch.Tensor:
        return batch["x"].torch()

    def inference(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.model(inputs).sum(-1)

    def postprocess(self, outputs: torch.Tensor, batch: Batch) -> dict[str, object]:
        return {"y": outputs}
