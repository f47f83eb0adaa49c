"""Pixels to image files, by Pillow alone: the same bytes in every runner."""

from __future__ import annotations

import io
from typing import Any, Final, Literal

import torch

from parity.errors import ConfigError
from parity.vision.arguments import choice, pictures_of, whole
from parity.vision.colour import to_u8
from parity.vision.decoding import pillow
from parity.vision.images import Images

Subsampling = Literal["4:4:4", "4:2:2", "4:2:0"]

LONGEST_JPEG_SIDE: Final = 65_500
"""The longest side that libjpeg writes, in pixels."""

_SUBSAMPLINGS: tuple[Subsampling, ...] = ("4:4:4", "4:2:2", "4:2:0")


def encode_png(images: Images) -> list[bytes]:
    """The pictures as PNG files, rounded to uint8 first; lossless.

    Raises:
        ConfigError: Pillow is not installed.
    """
    images = pictures_of("encode_png", images)
    return [_file(image, "PNG") for image in to_u8(images)]


def encode_jpeg(images: Images, *, quality: int, subsampling: Subsampling) -> list[bytes]:
    """The pictures as JPEG files (baseline, fixed Huffman tables, no EXIF), rounded to uint8 first.

    Pillow's libjpeg-turbo writes them, with its accurate transform: one release of Pillow gives the same
    bytes in every process. What is written is BT.601 in full range; grey pictures have no colour in the file.

    Args:
        images: pictures of 1 or 3 channels.
        quality: 1 to 100, as libjpeg scales its tables. Libraries default to 75, 85, 90 or 95.
        subsampling: the colour's share of the pixels: "4:4:4" all, "4:2:2" every second column, "4:2:0" every
            second column and row. Grey pictures have none to lose.

    Raises:
        ConfigError: the pictures have alpha or a side of more than 65500 pixels, the quality or subsampling
            is none of these, or Pillow is not installed.
    """
    images = pictures_of(
        "encode_jpeg", images, channels=(1, 3), instead="drop_alpha(images) leaves alpha out"
    )
    quality = whole("encode_jpeg", "quality", quality, least=1, most=100)
    subsampling = choice("encode_jpeg", "subsampling", subsampling, _SUBSAMPLINGS)
    for height, width in images.sizes:
        if max(height, width) > LONGEST_JPEG_SIDE:
            raise ConfigError(
                f"encode_jpeg: an image of {height} x {width} pixels; expected sides up to "
                f"{LONGEST_JPEG_SIDE}"
            )
    options: dict[str, Any] = {"quality": quality, "progressive": False, "optimize": False}
    if images.channels == 3:
        options["subsampling"] = subsampling
    return [_file(image, "JPEG", **options) for image in to_u8(images)]


def _file(image: torch.Tensor, form: str, **options: Any) -> bytes:
    pixels = image.cpu().numpy()
    buffer = io.BytesIO()
    pillow().fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels).save(buffer, form, **options)
    return buffer.getvalue()
