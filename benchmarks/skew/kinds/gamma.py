"""One side makes light linear before it scores, the other scores the file's levels."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import ROWS
from benchmarks.skew.pictures import PictureScorer, Pixels, photo, pillow_pixels, png, table

EXPECTED = Expected(GOLDEN, "preprocess", "score", "gamma")


class Reference(PictureScorer):
    def pixels(self, data: bytes) -> Pixels:
        return pillow_pixels(data).astype(np.float32) / np.float32(255)


class Broken(PictureScorer):
    def pixels(self, data: bytes) -> Pixels:
        return (pillow_pixels(data).astype(np.float32) / np.float32(255)) ** np.float32(2.2)


class Twin(PictureScorer):
    def pixels(self, data: bytes) -> Pixels:
        levels = np.arange(256, dtype=np.float32) / np.float32(255)
        return levels[pillow_pixels(data)]


def rows() -> pa.Table:
    return table([png(photo(row)) for row in range(ROWS)])
