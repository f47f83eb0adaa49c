"""Scores a vector of 32 floats: what the speed tests run, in the library and without it."""

from __future__ import annotations

import torch
from tabular_net import TabularNet

from parity import Batch, Context, Float32, Handler, Schema, Tensor

__all__ = ["Tabular"]


class Tabular(Handler):
    """Score a vector of 32 floats; the stages do as little as a handler can."""

    inputs = Schema(x=Tensor("float32", (32,)))
    outputs = Schema(score=Float32())

    def initialize(self, context: Context) -> None:
        self.model = context.load_model("artifacts/model.safetensors", TabularNet())

    def preprocess(self, batch: Batch) -> torch.Tensor:
        return batch["x"].torch(self.context.device)

    def inference(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.model(inputs)

    def postprocess(self, outputs: torch.Tensor, batch: Batch) -> dict[str, object]:  # noqa: ARG002
        return {"score": outputs}
