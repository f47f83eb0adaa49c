"""Scores a row of 32 columns of float32: the table of the comparison with other batch tools."""

from __future__ import annotations

import numpy as np
import torch
from table_model import FEATURES, load

from parity import Batch, Context, Float32, Handler, Schema

__all__ = ["Table"]


class Table(Handler):
    """Score a row of 32 numbers."""

    inputs = Schema(**{name: Float32() for name in FEATURES})
    outputs = Schema(score=Float32())

    def initialize(self, context: Context) -> None:
        self.net = load()

    def preprocess(self, batch: Batch) -> torch.Tensor:
        return torch.from_numpy(np.stack([batch[name].numpy() for name in FEATURES]).T)

    def inference(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.net(inputs)

    def postprocess(self, outputs: torch.Tensor, batch: Batch) -> dict[str, object]:
        return {"score": outputs}
