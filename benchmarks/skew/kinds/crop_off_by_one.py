"""The centre crop rounds its odd margin down on one side and up on the other; even margins hide it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import ROWS
from benchmarks.skew.pictures import SIDE, PictureScorer, Pixels, opened, photo, pillow_pixels, png, table

EXPECTED = Expected(
    GOLDEN,
    "preprocess",
    "score",
    "pixel-shift",
    lambda row: (opened(row["image"]).width - SIDE) % 2 == 1,
)


def padded(pixels: Pixels) -> Pixels:
    """The pixels, black around them where they are too few to crop."""
    height, width = (max(0, SIDE - size) for size in pixels.shape[:2])
    return np.pad(pixels, ((0, height), (0, width), (0, 0)))


class Reference(PictureScorer):
    any_size = True

    def pixels(self, data: bytes) -> Pixels:
        pixels = padded(pillow_pixels(data))
        top, left = ((size - SIDE) // 2 for size in pixels.shape[:2])
        return pixels[top : top + SIDE, left : left + SIDE]


class Broken(PictureScorer):
    any_size = True

    def pixels(self, data: bytes) -> Pixels:
        pixels = padded(pillow_pixels(data))
        top, left = ((size - SIDE + 1) // 2 for size in pixels.shape[:2])
        return pixels[top : top + SIDE, left : left + SIDE]


class Twin(PictureScorer):
    any_size = True

    def pixels(self, data: bytes) -> Pixels:
        pixels = padded(pillow_pixels(data))
        top, left = (int((size - SIDE) / 2) for size in pixels.shape[:2])
        return pixels[top : top + SIDE, left : left + SIDE]


def rows() -> pa.Table:
    sizes = [32, 36, 40, 34, 37, 38]
    return table([png(photo(row, sizes[row % 6], sizes[row % 6])) for row in range(ROWS)])
