"""Scores JPEG files: the pictures of the comparison with other batch tools."""

from __future__ import annotations

import torch
from picture_model import decode, load

from parity import Batch, Bytes, Context, Float32, Handler, Schema

__all__ = ["Picture"]


class Picture(Handler):
    """Score one JPEG file."""

    inputs = Schema(jpeg=Bytes())
    outputs = Schema(score=Float32())

    def initialize(self, context: Context) -> None:
        self.net = load()

    def preprocess(self, batch: Batch) -> torch.Tensor:
        return decode(batch["jpeg"])

    def inference(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.net(inputs)

    def postprocess(self, outputs: torch.Tensor, batch: Batch) -> dict[str, object]:
        return {"score": outputs}
