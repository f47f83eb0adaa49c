"""OpenCV gives blue first, Pillow red first; grey pictures hide it."""

from __future__ import annotations

import cv2
import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import ROWS
from benchmarks.skew.pictures import (
    PictureScorer,
    Pixels,
    coloured,
    photo,
    pillow_pixels,
    png,
    read_by_opencv,
    table,
)

EXPECTED = Expected(GOLDEN, "preprocess", "score", "channel-order", coloured)


class Reference(PictureScorer):
    def pixels(self, data: bytes) -> Pixels:
        return pillow_pixels(data)


class Broken(PictureScorer):
    def pixels(self, data: bytes) -> Pixels:
        return read_by_opencv(data, cv2.IMREAD_COLOR)


class Twin(PictureScorer):
    def pixels(self, data: bytes) -> Pixels:
        return np.asarray(cv2.cvtColor(read_by_opencv(data, cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB))


def rows() -> pa.Table:
    return table([png(photo(row, grey=row % 3 > 0)) for row in range(ROWS)])
