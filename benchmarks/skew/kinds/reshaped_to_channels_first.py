"""Channels are brought to the front by a reshape, which mixes places, and not by a transpose."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import ROWS
from benchmarks.skew.pictures import SIDE, PictureScorer, Pixels, photo, pillow_pixels, png, table

EXPECTED = Expected(GOLDEN, "preprocess", "score", "transpose")


class Reference(PictureScorer):
    shape = (3, SIDE, SIDE)

    def pixels(self, data: bytes) -> Pixels:
        return np.ascontiguousarray(pillow_pixels(data).transpose(2, 0, 1))


class Broken(PictureScorer):
    shape = (3, SIDE, SIDE)

    def pixels(self, data: bytes) -> Pixels:
        return pillow_pixels(data).reshape(3, SIDE, SIDE)


class Twin(PictureScorer):
    shape = (3, SIDE, SIDE)

    def pixels(self, data: bytes) -> Pixels:
        return np.stack([pillow_pixels(data)[..., channel] for channel in range(3)])


def rows() -> pa.Table:
    return table([png(photo(row)) for row in range(ROWS)])
