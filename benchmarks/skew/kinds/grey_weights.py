"""Grey is the mean of the channels on one side and weighted as the eye does on the other."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import ROWS
from benchmarks.skew.pictures import SIDE, PictureScorer, Pixels, coloured, photo, pillow_pixels, png, table

EXPECTED = Expected(GOLDEN, "preprocess", "score", "source", coloured)

EYE = np.array([299, 587, 114])


class Reference(PictureScorer):
    shape = (SIDE, SIDE)

    def pixels(self, data: bytes) -> Pixels:
        return ((pillow_pixels(data) * EYE).sum(axis=-1) / 1000.0).astype(np.float32)


class Broken(PictureScorer):
    shape = (SIDE, SIDE)

    def pixels(self, data: bytes) -> Pixels:
        return (pillow_pixels(data).astype(np.int64).sum(axis=-1) / 3.0).astype(np.float32)


class Twin(PictureScorer):
    shape = (SIDE, SIDE)

    def pixels(self, data: bytes) -> Pixels:
        return ((pillow_pixels(data) @ EYE) / 1000.0).astype(np.float32)


def rows() -> pa.Table:
    return table([png(photo(row, grey=row % 2 > 0)) for row in range(ROWS)])
