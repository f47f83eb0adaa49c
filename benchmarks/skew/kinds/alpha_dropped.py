"""One side drops the alpha channel, the other lays the picture on white; one row in twenty has one."""

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
    pillow_pixels,
    png,
    read_by_opencv,
    table,
)

EXPECTED = Expected(GOLDEN, "preprocess", "score", "alpha", lambda row: opened(row["image"]).mode == "RGBA")


def on_white(pixels: Pixels) -> Pixels:
    """(H, W, 4) pixels on white, (H, W, 3)."""
    colour, alpha = pixels[..., :3].astype(np.int64), pixels[..., 3:].astype(np.int64)
    return ((colour * alpha + 255 * (255 - alpha) + 127) // 255).astype(np.uint8)


class Reference(PictureScorer):
    def pixels(self, data: bytes) -> Pixels:
        return on_white(np.asarray(opened(data).convert("RGBA")))


class Broken(PictureScorer):
    def pixels(self, data: bytes) -> Pixels:
        return pillow_pixels(data)


class Twin(PictureScorer):
    def pixels(self, data: bytes) -> Pixels:
        pixels = read_by_opencv(data, cv2.IMREAD_UNCHANGED)
        return on_white(pixels[..., [2, 1, 0, 3]]) if pixels.shape[-1] == 4 else pixels[..., ::-1]


def rows() -> pa.Table:
    fading = np.linspace(0, 255, 32).astype(np.uint8)
    alpha = np.broadcast_to(fading[:, None, None], (32, 32, 1))
    images = [photo(row) for row in range(ROWS)]
    return table(
        [
            png(np.concatenate([image, alpha], axis=-1) if row % 20 == 3 else image)
            for row, image in enumerate(images)
        ]
    )
