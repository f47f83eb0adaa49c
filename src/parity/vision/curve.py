"""The normal curve that gaussian_blur weights by: its parameters, and its weights in float64 rounded once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch


@dataclass(frozen=True)
class Curve:
    """A normal curve in a window.

    Attributes:
        kernel: the side of the window in pixels, odd.
        sigma: the standard deviation, in pixels.
    """

    kernel: int
    sigma: float

    @cached_property
    def weights(self) -> list[float]:
        """`kernel` float32 weights, computed in float64; they add up to 1."""
        reach = self.kernel // 2
        places = torch.arange(-reach, reach + 1, dtype=torch.float64)
        weights = torch.exp(-(places**2) / (2 * self.sigma**2))
        return (weights / weights.sum()).to(torch.float32).tolist()
