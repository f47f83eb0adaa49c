"""The operations in float64 and plain numpy, from their definitions: what devices are judged by."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Pixels = np.ndarray


def resized(image: Pixels, height: int, width: int, interpolation: str, antialias: bool) -> Pixels:
    """(H, W, C) resized by dense weight matrices, float64."""
    down = _weights(image.shape[0], height, interpolation, antialias)
    across = _weights(image.shape[1], width, interpolation, antialias)
    return np.einsum("ih,hwc,jw->ijc", down, image.astype(np.float64), across)


def _weights(source: int, size: int, interpolation: str, antialias: bool) -> Pixels:
    kernel, reach = _kernel(interpolation, antialias)
    scale = source / size
    stretch = max(scale, 1.0) if antialias else 1.0
    found = np.zeros((size, source))
    for row in range(size):
        middle = (row + 0.5) * scale
        first, last = int(np.floor(middle - reach * stretch)) - 1, int(np.ceil(middle + reach * stretch)) + 1
        for place in range(first, last + 1):
            weight = kernel((place + 0.5 - middle) / stretch)
            if antialias:
                if 0 <= place < source:  # the kernel is cut at the edge, and its weights add up to 1
                    found[row, place] += weight
            else:
                found[row, min(max(place, 0), source - 1)] += weight
    return found / found.sum(axis=1, keepdims=True)


def _kernel(interpolation: str, antialias: bool) -> tuple[Callable[[float], float], float]:
    if interpolation == "linear":
        return lambda x: max(0.0, 1.0 - abs(x)), 1.0
    a = -0.5 if antialias else -0.75

    def cubic(x: float) -> float:
        x = abs(x)
        if x <= 1:
            return (a + 2) * x**3 - (a + 3) * x**2 + 1
        return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0

    return cubic, 2.0


def nearest(image: Pixels, height: int, width: int) -> Pixels:
    rows = [(2 * row + 1) * image.shape[0] // (2 * height) for row in range(height)]
    columns = [(2 * column + 1) * image.shape[1] // (2 * width) for column in range(width)]
    return image[rows][:, columns]


def blurred(image: Pixels, kernel: int, sigma: float) -> Pixels:
    reach = kernel // 2
    taps = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma**2))
    taps /= taps.sum()
    padded = np.pad(image.astype(np.float64), ((reach, reach), (reach, reach), (0, 0)), mode="reflect")
    rows = np.sum([taps[at] * padded[:, at : at + image.shape[1]] for at in range(kernel)], 0)
    return np.sum([taps[at] * rows[at : at + image.shape[0]] for at in range(kernel)], 0)
