"""What a window around each pixel gives: its mean, least, greatest or middle value, or the Laplacian.

Each picture by itself. Borders differ by operation, and each says its own.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from parity.errors import ConfigError
from parity.vision import opencv
from parity.vision.arguments import odd, pictures_of
from parity.vision.fastpaths import T0, FastPath, Try, fast, pictures, register
from parity.vision.filters import four_neighbours
from parity.vision.geometry import pad
from parity.vision.images import Images

_MOST_AT_ONCE = 1 << 24
"""Values that a median holds at once; larger pictures go by strips of rows."""


def box_blur(images: Images, *, kernel: int) -> Images:
    """Float32 pictures, each pixel the mean of its kernel x kernel neighbours, itself among them.

    Borders are mirrored without the edge pixel. The sum is taken first, rows first, and multiplied by
    float32(1 / kernel²) once: of uint8 pictures the sums are whole numbers, so that the bits are the same on
    every device as long as the kernel is below 256.

    Args:
        images: the pictures.
        kernel: the side of the window in pixels, odd.

    Raises:
        ConfigError: the kernel is even or larger than a picture can mirror.
    """
    images = pictures_of("box_blur", images)
    kernel = odd("box_blur", "kernel", kernel)
    for height, width in images.sizes:
        if kernel // 2 >= min(height, width):
            raise ConfigError(
                f"box_blur: kernel {kernel} reaches {kernel // 2} pixels, more than can be mirrored from "
                f"{min(height, width)} pixels"
            )
    exact = images.dtype == torch.uint8 and kernel < 256

    def change(pixels: torch.Tensor) -> torch.Tensor:
        faster = fast("box_sum", pixels) if exact else None
        return (faster or _box_sum)(pixels, kernel) * float(np.float32(1 / kernel**2))

    return images.map(change)


def _box_sum(pixels: torch.Tensor, kernel: int) -> torch.Tensor:
    reach = kernel // 2
    padded = pad(Images(pixels.to(torch.float32)), reach, reach, reach, reach, mode="reflect").stack()
    return _along(_along(padded, 2, kernel, torch.add), 1, kernel, torch.add)


def laplacian(images: Images) -> Images:
    """Float32 pictures: the sum of the four neighbours less four times the pixel, each channel by itself.

    Borders are mirrored without the edge pixel; one row or column is its own neighbour. The result may be
    negative, which `to_u8` saturates.
    """
    images = pictures_of("laplacian", images)
    exact = images.dtype == torch.uint8

    def change(pixels: torch.Tensor) -> torch.Tensor:
        faster = fast("laplacian", pixels) if exact else None
        return (faster or four_neighbours)(pixels.to(torch.float32))

    return images.map(change)


def erode(images: Images, *, kernel: int) -> Images:
    """Pictures of the least value in the kernel x kernel window around each pixel; the dtype stays.

    What lies outside the picture does not count. A NaN in the window gives NaN.

    Args:
        images: the pictures.
        kernel: the side of the window in pixels, odd.

    Raises:
        ConfigError: the kernel is even.
    """
    images = pictures_of("erode", images)
    kernel = odd("erode", "kernel", kernel)
    return _by_whole_levels(images, "erode", _eroded, kernel)


def dilate(images: Images, *, kernel: int) -> Images:
    """Pictures of the greatest value in the kernel x kernel window around each pixel; otherwise as `erode`.

    Raises:
        ConfigError: the kernel is even.
    """
    images = pictures_of("dilate", images)
    kernel = odd("dilate", "kernel", kernel)
    return _by_whole_levels(images, "dilate", _dilated, kernel)


def median_blur(images: Images, *, kernel: int) -> Images:
    """Pictures of the middle value in the kernel x kernel window around each pixel; the dtype stays.

    Borders are the edge pixel, repeated. A NaN in the window gives NaN.

    Args:
        images: the pictures.
        kernel: the side of the window in pixels, odd.

    Raises:
        ConfigError: the kernel is even.
    """
    images = pictures_of("median_blur", images)
    kernel = odd("median_blur", "kernel", kernel)
    return _by_whole_levels(images, "median_blur", _middle, kernel)


def _by_whole_levels(
    images: Images, operation: str, definition: Callable[[torch.Tensor, int], torch.Tensor], kernel: int
) -> Images:
    """By a fast path for uint8 alone: libraries order NaN, and -0 and 0, in their own ways."""
    if kernel == 1:
        return images
    whole = images.dtype == torch.uint8
    return images.map(
        lambda pixels: ((fast(operation, pixels) if whole else None) or definition)(pixels, kernel)
    )


def _eroded(pixels: torch.Tensor, kernel: int) -> torch.Tensor:
    outside = 255 if pixels.dtype == torch.uint8 else float("inf")
    return _extreme(pixels, kernel, outside, torch.minimum)


def _dilated(pixels: torch.Tensor, kernel: int) -> torch.Tensor:
    outside = 0 if pixels.dtype == torch.uint8 else float("-inf")
    return _extreme(pixels, kernel, outside, torch.maximum)


def _extreme(
    pixels: torch.Tensor,
    kernel: int,
    outside: float,
    join: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
) -> torch.Tensor:
    count, height, width, channels = pixels.shape
    # Beyond the picture's own length a window holds nothing more.
    down, across = min(kernel // 2, height - 1), min(kernel // 2, width - 1)
    padded = pixels.new_full((count, height + 2 * down, width + 2 * across, channels), outside)
    padded[:, down : down + height, across : across + width] = pixels
    return _along(_along(padded, 2, 2 * across + 1, join), 1, 2 * down + 1, join)


def _middle(pixels: torch.Tensor, kernel: int) -> torch.Tensor:
    reach = kernel // 2
    padded = pad(Images(pixels), reach, reach, reach, reach, mode="edge").stack()
    rows, values = pixels.shape[1], pixels[0, 0].numel() * kernel**2
    strip = max(1, _MOST_AT_ONCE // values)
    return torch.stack(
        [
            torch.cat(
                [
                    _middle_of(image[first : min(first + strip, rows) + 2 * reach], kernel)
                    for first in range(0, rows, strip)
                ]
            )
            for image in padded
        ]
    )


def _middle_of(image: torch.Tensor, kernel: int) -> torch.Tensor:
    """(H - kernel + 1, W - kernel + 1, C) medians of one padded (H, W, C) picture."""
    windows = image.unfold(0, kernel, 1).unfold(1, kernel, 1)
    return windows.reshape(*windows.shape[:3], kernel**2).median(-1).values


def _along(
    pixels: torch.Tensor,
    axis: int,
    kernel: int,
    join: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
) -> torch.Tensor:
    """Windows of so many pixels along an axis, joined one after another, in one order for all shapes."""
    size = pixels.shape[axis] - kernel + 1
    total = pixels.narrow(axis, 0, size)
    for place in range(1, kernel):
        total = join(total, pixels.narrow(axis, place, size))
    return total


def _tries(least: int) -> list[Try]:
    return [
        lambda run, image=image, kernel=kernel: run(image, kernel)
        for image in pictures()
        for kernel in (3, 5, 9)
        if kernel // 2 < least or kernel // 2 < min(image.shape[1:3])
    ]


def _sum_tries() -> list[Try]:
    return _tries(0)


def _any_tries() -> list[Try]:
    return _tries(9)


for _name, _function in (("erode", _eroded), ("dilate", _dilated), ("median_blur", _middle)):
    register(FastPath(_name, "OpenCV", "host", opencv.loaded(_name), _function, _any_tries, T0))
register(FastPath("box_sum", "OpenCV", "host", opencv.loaded("box_sum"), _box_sum, _sum_tries, T0))
