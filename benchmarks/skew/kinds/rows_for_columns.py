"""Pixels are taken as (W, H) by one side: every picture is mirrored at its diagonal."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import ROWS
from benchmarks.skew.pictures import SIDE, PictureScorer, Pixels, opened, photo, pillow_pixels, png, table

EXPECTED = Expected(GOLDEN, "preprocess", "score", "transpose")


class Reference(PictureScorer):
    def pixels(self, data: bytes) -> Pixels:
        return pillow_pixels(data)


class Broken(PictureScorer):
    def pixels(self, data: bytes) -> Pixels:
        image = opened(data).convert("RGB")
        levels = [[image.getpixel((x, y)) for y in range(SIDE)] for x in range(SIDE)]
        return np.asarray(levels, np.uint8)


class Twin(PictureScorer):
    def pixels(self, data: bytes) -> Pixels:
        image = opened(data).convert("RGB")
        levels = [[image.getpixel((x, y)) for x in range(SIDE)] for y in range(SIDE)]
        return np.asarray(levels, np.uint8)


def rows() -> pa.Table:
    return table([png(photo(row)) for row in range(ROWS)])
