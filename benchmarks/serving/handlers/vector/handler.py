"""Scores 32 numbers: the rows of the comparison with other servers."""

from __future__ import annotations

import torch
from vector_model import load

from parity import Batch, Context, Float32, Handler, Schema, Tensor

__all__ = ["Vector"]


class Vector(Handler):
    """Score a row of 32 numbers."""

    inputs = Schema(x=Tensor("float32", (32,)))
    outputs = Schema(score=Float32())

    def initialize(self, context: Context) -> None:  # noqa: ARG002
        self.net = load()

    def preprocess(self, batch: Batch) -> torch.Tensor:
        return batch["x"].torch("cpu")

    def inference(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.net(inputs)

    def postprocess(self, outputs: torch.Tensor, batch: Batch) -> dict[str, object]:  # noqa: ARG002
        return {"score": outputs}
