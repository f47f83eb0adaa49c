"""Arrays and encoded images as small pictures that any browser shows, and maps of where two differ.

PNG is written here, with zlib alone. Encoded images go as they are while they are small; larger ones, and
TIFF, are shown where Pillow is installed to shrink them.
"""

from __future__ import annotations

import base64
import functools
import io
import struct
import warnings
import zlib
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from parity.errors import counted
from parity.report.words import differ

MAX_SIDE = 160
"""Pixels of a picture's longer side; larger ones are shrunk by a whole factor."""

MAX_ENCODED = 48 * 1024
"""Bytes up to which an encoded image is shown as it is."""

_MAX_PIXELS = 40_000_000
_LEAST_SIDE = 8
_MOST_STRETCHED = 8

Layout = Literal["hw", "hwc", "chw"]
Pixels = npt.NDArray[np.uint8]
Values = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Picture:
    """An image file in memory, with its size in pixels, 0 where that is not known."""

    media_type: str
    data: bytes
    width: int = 0
    height: int = 0

    def uri(self) -> str:
        """The picture as a `data:` address."""
        return f"data:{self.media_type};base64,{base64.b64encode(self.data).decode('ascii')}"


def layout(shape: tuple[int, ...]) -> Layout | None:
    """How an array of this shape is a picture; None where it hardly is one: small, or very stretched."""
    if len(shape) == 2 and _has_sides(*shape):
        return "hw"
    if len(shape) == 3 and shape[2] in (1, 3, 4) and _has_sides(*shape[:2]):
        return "hwc"
    if len(shape) == 3 and shape[0] in (1, 3, 4) and _has_sides(*shape[1:]):
        return "chw"
    return None


def picture(values: Values, bounds: tuple[float, float] | None = None) -> Picture | None:
    """The picture of an array in one of the layouts; None for other shapes and types.

    uint8 and bool are shown as they are; other numbers from `bounds`, by default their least and greatest
    finite value, on 0..255.
    """
    pixels = _pixels(values, bounds)
    if pixels is None:
        return None
    small = _shrunk(pixels, "mean")
    return Picture("image/png", png(small), small.shape[1], small.shape[0])


def pictures(expected: Values, obtained: Values) -> tuple[Picture, Picture, Picture, str] | None:
    """Two arrays of one shape as pictures on one scale, the map of where they differ, and that in words.

    The map is black where they are equal and brightest where they differ most. None where they are no
    pictures, or not of one shape.
    """
    if expected.shape != obtained.shape or layout(expected.shape) is None:
        return None
    bounds = _bounds(expected, obtained)
    sides = picture(expected, bounds), picture(obtained, bounds)
    channels = (
        _channels_last(expected, layout(expected.shape)),
        _channels_last(obtained, layout(obtained.shape)),
    )
    if sides[0] is None or sides[1] is None:
        return None
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(channels[0].astype(np.float64) - channels[1].astype(np.float64)).max(axis=-1)
    odd = ~np.isfinite(apart) & ~_equal(*channels).all(axis=-1)
    apart[~np.isfinite(apart)] = 0.0
    most = float(apart.max(initial=0.0))
    heat = np.rint(apart / most * 255).astype(np.uint8) if most else np.zeros(apart.shape, np.uint8)
    heat[odd] = 255
    small = _shrunk(heat[..., None], "max")[..., 0]
    changed = int(np.count_nonzero(apart)) + int(np.count_nonzero(odd))
    words = f"{differ(changed, apart.size, 'pixel')}, by at most {most:.4g}"
    if odd.any():
        words += f"; {counted(int(np.count_nonzero(odd)), 'is', 'are')} NaN or infinite on one side"
    mapped = Picture("image/png", png(_heat()[small]), small.shape[1], small.shape[0])
    return sides[0], sides[1], mapped, words


def encoded(data: bytes) -> Picture | None:
    """The picture in an image file's bytes; None for what no browser shows and Pillow cannot decode."""
    kind = media_type(data)
    if kind is None:
        return None
    if kind == "image/tiff" or len(data) > MAX_ENCODED:
        pixels = decoded(data, shrink=True)
        return None if pixels is None else picture(pixels)
    return Picture(kind, data)


