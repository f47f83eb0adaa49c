"""The network that predicts a film's score; its weights are in ``artifacts/model.safetensors``."""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["FilmsNet"]


class FilmsNet(nn.Module):
    """Three dense layers: (n, features) float32 to (n,) float32 scores between 0 and 10.

    The dropout acts in training only.
    """

    def __init__(self, features: int) -> None:
        super().__init__()
        self.first = nn.Linear(features, 96)
        self.second = nn.Linear(96, 48)
        self.last = nn.Linear(48, 1)
        self.dropout = nn.Dropout(0.25)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the score of each row."""
        x = self.dropout(torch.relu(self.first(x)))
        x = self.dropout(torch.relu(self.second(x)))
        return 10.0 * torch.sigmoid(self.last(x)).squeeze(-1)
