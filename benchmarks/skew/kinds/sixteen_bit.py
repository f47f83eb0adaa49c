"""A PNG of 16 bits is cut at 255 by one library and scaled to 8 bits by the other; one row in twenty."""

from __future__ import annotations

import cv2
import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import ROWS
from benchmarks.skew.pictures import (
    PictureScorer,
    Pixels,
    opened,
    photo,
    png,
    read_by_opencv,
    table,
)

EXPECTED = Expected(
    GOLDEN, "preprocess", "score", "bit-depth", lambda row: opened(row["image"]).mode.startswith("I")
)


class Reference(PictureScorer):
    def pixels(self, data: bytes) -> Pixels:
        levels = read_by_opencv(data, cv2.IMREAD_UNCHANGED)
        if levels.dtype == np.uint16:
            levels = (levels >> 8).astype(np.uint8)
        return levels[..., ::-1] if levels.ndim == 3 else np.stack([levels] * 3, axis=-1)


class Broken(PictureScorer):
    def pixels(self, data: bytes) -> Pixels:
        image = opened(data)
        if image.mode.startswith("I"):
            return np.stack([np.minimum(np.asarray(image), 255).astype(np.uint8)] * 3, axis=-1)
        return np.asarray(image.convert("RGB"))


class Twin(PictureScorer):
    def pixels(self, data: bytes) -> Pixels:
        image = opened(data)
        if image.mode.startswith("I"):
            return np.stack([(np.asarray(image) // 256).astype(np.uint8)] * 3, axis=-1)
        return np.asarray(image.convert("RGB"))


def rows() -> pa.Table:
    images: list[bytes] = []
    for row in range(ROWS):
        pixels = photo(row, grey=row % 2 > 0)
        deep = pixels[..., 0].astype(np.uint16) * 257
        images.append(png(deep) if row % 20 == 7 else png(pixels))
    return table(images)
