"""Pillow filters over the whole source area when it shrinks, OpenCV's linear resize does not."""

from __future__ import annotations

import cv2
import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import ROWS
from benchmarks.skew.pictures import (
    SIDE,
    PictureScorer,
    Pixels,
    fitted,
    opened,
    photo,
    pillow_pixels,
    png,
    read_by_opencv,
    table,
)

# Enlarging differs by one level in places, which the tolerance allows.
TOLERANCE = {"score": {"kind": "close", "atol": 0.04}}
EXPECTED = Expected(
    GOLDEN,
    "preprocess",
    "score",
    "resize-antialias",
    lambda row: opened(row["image"]).width > SIDE,
)


class Reference(PictureScorer):
    any_size = True

    def pixels(self, data: bytes) -> Pixels:
        return fitted(pillow_pixels(data))


class Broken(PictureScorer):
    any_size = True

    def pixels(self, data: bytes) -> Pixels:
        pixels = cv2.cvtColor(read_by_opencv(data, cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)
        return np.asarray(cv2.resize(pixels, (SIDE, SIDE), interpolation=cv2.INTER_LINEAR))


class Twin(PictureScorer):
    any_size = True

    def pixels(self, data: bytes) -> Pixels:
        return fitted(np.asarray(cv2.cvtColor(read_by_opencv(data, cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)))


def rows() -> pa.Table:
    sizes = [(120, 160), (24, 24), (20, 28), (30, 26)]
    return table([png(photo(row, *sizes[row % 4])) for row in range(ROWS)])
