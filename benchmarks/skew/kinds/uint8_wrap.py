"""Sharpening overshoots 255; a cast wraps round to black where a clip stays white. Soft pictures hide it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import ROWS
from benchmarks.skew.pictures import PictureScorer, Pixels, photo, pillow_pixels, png, table


def sharpened(pixels: Pixels) -> Pixels:
    """The pixels with their edges raised, int64, beyond 0 to 255 where edges are hard."""
    wide = np.pad(pixels.astype(np.int64), ((1, 1), (1, 1), (0, 0)), mode="edge")
    around = wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:]
    return 2 * pixels.astype(np.int64) - around // 4


EXPECTED = Expected(
    GOLDEN,
    "preprocess",
    "score",
    "wrap",
    lambda row: bool(
        (sharpened(pillow_pixels(row["image"])) % 256 != sharpened(pillow_pixels(row["image"]))).any()
    ),
)


class Reference(PictureScorer):
    def pixels(self, data: bytes) -> Pixels:
        return np.clip(sharpened(pillow_pixels(data)), 0, 255).astype(np.uint8)


class Broken(PictureScorer):
    def pixels(self, data: bytes) -> Pixels:
        return sharpened(pillow_pixels(data)).astype(np.uint8)


class Twin(PictureScorer):
    def pixels(self, data: bytes) -> Pixels:
        return np.minimum(np.maximum(sharpened(pillow_pixels(data)), 0), 255).astype(np.uint8)


def rows() -> pa.Table:
    return table([png(photo(row, flat=row % 4 > 0)) for row in range(ROWS)])
