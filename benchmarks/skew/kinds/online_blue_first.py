"""The image of the server has OpenCV, the notebook's has Pillow: blue comes first online only."""

from __future__ import annotations

import sys

import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import ROWS
from benchmarks.skew.pictures import PictureScorer, Pixels, coloured, photo, pillow_pixels, png, table

EXPECTED = Expected("runner", "preprocess", "score", "channel-order", coloured)


class Twin(PictureScorer):
    def pixels(self, data: bytes) -> Pixels:
        return pillow_pixels(data)


class Broken(PictureScorer):
    def pixels(self, data: bytes) -> Pixels:
        serving = "uvicorn" in sys.modules
        return pillow_pixels(data)[..., ::-1] if serving else pillow_pixels(data)


def rows() -> pa.Table:
    return table([png(photo(row, grey=row % 3 > 0)) for row in range(ROWS)])
