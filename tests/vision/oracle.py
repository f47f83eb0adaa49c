"""The operations in float64 and plain numpy, from their definitions: what devices are judged by."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

Pixels = np.ndarray


def resized(image: Pixels, height: int, width: int, interpolation: str, antialias: bool) -> Pixels:
    """(H, W, C) resized by dense weight matrices, float64."""
    return region(image, (0, 0, image.shape[1], image.shape[0]), height, width, interpolation, antialias)


def region(
    image: Pixels,
    box: Sequence[float],
    height: int,
    width: int,
    interpolation: str,
    antialias: bool,
) -> Pixels:
    """A box (left, top, right, bottom) of (H, W, C) resized by dense weight matrices, float64."""
    left, top, right, bottom = box
    down = _weights(image.shape[0], height, interpolation, antialias, top, bottom - top)
    across = _weights(image.shape[1], width, interpolation, antialias, left, right - left)
    return np.einsum("ih,hwc,jw->ijc", down, image.astype(np.float64), across)


def _weights(
    source: int, size: int, interpolation: str, antialias: bool, begin: float, extent: float
) -> Pixels:
    kernel, reach = _kernel(interpolation, antialias)
    scale = extent / size
    stretch = max(scale, 1.0) if antialias else 1.0
    found = np.zeros((size, source))
    for row in range(size):
        middle = begin + (row + 0.5) * scale
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


def letterboxed(image: Pixels, height: int, width: int, antialias: bool, fill: float) -> Pixels:
    """(height, width, C) float64: the picture resized linearly as large as fits, in the middle of `fill`."""
    rows, columns, channels = image.shape
    scale = min(Fraction(height, rows), Fraction(width, columns))
    tall, wide = (max(1, math.floor(side * scale)) for side in (rows, columns))
    top, left = (height - tall) // 2, (width - wide) // 2
    found = np.full((height, width, channels), float(fill))
    found[top : top + tall, left : left + wide] = resized(image, tall, wide, "linear", antialias)
    return found


def laplacian(grey: Pixels) -> Pixels:
    """(H, W) float64: the four neighbours less four times the pixel, mirrored without the edge pixel."""
    padded = np.pad(grey.astype(np.float64), 1, mode="reflect")
    beside = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
    return beside - 4 * padded[1:-1, 1:-1]


def grey(image: Pixels) -> Pixels:
    """(H, W) whole grey levels of uint8 colours: 0.299, 0.587 and 0.114 in integers of 15 bits."""
    red, green, blue = (image[..., channel].astype(np.int64) for channel in range(3))
    return (red * 9798 + green * 19235 + blue * 3735 + (1 << 14)) >> 15


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


def rgb_of_hues(image: np.ndarray) -> np.ndarray:
    """uint8 RGB of uint8 hues of two degrees, saturations and values: float64, rounded once, halves up."""
    hue, saturation, value = np.moveaxis(image.astype(np.float64), -1, 0)
    made = []
    for degrees in (300, 180, 60):
        place = (2 * hue + degrees) % 360 / 60
        share = np.clip(np.minimum(place, 4 - place), 0, 1)
        made.append(np.floor((value * 7650 - value * saturation * np.round(share * 30)) / 7650 + 0.5))
    return np.stack(made, -1).astype(np.uint8)


def rgb_of_yuv(image: Pixels, standard: str, full_range: bool) -> Pixels:
    """Red, green and blue, float64, by the inverse of the matrix that makes Y, Cb and Cr of them."""
    red, blue = {"bt601": (0.299, 0.114), "bt709": (0.2126, 0.0722)}[standard]
    luma = np.array([red, 1 - red - blue, blue])
    forward = np.stack(
        [luma, (np.eye(3)[2] - luma) / (2 * (1 - blue)), (np.eye(3)[0] - luma) / (2 * (1 - red))]
    )
    low, spans = (0, [255, 255, 255]) if full_range else (16, [219, 224, 224])
    unit = (image.astype(np.float64) - [low, 128, 128]) / spans
    return unit @ np.linalg.inv(forward).T * 255


def planes_of_nv12(frame: Pixels) -> Pixels:
    """(H, W, 3) levels Y, Cb and Cr of one (H * 3 / 2, W, 1) frame, pixel by pixel."""
    rows, columns = frame.shape[0] // 3 * 2, frame.shape[1]
    found = np.zeros((rows, columns, 3), frame.dtype)
    for row in range(rows):
        for column in range(columns):
            pair = frame[rows + row // 2, column // 2 * 2 : column // 2 * 2 + 2, 0]
            found[row, column] = (frame[row, column, 0], *pair)
    return found


def windows(image: Pixels, kernel: int, border: str, **options: float) -> Pixels:
    """(H, W, C, kernel * kernel) values around each pixel."""
    reach = kernel // 2
    padded = np.pad(image, ((reach, reach), (reach, reach), (0, 0)), mode=border, **options)  # pyright: ignore
    found = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), (0, 1))
    return found.reshape(*image.shape, kernel * kernel)
