"""Resize in fixed-point arithmetic, for results that have the same bits on every device.

Weights are whole numbers of 22 bits after the point, as Pillow has them, and products are added in float64:
all sums are whole numbers below 2**53, so that neither the order of the additions nor fused multiply-adds can
change one. Each axis is rounded to uint8 once, columns of the source first.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import torch

from parity.vision.kept import kept
from parity.vision.taps import Kernel, Taps, pixel_weights, swapped, taps_of, weighted_sums

BITS: Final = 22
"""Bits after the point: 32, less 8 for a level and 2 for overshoot."""


@kept
def fixed_taps(source: int, size: int, kernel: Kernel, antialias: bool, device: torch.device) -> Taps:
    """The taps with whole weights, rounded half away from zero, as float64."""
    places, weights = pixel_weights(source, size, kernel, antialias)
    scaled = weights * (1 << BITS)
    return taps_of(places, np.trunc(scaled + np.copysign(0.5, scaled)), source, device)


def resampled(image: torch.Tensor, down: Taps | None, across: Taps | None) -> torch.Tensor:
    """(height, width, C) uint8 of one (H, W, C) uint8 image; an axis without taps stays as it is."""
    if across is not None:
        image = swapped(_rounded(weighted_sums(swapped(image), across)))
    return image if down is None else _rounded(weighted_sums(image, down))


def _rounded(sums: torch.Tensor) -> torch.Tensor:
    half, unit = float(1 << (BITS - 1)), 2.0**-BITS
    return sums.add_(half).mul_(unit).floor_().clamp_(0, 255).to(torch.uint8)