def media_type(data: bytes) -> str | None:
    """The media type that the first bytes of an image file tell; None for anything else, SVG included."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _SIGNATURES if data.startswith(start)), None)


def decoded(data: bytes, *, shrink: bool = False) -> Pixels | None:
    """The pixels (H, W, 3 or 4) of an image file, upright; None without Pillow, or where it fails."""
    try:
        from PIL import Image, ImageOps
    except ImportError:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(data)) as image:
                if image.width * image.height > _MAX_PIXELS:
                    return None
                if shrink:
                    image.draft("RGB", (2 * MAX_SIDE, 2 * MAX_SIDE))
                upright = ImageOps.exif_transpose(image)
                return np.asarray(upright.convert("RGBA" if "A" in upright.getbands() else "RGB"))
    except Exception:  # noqa: BLE001 - a broken image is shown as none; hostile ones fail in many ways
        return None


def png(pixels: Pixels) -> bytes:
    """A PNG file of (H, W), (H, W, 1), (H, W, 3) or (H, W, 4) uint8."""
    if pixels.ndim == 2:
        pixels = pixels[..., None]
    height, width, channels = pixels.shape
    lines = np.ascontiguousarray(pixels).reshape(height, width * channels)
    up = np.vstack([lines[:1], lines[1:] - lines[:-1]])  # PNG's filter 2: modulo 256, as uint8 subtracts
    packed = min(
        (_packed(kind, rows) for kind, rows in ((0, lines), (2, up))),
        key=len,
    )
    colour = {1: 0, 3: 2, 4: 6}[channels]
    head = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + _chunk(b"IDAT", packed) + _chunk(b"IEND", b"")


_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
)


def _has_sides(height: int, width: int) -> bool:
    short, long = sorted((height, width))
    return short >= _LEAST_SIDE and long <= _MOST_STRETCHED * short and height * width <= _MAX_PIXELS


def _channels_last(values: Values, found: Layout | None) -> Values:
    """The values as (H, W, C)."""
    if found == "hw":
        return values[..., None]
    return np.moveaxis(values, 0, -1) if found == "chw" else values


def _pixels(values: Values, bounds: tuple[float, float] | None) -> Pixels | None:
    found = layout(values.shape)
    if found is None or values.dtype.kind not in "biuf":
        return None
    values = _channels_last(values, found)
    if values.dtype == np.uint8:
        return values
    if values.dtype == np.bool_:
        return values.astype(np.uint8) * np.uint8(255)
    low, high = bounds or _bounds(values)
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = (values.astype(np.float64) - low) * (255 / ((high - low) or 1.0))
    return np.nan_to_num(np.rint(np.clip(scaled, 0, 255)), nan=0.0).astype(np.uint8)


def _bounds(*arrays: Values) -> tuple[float, float]:
    finite = [part[np.isfinite(part)] for part in arrays]
    found = [(float(part.min()), float(part.max())) for part in finite if part.size]
    if not found:
        return 0.0, 1.0
    return min(low for low, _ in found), max(high for _, high in found)


def _equal(expected: Values, obtained: Values) -> npt.NDArray[np.bool_]:
    """Where two arrays of numbers are equal, NaN to NaN."""
    return (expected == obtained) | ((expected != expected) & (obtained != obtained))


def _shrunk(pixels: Pixels, how: Literal["mean", "max"]) -> Pixels:
    """The pixels at no more than `MAX_SIDE` a side; "max" so that no difference is lost between pixels."""
    height, width, channels = pixels.shape
    factor = -(-max(height, width) // MAX_SIDE)
    if factor <= 1:
        return pixels
    rows, columns = -(-height // factor), -(-width // factor)
    wide = np.pad(pixels, ((0, rows * factor - height), (0, columns * factor - width), (0, 0)), "edge")
    blocks = wide.reshape(rows, factor, columns, factor, channels)
    if how == "max":
        return blocks.max(axis=(1, 3))
    return np.rint(blocks.mean(axis=(1, 3))).astype(np.uint8)


def _packed(kind: int, lines: npt.NDArray[np.uint8]) -> bytes:
    marked = np.hstack([np.full((len(lines), 1), kind, np.uint8), lines])
    return zlib.compress(marked.tobytes(), 9)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


@functools.cache
def _heat() -> npt.NDArray[np.uint8]:
    stops = np.array([0, 64, 128, 192, 255])
    colours = np.array([(8, 8, 14), (87, 25, 110), (188, 55, 84), (249, 142, 9), (252, 255, 164)])
    levels = np.arange(256)
    return np.stack([np.interp(levels, stops, colours[:, part]) for part in range(3)], axis=-1).astype(
        np.uint8
    )
