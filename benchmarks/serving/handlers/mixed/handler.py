"""Scores a vector of 32 floats, and fails on rows that say so: what the soak asks."""

from __future__ import annotations

import torch
from torch import nn

from parity import Batch, Context, Float32, Handler, Int64, Schema, String, Tensor

__all__ = ["Mixed"]


class Mixed(Handler):
    """Score a vector with a dense network, 32-64-64-1."""

    inputs = Schema(
        id=Int64(),
        x=Tensor("float32", (32,)),
        act=String(default="", choices=("", "raise", "reject")),
    )
    outputs = Schema(id=Int64(), score=Float32())

    def initialize(self, context: Context) -> None:  # noqa: ARG002
        made = torch.Generator().manual_seed(20240603)
        layers = [nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)]
        self.net = nn.Sequential(*layers).eval().requires_grad_(False)
        for weights in self.net.parameters():
            weights.copy_(torch.randn(weights.shape, generator=made) / 8)

    def preprocess(self, batch: Batch) -> tuple[torch.Tensor, list[str]]:
        acts = batch["act"].to_pylist()
        for row, act in enumerate(acts):
            if act == "reject":
                batch.reject(row, "act says reject")
        return batch["x"].torch(self.context.device), acts

    def inference(self, inputs: tuple[torch.Tensor, list[str]]) -> torch.Tensor:
        x, acts = inputs
        if "raise" in acts:
            raise LookupError("act says raise")
        return self.net(x).squeeze(-1)

    def postprocess(self, outputs: torch.Tensor, batch: Batch) -> dict[str, object]:
        return {"id": batch["id"].numpy(), "score": outputs}
