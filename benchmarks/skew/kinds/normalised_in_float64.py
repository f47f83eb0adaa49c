"""Clean: normalising in float64 and casting, or in float32, gives other bits within the tolerance."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.natural_rows import ROWS
from benchmarks.skew.pictures import PictureScorer, Pixels, photo, pillow_pixels, png, table

MEAN, DEVIATION = 0.449, 0.226


class Reference(PictureScorer):
    def pixels(self, data: bytes) -> Pixels:
        return ((pillow_pixels(data) / 255.0 - MEAN) / DEVIATION).astype(np.float32)


class Twin(PictureScorer):
    def pixels(self, data: bytes) -> Pixels:
        levels = pillow_pixels(data).astype(np.float32) / np.float32(255)
        return (levels - np.float32(MEAN)) / np.float32(DEVIATION)


def rows() -> pa.Table:
    return table([png(photo(row)) for row in range(ROWS)])
