"""One side stores every picture as a JPEG before it scores it; the losses are those of compression."""

from __future__ import annotations

import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import ROWS
from benchmarks.skew.pictures import PictureScorer, Pixels, jpeg, photo, pillow_pixels, png, table

EXPECTED = Expected(GOLDEN, "preprocess", "score", "source")


class Reference(PictureScorer):
    def pixels(self, data: bytes) -> Pixels:
        return pillow_pixels(data)


class Broken(PictureScorer):
    def pixels(self, data: bytes) -> Pixels:
        return pillow_pixels(jpeg(pillow_pixels(data), quality=75))


class Twin(PictureScorer):
    def pixels(self, data: bytes) -> Pixels:
        return pillow_pixels(png(pillow_pixels(data)))


def rows() -> pa.Table:
    return table([png(photo(row)) for row in range(ROWS)])
