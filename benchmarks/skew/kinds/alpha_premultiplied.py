"""One side takes colours for already multiplied by alpha; only half-transparent pictures show it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import ROWS
from benchmarks.skew.pictures import PictureScorer, Pixels, opened, photo, png, table

EXPECTED = Expected(GOLDEN, "preprocess", "score", "alpha", lambda row: opened(row["image"]).mode == "RGBA")


class Reference(PictureScorer):
    def pixels(self, data: bytes) -> Pixels:
        pixels = np.asarray(opened(data).convert("RGBA")).astype(np.float32)
        colour, alpha = pixels[..., :3], pixels[..., 3:] / 255
        return colour * alpha + 255 * (1 - alpha)


class Broken(PictureScorer):
    def pixels(self, data: bytes) -> Pixels:
        pixels = np.asarray(opened(data).convert("RGBA")).astype(np.float32)
        colour, alpha = pixels[..., :3], pixels[..., 3:] / 255
        return np.minimum(colour + 255 * (1 - alpha), 255)


class Twin(PictureScorer):
    def pixels(self, data: bytes) -> Pixels:
        pixels = np.asarray(opened(data).convert("RGBA")).astype(np.float32)
        colour, alpha = pixels[..., :3], pixels[..., 3:] / 255
        return 255 + (colour - 255) * alpha


def rows() -> pa.Table:
    images: list[bytes] = []
    for row in range(ROWS):
        pixels = photo(row)
        faint = np.concatenate([pixels // 2, np.full((32, 32, 1), 140, np.uint8)], axis=-1)
        images.append(png(faint) if row % 16 == 5 else png(pixels))
    return table(images)
