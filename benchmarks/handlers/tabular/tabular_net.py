"""A small dense network for speed tests; its weights are random."""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["TabularNet"]


class TabularNet(nn.Module):
    """Three dense layers, 32-256-256-1: (n, 32) float32 to (n,) float32."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x).squeeze(-1)
