"""The network that names a fashion item; its weights are in ``artifacts/model.safetensors``."""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["FashionNet"]


class FashionNet(nn.Module):
    """Two convolutions and two dense layers: (n, 1, 28, 28) float32 in 0..1 to (n, 10) logits.

    105,866 parameters. No batch norm and no dropout: nothing in it depends on a batch's other rows
    or on train mode.
    """

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, kernel_size=3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, kernel_size=3, padding=1)
        self.hidden = nn.Linear(32 * 7 * 7, 64)
        self.logits = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logits of each image."""
        x = nn.functional.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = nn.functional.max_pool2d(torch.relu(self.conv2(x)), 2)
        return self.logits(torch.relu(self.hidden(x.flatten(1))))
