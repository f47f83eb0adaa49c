"""A small float32 network; `NET_DRIFT` moves its answers without any file or package changing."""

from __future__ import annotations

import os

import torch

from parity import Batch, Context, Float32, Handler, Int64, Schema, Tensor


class Net(Handler):
    inputs = Schema(x=Tensor("float32", (24,)))
    outputs = Schema(score=Float32(non_finite="string"), label=Int64())

    def initialize(self, context: Context) -> None:
        generator = torch.Generator().manual_seed(3)
        self.hidden = torch.randn(24, 32, generator=generator)
        self.last = torch.randn(32, 4, generator=generator)
        self.scale = context.load_json("scale.json") + context.config.get("offset", 0.0)
        self.drift = float(os.environ.get("NET_DRIFT", "0"))

    def preprocess(self, batch: Batch) -> torch.Tensor:
        return batch["x"].torch(self.context.device)

    def inference(self, inputs: torch.Tensor) -> torch.Tensor:
        return torch.tanh(inputs @ self.hidden) @ self.last * self.scale + self.drift

    def postprocess(self, outputs: torch.Tensor, batch: Batch) -> dict[str, object]:
        score, label = outputs.max(-1)
        return {"score": score, "label": label}
