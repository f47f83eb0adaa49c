"""Colour spaces: RGB to hue, saturation and value and back, and what cameras and video give to RGB.

In floats each step is one addition, multiplication or division, so that host and device agree, and constants
are computed in float64 and rounded once. What is uint8 in and out is whole numbers all the way.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch

from parity.errors import ConfigError
from parity.vision import opencv
from parity.vision.arguments import choice, flag, pictures_of
from parity.vision.colour import to_float
from parity.vision.fastpaths import T0, FastPath, Try, fast, pictures, register
from parity.vision.images import Images
from parity.vision.kept import kept
from parity.vision.resampling import Contract

Standard = Literal["bt601", "bt709"]

_LUMA: dict[Standard, tuple[float, float]] = {"bt601": (0.299, 0.114), "bt709": (0.2126, 0.0722)}
"""What red and blue weigh in the luma of each standard; green has the rest."""

_NO_ALPHA = "drop_alpha leaves alpha out"
_CONTRACTS: tuple[Contract, ...] = ("float", "u8_exact")
_NOT_EXACT = "to_u8 gives such pictures, and contract='float' takes these"
_HUES = 180
_BITS = 12


def rgb_to_hsv(images: Images, *, contract: Contract = "float") -> Images:
    """Pictures of hue, saturation and value: float32 with peak 1, or uint8.

    Value is the largest of red, green and blue, saturation the largest less the smallest, as a share of the
    largest, and hue the place on the circle of colours, from 0 (red) by 1/3 (green) and 2/3 (blue) up to,
    and without, 1. Of greys the hue is 0, and of black the saturation, too.

    With the contract "u8_exact", pictures are uint8, before and after: hues are 0 to 179, two degrees each,
    saturation and value 0 to 255, in 12-bit integers, which is what OpenCV's COLOR_RGB2HSV gives, bit for
    bit, and what every device gives. (OpenCV has 360 hues for float32, and Pillow 256 for uint8.)

    Args:
        images: the pictures, of red, green and blue.
        contract: "float" or "u8_exact".

    Raises:
        ConfigError: the pictures have no three channels, or are not uint8 where the contract is.
    """
    exact = choice("rgb_to_hsv", "contract", contract, _CONTRACTS) == "u8_exact"
    images = pictures_of("rgb_to_hsv", images, channels=(3,), instead=_NO_ALPHA)
    if not exact:
        return to_float(images).map(_hsv)
    images = pictures_of("rgb_to_hsv", images, dtype=torch.uint8, instead=_NOT_EXACT)
    return images.map(lambda pixels: (fast("rgb_to_hsv", pixels) or _hsv_u8)(pixels))


def _hsv(pixels: torch.Tensor) -> torch.Tensor:
    red, green, blue = pixels.unbind(3)
    value = pixels.amax(3)
    spread = value - pixels.amin(3)
    grey = spread == 0
    width = torch.where(grey, torch.ones_like(spread), spread)
    sixths = torch.where(
        value == red,
        (green - blue) / width,
        torch.where(value == green, (blue - red) / width + 2, (red - green) / width + 4),
    )
    hue = torch.where(sixths < 0, sixths + 6, sixths) * _float32(1 / 6)
    hue = torch.where(grey | (hue >= 1), torch.zeros_like(hue), hue)
    lit = value > 0
    saturation = torch.where(lit, spread / torch.where(lit, value, torch.ones_like(value)), 0.0)
    return torch.stack([hue, saturation, value], 3)


def _hsv_u8(pixels: torch.Tensor) -> torch.Tensor:
    of_saturation, of_hue = _reciprocals(pixels.device)
    red, green, blue = pixels.to(torch.int32).unbind(3)
    value = torch.maximum(torch.maximum(red, green), blue)
    spread = value - torch.minimum(torch.minimum(red, green), blue)
    place = torch.where(
        value == red,
        green - blue,
        torch.where(value == green, blue - red + 2 * spread, red - green + 4 * spread),
    )
    half = 1 << (_BITS - 1)
    saturation = (spread * of_saturation[value] + half) >> _BITS
    hue = (place * of_hue[spread] + half) >> _BITS
    hue = torch.where(hue < 0, hue + _HUES, hue)
    return torch.stack([hue, saturation, value], 3).to(torch.uint8)


@kept
def _reciprocals(device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """255 / n and 180 / (6 n) for n from 0 to 255, in 12 bits, int32 (256,) each; 0 for 0.

    Source: RGB2HSV_b of OpenCV's modules/imgproc/src/color_hsv.simd.hpp.
    """
    counts = np.arange(1, 256, dtype=np.float64)
    tables = (np.rint(top * (1 << _BITS) / (each * counts)) for top, each in ((255, 1), (_HUES, 6)))
    of_saturation, of_hue = (
        torch.from_numpy(np.concatenate([[0], table]).astype(np.int32)).to(device) for table in tables
    )
    return of_saturation, of_hue


def hsv_to_rgb(images: Images, *, contract: Contract = "float") -> Images:
    """Pictures of red, green and blue, out of what `rgb_to_hsv` gives under the same contract.

    A hue outside the circle goes round it. Saturation and value are taken as they are. With the contract
    "u8_exact" each level is the exact one, rounded once, halves up, in whole numbers on every device; OpenCV
    and CV-CUDA compute with floats, and may be a level off.

    Args:
        images: float32 pictures with peak 1; for "u8_exact" uint8 pictures with 180 hues.
        contract: "float" or "u8_exact".

    Raises:
        ConfigError: the pictures are not such ones, or have no three channels.
    """
    if choice("hsv_to_rgb", "contract", contract, _CONTRACTS) == "u8_exact":
        images = pictures_of(
            "hsv_to_rgb",
            images,
            channels=(3,),
            dtype=torch.uint8,
            instead="rgb_to_hsv with contract='u8_exact' gives such pictures",
        )
        return images.map(_rgb_of_hsv_u8)
    images = pictures_of(
        "hsv_to_rgb", images, channels=(3,), dtype=torch.float32, instead="rgb_to_hsv gives such pictures"
    )
    if len(images) and images.peak != 1.0:
        raise ConfigError("hsv_to_rgb: pictures with peak 255; expected peak 1, as rgb_to_hsv gives them")
    return images.map(_rgb_of_hsv)


def _rgb_of_hsv(pixels: torch.Tensor) -> torch.Tensor:
    hue, saturation, value = pixels.unbind(3)
    sixths = (hue - hue.floor()) * 6.0
    chroma = value * saturation
    found: list[torch.Tensor] = []
    for shift in (5.0, 3.0, 1.0):
        place = sixths + shift
        place = torch.where(place >= 6, place - 6, place)
        share = torch.minimum(place, 4.0 - place).clamp(0, 1)
        found.append(value - chroma * share)
    return torch.stack(found, 3)


def _rgb_of_hsv_u8(pixels: torch.Tensor) -> torch.Tensor:
    """Red, green and blue, each v - v s share / (255 * 30), where share is 0 to 30 hues of two degrees."""
    hue, saturation, value = pixels.to(torch.int32).unbind(3)
    sixth = _HUES // 6
    whole = 255 * sixth
    found: list[torch.Tensor] = []
    for shift in (5, 3, 1):
        place = (hue + shift * sixth) % _HUES
        share = torch.minimum(place, 4 * sixth - place).clamp(0, sixth)
        level = value * (whole - saturation * share)
        found.append(torch.div(2 * level + whole, 2 * whole, rounding_mode="floor"))
    return torch.stack(found, 3).to(torch.uint8)


def yuv_to_rgb(images: Images, *, standard: Standard, full_range: bool) -> Images:
    """Float32 pictures of red, green and blue out of luma and two colour differences, Y, Cb and Cr.

    The result keeps the peak and may leave the range, which `to_u8` saturates.

    Args:
        images: pictures of three channels Y, Cb, Cr, uint8 or float32. Grey has Cb and Cr at level 128.
        standard: "bt601" (JPEG files, old video) or "bt709" (video of 720 lines and more).
        full_range: whether Y, Cb and Cr have levels 0 to 255, as in JPEG files; otherwise Y has 16 to 235
            and Cb and Cr 16 to 240, as most video.

    Raises:
        ConfigError: the pictures have no three channels, or the standard is unknown.
    """
    images = pictures_of("yuv_to_rgb", images, channels=(3,))
    standard, full_range = _checked("yuv_to_rgb", standard, full_range)

    def change(pixels: torch.Tensor) -> torch.Tensor:
        luma, blueness, redness = pixels.unbind(3)
        return _rgb_of_yuv(luma, blueness, redness, images.peak, standard, full_range)

    return images.map(change)


def nv12_to_rgb(images: Images, *, standard: Standard, full_range: bool) -> Images:
    """Float32 pictures of red, green and blue out of NV12 frames, as hardware decoders of video give them.

    Each pair of Cb and Cr holds for its four pixels alike, without interpolation, as OpenCV has it.

    Args:
        images: frames of one channel: for a picture of H rows, H rows of luma and under them H / 2 rows in
            which Cb and Cr take turns. H and the width are even.
        standard: as for `yuv_to_rgb`.
        full_range: as for `yuv_to_rgb`.

    Raises:
        ConfigError: a frame has not such a shape, or the standard is unknown.
    """
    images = pictures_of("nv12_to_rgb", images, channels=(1,))
    standard, full_range = _checked("nv12_to_rgb", standard, full_range)
    for height, width in images.sizes:
        if height % 3 or width % 2:
            raise ConfigError(
                f"nv12_to_rgb: a frame of {height} rows and {width} columns; expected 3 rows for every 2 of "
                "the picture, and an even number of columns"
            )

    def change(pixels: torch.Tensor) -> torch.Tensor:
        count, height, width, _ = pixels.shape
        rows = height // 3 * 2
        pairs = pixels[:, rows:, :, 0].reshape(count, rows // 2, width // 2, 2)
        every = pairs.repeat_interleave(2, 1).repeat_interleave(2, 2)
        return _rgb_of_yuv(
            pixels[:, :rows, :, 0], every[..., 0], every[..., 1], images.peak, standard, full_range
        )

    return images.map(change)


def _checked(operation: str, standard: object, full_range: object) -> tuple[Standard, bool]:
    known = choice(operation, "standard", standard, tuple(_LUMA))
    return known, flag(operation, "full_range", full_range)


def _rgb_of_yuv(
    luma: torch.Tensor,
    blueness: torch.Tensor,
    redness: torch.Tensor,
    peak: float,
    standard: Standard,
    full_range: bool,
) -> torch.Tensor:
    red, blue = _LUMA[standard]
    green = 1 - red - blue
    level = peak / 255
    stretch = 1.0 if full_range else 255 / 219
    chroma = 1.0 if full_range else 255 / 224
    y = (luma.to(torch.float32) - _float32(0 if full_range else 16 * level)) * _float32(stretch)
    cb = blueness.to(torch.float32) - _float32(128 * level)
    cr = redness.to(torch.float32) - _float32(128 * level)
    greenness = cb * _float32(2 * blue * (1 - blue) / green * chroma)
    greenness = greenness + cr * _float32(2 * red * (1 - red) / green * chroma)
    return torch.stack(
        [
            y + cr * _float32(2 * (1 - red) * chroma),
            y - greenness,
            y + cb * _float32(2 * (1 - blue) * chroma),
        ],
        3,
    )


def _float32(value: float) -> float:
    """The nearest float32, so that float32 times it is one rounding on every device."""
    return float(np.float32(value))


def _hsv_tries() -> list[Try]:
    return [lambda run, image=image: run(image) for image in pictures((3,))]


register(FastPath("rgb_to_hsv", "OpenCV", "host", opencv.loaded("hsv"), _hsv_u8, _hsv_tries, T0))
