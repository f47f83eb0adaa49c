"""The pictures among the inputs: decoded, resized in every way at hand, and written again with a change."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from parity.stages import Value
from parity.triage.case import Case
from parity.triage.values import Pair

Doubles = npt.NDArray[np.float64]
Pixels = npt.NDArray[Any]

_ORIENTATION_TAG = 0x0112


@dataclass(frozen=True)
class Picture:
    """One row's picture.

    Attributes:
        pixels: (H, W, C) as decoded, without turning; uint8 or uint16.
        orientation: its EXIF orientation, 1 without.
    """

    pixels: Pixels
    orientation: int = 1

    @property
    def has_alpha(self) -> bool:
        """Whether it has two or four channels, the last of which says how opaque a place is."""
        return self.pixels.shape[-1] in (2, 4)

    @property
    def deep(self) -> bool:
        """Whether it has more than 8 bits a channel."""
        return self.pixels.dtype != np.uint8


def picture_columns(case: Case) -> list[str]:
    """The columns of the rows that hold pictures."""
    return [field.name for field in case.divergence.rows.schema if holds_pictures(field)]


def holds_pictures(field: pa.Field[Any]) -> bool:
    """Whether a field of canonical type is an image, encoded or as pixels."""
    said = field.metadata or {}
    return said.get(b"parity.type") == b"Image"


def picture_pairs(case: Case) -> list[Pair]:
    """The diverging places whose values are numbers of at least two dimensions."""
    return [
        item
        for item in case.values
        if case.covers(item)
        and all(
            _is_array(side[row], 2) for row in case.rows_of(item) for side in (item.expected, item.obtained)
        )
    ]


def _is_array(value: Value | None, least: int) -> bool:
    return value is not None and value.ndim >= least and value.size >= 4 and value.dtype.kind in "biuf"


def picture_axes(value: Value) -> tuple[int, int]:
    """The axes of height and width: all but the one of channels."""
    if value.ndim >= 3 and value.shape[-1] > 4 and value.shape[-3] <= 4:
        return value.ndim - 2, value.ndim - 1
    return (value.ndim - 3, value.ndim - 2) if value.ndim >= 3 else (0, 1)


def source_pictures(case: Case, rows: Sequence[int]) -> list[Picture]:
    """The pictures of some rows, out of the first column of pictures; fewer where one cannot be read."""
    columns = picture_columns(case)
    if not columns:
        return []
    values = case.inputs[columns[0]]
    encoded = pat.is_binary(case.divergence.rows.schema.field(columns[0]).type)
    found: list[Picture] = []
    for row in rows:
        value = values[row]
        picture = None if value is None else (_decoded(value.tobytes()) if encoded else _as_picture(value))
        if picture is not None:
            found.append(picture)
    return found


def _as_picture(value: Value) -> Picture | None:
    return Picture(value) if value.ndim == 3 else None


def _decoded(data: bytes) -> Picture | None:
    try:
        from PIL import Image
    except ImportError:
        return None
    try:
        with Image.open(io.BytesIO(data)) as image:
            tag = int(image.getexif().get(_ORIENTATION_TAG, 1))
            if image.mode in ("P", "PA", "1") or "transparency" in image.info:
                image = image.convert("RGBA" if image.mode == "PA" or "transparency" in image.info else "RGB")
            elif image.mode.startswith("I"):
                levels = np.asarray(image).astype(np.uint16)
                return Picture(levels[..., None], tag)
            elif image.mode not in ("L", "LA", "RGB", "RGBA"):
                image = image.convert("RGB")
            pixels = np.asarray(image)
    except Exception:  # noqa: BLE001 - whatever a library raises on hostile bytes, there is no picture
        return None
    return Picture(pixels if pixels.ndim == 3 else pixels[..., None], tag)


def changed_pixels(picture: Picture, change: str) -> Pixels | None:
    """A picture's pixels (H, W, C) in uint8 after a change; None where the change does not apply."""
    pixels = picture.pixels
    if change in ("flatten-white", "flatten-black", "drop-alpha"):
        if not picture.has_alpha or picture.deep:
            return None
        colour, opaque = pixels[..., :-1].astype(np.float64), pixels[..., -1:].astype(np.float64) / 255
        if change == "drop-alpha":
            return pixels[..., :-1]
        ground = 255.0 if change == "flatten-white" else 0.0
        return np.rint(colour * opaque + ground * (1 - opaque)).astype(np.uint8)
    if not picture.deep:
        return None
    wide = pixels.astype(np.int64)
    if change == "high-byte":
        return (wide >> 8).astype(np.uint8)
    return (np.minimum(wide, 255) if change == "saturate" else wide % 256).astype(np.uint8)


