"""Pictures to try vision on: noise, which is the worst case, and files of many kinds."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from PIL import Image

from parity import vision
from parity.vision import Images


def noise(seed: int, height: int, width: int, channels: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, channels), np.uint8)


def images(*arrays: np.ndarray) -> Images:
    return Images([torch.from_numpy(array) for array in arrays])


def sides(most: int = 24) -> st.SearchStrategy[int]:
    return st.integers(1, most)


@st.composite
def ragged(draw: st.DrawFn, channels: int = 3) -> list[np.ndarray]:
    """One to five pictures, some of one size."""
    shapes = draw(st.lists(st.tuples(sides(), sides()), min_size=1, max_size=3))
    rows = draw(st.lists(st.sampled_from(shapes), min_size=1, max_size=5))
    return [noise(seed, *shape, channels) for seed, shape in enumerate(rows)]


def file_of(picture: Image.Image, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, kind, **options)
    return buffer.getvalue()


def photo(height: int = 40, width: int = 60) -> np.ndarray:
    """A smooth picture, as JPEG keeps well."""
    y, x = np.mgrid[0:height, 0:width]
    return np.stack([x * 255 / width, y * 255 / height, (x + y) * 255 / (width + height)], -1).astype(
        np.uint8
    )


def outcome(data: bytes) -> Any:
    """The pixels of a file, or why there are none."""
    try:
        return vision.decode([data])[0].numpy()
    except vision.ImageError as exc:
        return str(exc)
