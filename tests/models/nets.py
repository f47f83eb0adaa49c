"""Small torch modules for the tests of model backends."""

from __future__ import annotations

import torch
from torch import nn


class Pictures(nn.Module):
    """Convolution and linear layers, a keyword argument, nested outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.head = nn.Linear(8 * 16, 32)

    def forward(self, pictures: torch.Tensor, *, scale: torch.Tensor) -> dict[str, object]:
        hidden = self.norm(self.conv(pictures)).relu()
        logits = self.head(nn.functional.adaptive_avg_pool2d(hidden, 4).flatten(1)) * scale
        return {"logits": logits, "others": (logits.softmax(-1), logits.argmax(-1))}


class Texts(nn.Module):
    """Token ids of any length with a mask."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 16)
        self.head = nn.Linear(16, 3)

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        weights = mask.unsqueeze(-1).to(torch.float32)
        hidden = (self.embedding(tokens) * weights).sum(1) / weights.sum(1)
        return self.head(hidden.tanh())


class Plain(nn.Module):
    """One linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(8, 4)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.head(rows)


class Depends(nn.Module):
    """What no exporter can follow: Python that looks at values."""

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return rows * 2 if float(rows.sum()) > 0 else rows


class Branches(nn.Module):
    """A branch that depends on values, as exporters take it: its graphs are inside the graph."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self._factor = factor

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        factor = self._factor
        return torch.cond(rows.sum() > 0, lambda x: x * factor, lambda x: x - factor, (rows,))