def rewritten(rows: pa.Table, column: str, change: str) -> pa.Table | None:
    """The rows with each picture of a column changed where the change applies; None where none can be."""
    place = rows.schema.get_field_index(column)
    field = rows.schema.field(place)
    if not pat.is_binary(field.type):
        return None
    values: list[bytes | None] = []
    for data in cast("list[bytes | None]", rows.column(column).to_pylist()):
        picture = None if data is None else _decoded(data)
        pixels = None if picture is None else changed_pixels(picture, change)
        values.append(data if pixels is None else _png(pixels))
    return rows.set_column(place, field, pa.array(values, field.type))


def _png(pixels: Pixels) -> bytes:
    from PIL import Image

    sink = io.BytesIO()
    Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).save(sink, format="PNG")
    return sink.getvalue()


# Resizing.


def resized_ways(pixels: Pixels, like: Value, axes: tuple[int, int]) -> Iterator[tuple[str, Doubles]]:
    """The picture resized to the height and width of `like` in every way at hand, (H, W, C) in levels.

    Ways that smooth before shrinking have "antialias" in their name. Channels are brought to as many as
    `like` has, where that is a matter of repeating or dropping.
    """
    height, width = like.shape[axes[0]], like.shape[axes[1]]
    channels = like.size // max(1, height * width)
    if pixels.dtype != np.uint8 or height == 0 or width == 0:
        return
    if pixels.shape[-1] == 1 and channels == 3:
        pixels = np.repeat(pixels, 3, axis=-1)
    elif pixels.shape[-1] == 4 and channels == 3:
        pixels = pixels[..., :3]
    if pixels.shape[-1] != channels or pixels.shape[:2] == (height, width):
        return
    yield from _by_pillow(pixels, height, width)
    yield from _by_opencv(pixels, height, width)
    yield from _by_torch(pixels, height, width)


def _by_pillow(pixels: Pixels, height: int, width: int) -> Iterator[tuple[str, Doubles]]:
    try:
        from PIL import Image
    except ImportError:
        return
    image = Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)
    for name in ("BILINEAR", "BICUBIC", "LANCZOS", "BOX", "HAMMING", "NEAREST"):
        resized = np.asarray(image.resize((width, height), Image.Resampling[name]), np.float64)
        how = "" if name == "NEAREST" else " (antialias)"
        yield f"Pillow's {name.lower()}{how}", resized.reshape(height, width, -1)


def _by_opencv(pixels: Pixels, height: int, width: int) -> Iterator[tuple[str, Doubles]]:
    try:
        import cv2
    except ImportError:
        return
    library: Any = cv2
    for name in ("LINEAR", "CUBIC", "AREA", "LANCZOS4", "NEAREST"):
        flag = getattr(library, f"INTER_{name}")
        resized = library.resize(np.ascontiguousarray(pixels), (width, height), interpolation=flag)
        how = " (antialias)" if name == "AREA" else ""
        yield f"OpenCV's {name.lower()}{how}", np.asarray(resized, np.float64).reshape(height, width, -1)


def _by_torch(pixels: Pixels, height: int, width: int) -> Iterator[tuple[str, Doubles]]:
    torch = cast("Any", sys.modules.get("torch"))
    if torch is None:
        return
    values = torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1))).float()[None]
    for mode in ("bilinear", "bicubic"):
        for smooth in (False, True):
            resized = torch.nn.functional.interpolate(
                values, size=(height, width), mode=mode, antialias=smooth, align_corners=False
            )
            name = f"torch's {mode}{' (antialias)' if smooth else ''}"
            yield name, resized[0].permute(1, 2, 0).numpy().astype(np.float64)
