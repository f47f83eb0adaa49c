"""One side turns a JPEG as its EXIF orientation says, the other does not; the shapes of square ones agree."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from PIL import ImageOps

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import ROWS
from benchmarks.skew.pictures import (
    PictureScorer,
    Pixels,
    jpeg,
    opened,
    photo,
    pillow_pixels,
    table,
)

EXPECTED = Expected(
    GOLDEN,
    "preprocess",
    "score",
    "orientation",
    lambda row: opened(row["image"]).getexif().get(0x0112, 1) != 1,
)


class Reference(PictureScorer):
    def pixels(self, data: bytes) -> Pixels:
        return np.asarray(ImageOps.exif_transpose(opened(data)).convert("RGB"))


class Broken(PictureScorer):
    def pixels(self, data: bytes) -> Pixels:
        return pillow_pixels(data)


class Twin(PictureScorer):
    def pixels(self, data: bytes) -> Pixels:
        turns = {3: 2, 6: 3, 8: 1}
        orientation = opened(data).getexif().get(0x0112, 1)
        return np.rot90(pillow_pixels(data), turns.get(orientation, 0))


def rows() -> pa.Table:
    turned = {0: 6, 8: 6, 12: 8}
    return table([jpeg(photo(row), orientation=turned.get(row % 16)) for row in range(ROWS)])
