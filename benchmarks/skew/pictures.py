"""Pictures such as people have, and the handler that scores them; the kinds differ in how pixels are read."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any, ClassVar

import cv2
import numpy as np
import pyarrow as pa
from PIL import Image as Pillow

from benchmarks.skew.natural_rows import ROWS, table_of
from parity import Batch, Float32, Handler, Image, Schema

SIDE = 32
_ORIENTATION = 0x0112

Pixels = np.ndarray[Any, Any]


class PictureScorer(Handler):
    """Scores a picture by how bright and how coloured each of its places is.

    Subclasses say how an encoded picture becomes pixels of `shape`, red first, and if they take any size.
    """

    inputs = Schema(image=Image())
    outputs = Schema(score=Float32())
    shape: ClassVar[tuple[int, ...]] = (SIDE, SIDE, 3)
    any_size: ClassVar[bool] = False

    def pixels(self, data: bytes) -> Pixels:
        """The pixels of an encoded picture."""
        raise NotImplementedError

    def preprocess(self, batch: Batch) -> Pixels:
        found: list[Pixels] = []
        for row, data in enumerate(batch["image"].to_pylist()):
            if self.any_size or opened(data).size == (SIDE, SIDE):
                found.append(self.pixels(data))
            else:
                batch.reject(row, f"the picture is not {SIDE} x {SIDE}")
                found.append(np.zeros(self.shape, np.uint8))
        return np.stack(found)

    def inference(self, inputs: Pixels) -> np.ndarray:
        weights = np.random.default_rng(7).normal(size=inputs.shape[1:])
        return (inputs * weights).mean(axis=tuple(range(1, inputs.ndim)))

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"score": outputs.astype(np.float32)}


def photo(
    seed: int, height: int = SIDE, width: int = SIDE, *, grey: bool = False, flat: bool = False
) -> Pixels:
    """A picture, (height, width, 3) uint8: soft light, two objects with hard edges, fine texture.

    Args:
        seed: which picture.
        height: in pixels.
        width: in pixels.
        grey: the three channels are equal.
        flat: soft light alone, with nothing near black or white.
    """
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[0 : 1 : complex(height), 0 : 1 : complex(width)][..., None]
    waves = rng.uniform(0.5, 2.5, (2, 3)), rng.uniform(0, 6.28, 3)
    light = 128 + 50 * np.cos(waves[0][0] * rows * 3 + waves[0][1] * columns * 3 + waves[1])
    if not flat:
        for _ in range(2):
            top, left = rng.uniform(0, 0.6, 2)
            bottom, right = top + rng.uniform(0.2, 0.4), left + rng.uniform(0.2, 0.4)
            inside = (rows > top) & (rows < bottom) & (columns > left) & (columns < right)
            light = np.where(inside, rng.choice([10.0, 90.0, 170.0, 250.0], 3), light)
        light = light + rng.normal(0, 18, (height, width, 1))
    if grey:
        light = np.repeat(light.mean(axis=2, keepdims=True), 3, axis=2)
    return np.clip(np.rint(light), 0, 255).astype(np.uint8)


def png(pixels: Pixels, mode: str | None = None) -> bytes:
    """The pixels as a PNG file; (H, W) uint16 makes one of 16 bits."""
    kept = io.BytesIO()
    image = Pillow.fromarray(pixels)
    (image if mode is None else image.convert(mode)).save(kept, "PNG")
    return kept.getvalue()


def jpeg(pixels: Pixels, *, quality: int = 90, orientation: int | None = None) -> bytes:
    """The pixels as a JPEG file, with an EXIF orientation if one is given."""
    kept = io.BytesIO()
    exif = Pillow.Exif()
    if orientation is not None:
        exif[_ORIENTATION] = orientation
    Pillow.fromarray(pixels).save(kept, "JPEG", quality=quality, exif=exif)
    return kept.getvalue()


def table(images: list[bytes]) -> pa.Table:
    """The golden rows."""
    assert len(images) == ROWS
    return table_of({"image": pa.array(images, pa.binary())})


def opened(data: bytes) -> Pillow.Image:
    """The picture as Pillow opens it."""
    return Pillow.open(io.BytesIO(data))


def read_by_opencv(data: bytes, flags: int) -> Pixels:
    """The picture as OpenCV reads it: blue first."""
    return np.asarray(cv2.imdecode(np.frombuffer(data, np.uint8), flags))


def pillow_pixels(data: bytes) -> Pixels:
    """The pixels as Pillow gives them, red first, (H, W, 3) uint8."""
    return np.asarray(opened(data).convert("RGB"))


def fitted(pixels: Pixels) -> Pixels:
    """The pixels brought to SIDE x SIDE by Pillow, which filters over the whole source area."""
    if pixels.shape[:2] == (SIDE, SIDE):
        return pixels
    return np.asarray(Pillow.fromarray(pixels).resize((SIDE, SIDE), Pillow.Resampling.BILINEAR))


def coloured(row: Mapping[str, Any]) -> bool:
    """Whether the row's picture has colours."""
    pixels = pillow_pixels(row["image"])
    return bool((pixels != pixels[..., ::-1]).any())
