"""What resize computes: each pixel of the result is a weighted sum of pixels of the source, axis by axis.

Weights are computed in float64 and rounded once, so that they hold for sides of any length. The sums are
torch's `embedding_bag`, which runs on the host and on a GPU, and adds up each pixel by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F

from parity.staging import send
from parity.vision import opencv
from parity.vision.fastpaths import T0, FastPath, Try, fast, pictures, register
from parity.vision.kept import kept

Kernel = Literal["linear", "cubic"]
_Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Taps:
    """The weights along one axis.

    Attributes:
        needed: the places of the source that count at all, ascending; None where that is all of them.
        places: for each tap, its place among the needed ones; the taps of a pixel follow each other.
        weights: float64, one for each tap; those of a pixel add up to 1.
        starts: where the taps of each pixel begin.
    """

    needed: torch.Tensor | None
    places: torch.Tensor
    weights: torch.Tensor
    starts: torch.Tensor

    def to(self, device: torch.device) -> Taps:
        """The same on another device."""
        if device.type == "cpu":
            return self
        held = [self.places, self.weights, self.starts, *([] if self.needed is None else [self.needed])]
        places, weights, starts, *needed = send([tensor.numpy() for tensor in held], device)
        return Taps(needed[0] if needed else None, places, weights, starts)


@kept
def taps(source: int, size: int, kernel: Kernel, antialias: bool, device: torch.device) -> Taps:
    """The taps for `size` pixels out of `source`, on a device."""
    return taps_of(*pixel_weights(source, size, kernel, antialias), source, device)


def taps_of(places: _Array, weights: _Array, source: int, device: torch.device) -> Taps:
    """Taps of places (size, k) and weights (size, k), of which those that are 0 do not count."""
    counted = weights != 0
    starts = np.concatenate([[0], np.cumsum(counted.sum(axis=1))[:-1]])
    used, flat = places[counted], weights[counted]
    needed, found = np.unique(used, return_inverse=True)
    whole = len(needed) > 0.75 * source
    return Taps(
        None if whole else torch.from_numpy(needed),
        torch.from_numpy(used if whole else found),
        torch.from_numpy(flat),
        torch.from_numpy(starts),
    ).to(device)


@kept
def taps_float32(source: int, size: int, kernel: Kernel, antialias: bool, device: torch.device) -> Taps:
    """As `taps`, with weights rounded to float32."""
    exact = taps(source, size, kernel, antialias, device)
    return Taps(exact.needed, exact.places, exact.weights.to(torch.float32), exact.starts)


def pixel_weights(
    source: int,
    size: int,
    kernel: Kernel,
    antialias: bool,
    begin: float = 0.0,
    extent: float | None = None,
    window: tuple[int, int] | None = None,
) -> tuple[_Array, _Array]:
    """Places (size, k) int64 and weights (size, k) float64; unused taps have weight 0.

    `size` pixels out of `extent` pixels from `begin` on, all of them when not given. With a window, only the
    pixels from its first up to its second number, as they are among all.

    With antialias, the kernel is stretched by the factor of a reduction and cut at the edges, as Pillow's is;
    without, what lies outside is the edge pixel.
    """
    scale = (source if extent is None else extent) / size
    stretch = max(scale, 1.0) if antialias else 1.0
    reach = (1.0 if kernel == "linear" else 2.0) * stretch
    middles = begin + (np.arange(*(window or (0, size)), dtype=np.float64) + 0.5) * scale
    first = np.floor(middles - reach - 0.5).astype(np.int64)
    places = first[:, None] + np.arange(int(np.ceil(2 * reach)) + 2)
    weights = _curve((places + 0.5 - middles[:, None]) / stretch, kernel, -0.5 if antialias else -0.75)
    inside = (places >= 0) & (places < source)
    if antialias:
        weights = np.where(inside, weights, 0.0)
    return places.clip(0, source - 1), weights / weights.sum(axis=1, keepdims=True)


def _curve(x: _Array, kernel: Kernel, a: float) -> _Array:
    x = np.abs(x)
    if kernel == "linear":
        return np.maximum(0.0, 1.0 - x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


def weighted_sums(rows: torch.Tensor, along: Taps) -> torch.Tensor:
    """(size, ...) sums of (source, ...) rows, in the dtype of the taps' weights."""
    # By way of one axis: an axis of one element may have any stride, by which torch takes other kernels.
    flat = rows.contiguous().reshape(-1).view(rows.shape[0], -1)
    if along.needed is not None:
        flat = flat.index_select(0, along.needed)
    flat = flat.to(along.weights.dtype)
    sums = F.embedding_bag(along.places, flat, along.starts, mode="sum", per_sample_weights=along.weights)
    return sums.reshape(-1, *rows.shape[1:])


def resampled(image: torch.Tensor, down: Taps, across: Taps) -> torch.Tensor:
    """(height, width, C) float32 of one (H, W, C) image; rows first, then columns."""
    rows = weighted_sums(image, down)
    columns = weighted_sums(swapped(rows), across)
    return swapped(columns)


def swapped(image: torch.Tensor) -> torch.Tensor:
    """(W, H, C) of (H, W, C), contiguous."""
    faster = fast("swap_axes", image)
    return faster(image) if faster else _swapped(image)


def _swapped(image: torch.Tensor) -> torch.Tensor:
    return image.transpose(0, 1).contiguous()


def _tries() -> list[Try]:
    return [lambda swap, image=image: swap(image[0].to(torch.float32)) for image in pictures()]


register(FastPath("swap_axes", "OpenCV", "host", opencv.loaded("swap_axes"), _swapped, _tries, T0))
