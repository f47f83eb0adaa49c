"""Each pixel by itself, or by the histogram of its own picture: threshold, invert, posterize, equalize.

Of four channels the last one is alpha and stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from parity.vision.arguments import number, pictures_of, whole
from parity.vision.images import Images


def threshold(images: Images, level: float) -> Images:
    """Pictures of two values: the peak where a value is greater than `level`, and 0 elsewhere.

    A value that equals the level becomes 0, and so does NaN. The dtype stays.

    Args:
        images: the pictures.
        level: the level, at the pictures' own peak; of float32 pictures it is rounded to float32.

    Raises:
        ConfigError: the level is no finite number.
    """
    images = pictures_of("threshold", images)
    level = number("threshold", "level", level)
    if images.dtype == torch.uint8:
        # Whole levels, as float32 would round the threshold to its neighbour.
        most = math.floor(min(max(level, -1.0), 255.0))
        return _on_colours(images, lambda pixels: (pixels.to(torch.int16) > most).to(torch.uint8) * 255)
    least = torch.tensor(level, dtype=torch.float64).to(torch.float32).item()  # a large one to infinity
    return _on_colours(images, lambda pixels: (pixels > least).to(torch.float32) * images.peak)


def invert(images: Images) -> Images:
    """The negative: the peak less each value. The dtype stays."""
    images = pictures_of("invert", images)
    return _on_colours(images, lambda pixels: _peak(images, pixels) - pixels)


def posterize(images: Images, bits: int) -> Images:
    """uint8 pictures with the upper `bits` bits of each value, the others 0, as Pillow's ImageOps has it.

    Args:
        images: uint8 pictures.
        bits: how many bits are kept, 1 to 8.

    Raises:
        ConfigError: the pictures are not uint8, or the bits are not 1 to 8.
    """
    images = pictures_of("posterize", images, dtype=torch.uint8, instead="to_u8 first")
    bits = whole("posterize", "bits", bits, least=1, most=8)
    kept = 256 - (1 << (8 - bits))
    return _on_colours(images, lambda pixels: pixels & kept)


def equalize(images: Images) -> Images:
    """uint8 pictures whose levels are spread evenly, each channel by itself, as Pillow's ImageOps has it.

    With n[i] pixels of level i and step = (all pixels - those of the greatest level) // 255, level i becomes
    (step // 2 + n[0] + ... + n[i - 1]) // step, at most 255. A channel of one level, or with a step of 0,
    stays as it is. All is whole numbers, so that the bits are the same everywhere.

    Raises:
        ConfigError: the pictures are not uint8.
    """
    images = pictures_of("equalize", images, dtype=torch.uint8, instead="to_u8 first")
    return _on_colours(images, lambda pixels: torch.stack([_equalized(image) for image in pixels]))


def _equalized(image: torch.Tensor) -> torch.Tensor:
    """One (H, W, C) picture, by a table of 256 levels for each channel."""
    channels = image.shape[2]
    shift = torch.arange(channels, device=image.device) * 256
    places = image.to(torch.int64) + shift
    counts = torch.bincount(places.reshape(-1), minlength=256 * channels).view(channels, 256)
    levels = torch.arange(256, device=image.device)
    greatest = (levels * (counts > 0)).amax(1, keepdim=True)
    step = (counts.sum(1, keepdim=True) - counts.gather(1, greatest)).div(255, rounding_mode="floor")
    before = counts.cumsum(1) - counts
    divisor = step.clamp(min=1)
    spread = (step.div(2, rounding_mode="floor") + before).div(divisor, rounding_mode="floor").clamp(max=255)
    table = torch.where(step > 0, spread, levels).to(torch.uint8)
    return table.reshape(-1)[places]


def _on_colours(images: Images, change: Callable[[torch.Tensor], torch.Tensor]) -> Images:
    """The pictures with their colours changed and their alpha, where there is one, as it was."""
    if images.channels != 4:
        return images.map(change)
    return images.map(lambda pixels: torch.cat([change(pixels[..., :3]), pixels[..., 3:]], 3))


def _peak(images: Images, pixels: torch.Tensor) -> torch.Tensor:
    return pixels.new_full((), images.peak)
