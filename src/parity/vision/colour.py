"""Colours, scales and rounding. Multiplication and addition are apart, so that host and device agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch

from parity.errors import ConfigError
from parity.vision import cvcuda, opencv
from parity.vision.arguments import choice, numbers, pictures_of, wholes
from parity.vision.fastpaths import T0, FastPath, Try, fast, pictures, register
from parity.vision.images import Images
from parity.vision.kept import kept

_LARGEST = torch.finfo(torch.float32).max
_GRAY_BITS = 15
_GRAY_INTEGERS = (9798, 19235, 3735)  # 0.299, 0.587 and 0.114 in 15 bits, as OpenCV has them
_GRAY_FLOATS = (0.299, 0.587, 0.114)


def to_float(images: Images) -> Images:
    """Float32 pictures with peak 1: x * float32(1/255) where the peak was 255."""
    images = pictures_of("to_float", images)
    if images.peak == 1.0:
        return images
    return images.map(lambda pixels: pixels.to(torch.float32) * _scalar(1 / 255), peak=1.0)


def to_u8(images: Images) -> Images:
    """uint8 pictures: rounded to the nearest level, ties to even, and saturated. NaN becomes 0."""
    images = pictures_of("to_u8", images)
    if images.dtype == torch.uint8:
        return images
    scale = 1.0 if images.peak == 255.0 else 255.0

    def change(pixels: torch.Tensor) -> torch.Tensor:
        scaled = pixels if scale == 1.0 else pixels * scale
        return scaled.clamp(0, 255).nan_to_num_(0.0).round_().to(torch.uint8)

    return images.map(change, peak=255.0)


def normalize(
    images: Images,
    *,
    mean: Sequence[float],
    std: Sequence[float],
    layout: Literal["NCHW", "NHWC"] = "NCHW",
) -> torch.Tensor:
    """(x / peak - mean) / std as one float32 tensor, by one multiplication and one subtraction.

    x * k - b with k = float32(1 / (peak * std)) and b = float32(mean / std), both computed in float64 first.

    Args:
        images: pictures of one size; none give (0, channels, 0, 0), or (0, 0, 0, channels).
        mean: the mean of each channel, for brightness 0 to 1.
        std: the standard deviation of each channel.
        layout: "NCHW" (n, channels, height, width) or "NHWC"; contiguous either way.

    Raises:
        ConfigError: the pictures differ in size, mean or std do not fit the channels, a std is 0, or the
            layout is unknown.
    """
    images = pictures_of("normalize", images)
    means, deviations = _checked(mean=mean, std=std, layout=layout)
    if not len(images):
        return torch.empty((0, len(means), 0, 0) if layout == "NCHW" else (0, 0, 0, len(means)))
    pixels = images.stack()
    channels = pixels.shape[3]
    if not len(means) == len(deviations) == channels:
        raise ConfigError(
            f"normalize: {len(means)} means and {len(deviations)} standard deviations for {channels} channels"
        )
    k, b = _factors(means, deviations, images.peak, pixels.device)
    if layout == "NHWC":
        return (pixels.to(torch.float32) * k).sub_(b)
    planes = (fast("to_planes", pixels) or _planes)(pixels).to(torch.float32)
    return planes.mul_(k[:, None, None]).sub_(b[:, None, None])


def _checked(*, mean: object, std: object, layout: object) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Means and deviations as `normalize` takes them whatever the pictures; raises ConfigError otherwise."""
    choice("normalize", "layout", layout, ("NCHW", "NHWC"))
    means, deviations = numbers("normalize", "mean", mean), numbers("normalize", "std", std)
    if len(means) != len(deviations) or len(means) not in (1, 3, 4):
        raise ConfigError(
            f"normalize: {len(means)} means (mean) and {len(deviations)} standard deviations (std); expected "
            "one of each for each of 1, 3 or 4 channels"
        )
    if not all(deviations):
        raise ConfigError(f"normalize: std {deviations}; no deviation is 0")
    for one, deviation in zip(means, deviations, strict=True):
        if abs(deviation) > _LARGEST or max(1.0, abs(one)) > _LARGEST * abs(deviation):
            raise ConfigError(
                f"normalize: mean {one} with std {deviation}; expected std, 1 / std and mean / std to be "
                f"up to {_LARGEST}"
            )
    return tuple(means), tuple(deviations)


@kept
def _factors(
    means: tuple[float, ...], deviations: tuple[float, ...], peak: float, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """The factor k and what is subtracted, b, of each channel; float32 on a device."""
    exact = np.asarray(means, np.float64), np.asarray(deviations, np.float64)
    k = torch.from_numpy((1 / (peak * exact[1])).astype(np.float32))
    b = torch.from_numpy((exact[0] / exact[1]).astype(np.float32))
    return k.to(device), b.to(device)


def _planes(pixels: torch.Tensor) -> torch.Tensor:
    """(n, C, H, W) of (n, H, W, C): a copy, even where the memory could be shared."""
    count, height, width, channels = pixels.shape
    return pixels.new_empty((count, channels, height, width)).copy_(pixels.permute(0, 3, 1, 2))


def rgb_to_gray(images: Images) -> Images:
    """Pictures of one channel: 0.299 R + 0.587 G + 0.114 B.

    For uint8 in 15-bit integers, rounded once, which is what OpenCV gives, bit for bit; alpha is left out.

    Raises:
        ConfigError: the pictures have no three colours.
    """
    images = pictures_of("rgb_to_gray", images, channels=(3, 4), instead="one channel is grey already")
    if images.dtype == torch.uint8:
        return images.map(lambda pixels: (fast("rgb_to_gray", pixels) or _gray_u8)(pixels))
    return images.map(_gray_float)


def _gray_u8(pixels: torch.Tensor) -> torch.Tensor:
    red, green, blue = (pixels[..., channel : channel + 1].to(torch.int32) for channel in range(3))
    weights = _GRAY_INTEGERS
    total = red * weights[0] + green * weights[1] + blue * weights[2] + (1 << (_GRAY_BITS - 1))
    return (total >> _GRAY_BITS).to(torch.uint8)


def _gray_float(pixels: torch.Tensor) -> torch.Tensor:
    red, green, blue = (pixels[..., channel : channel + 1] for channel in range(3))
    weights = [_scalar(weight) for weight in _GRAY_FLOATS]
    return red * weights[0] + green * weights[1] + blue * weights[2]


def swap_channels(images: Images, order: Sequence[int]) -> Images:
    """Pictures with their channels in another order, such as (2, 1, 0) for BGR; a channel may be left out.

    Raises:
        ConfigError: a channel is not there.
    """
    images = pictures_of("swap_channels", images)
    wanted = wholes("swap_channels", "order", order)
    if len(wanted) not in (1, 3, 4):
        raise ConfigError(f"swap_channels: order {wanted} has {len(wanted)} channels; expected 1, 3 or 4")
    if len(images) and not all(0 <= channel < images.channels for channel in wanted):
        raise ConfigError(f"swap_channels: order {wanted} of images with {images.channels} channels")
    if len(wanted) != images.channels:
        return images.map(lambda pixels: pixels[..., wanted])
    return images.map(lambda pixels: (fast("swap_channels", pixels) or _swapped)(pixels, wanted))


def add_alpha(images: Images) -> Images:
    """Pictures of four channels: red, green, blue and an alpha that hides nothing, which is the peak.

    Raises:
        ConfigError: the pictures have no three channels.
    """
    images = pictures_of("add_alpha", images, channels=(3,))
    return images.map(
        lambda pixels: torch.cat([pixels, pixels.new_full((*pixels.shape[:3], 1), images.peak)], 3)
    )


def drop_alpha(images: Images) -> Images:
    """Pictures of three channels, with the colours as they are: nothing is blended with a background.

    Raises:
        ConfigError: the pictures have no four channels.
    """
    images = pictures_of("drop_alpha", images, channels=(4,))
    return images.map(lambda pixels: pixels[..., :3].contiguous())


def _swapped(pixels: torch.Tensor, order: list[int]) -> torch.Tensor:
    return pixels[..., order]


def _gray_tries() -> list[Try]:
    return [lambda run, image=image: run(image) for image in pictures((3, 4))]


def _plane_tries() -> list[Try]:
    return [
        lambda run, image=image, dtype=dtype: run(image.to(dtype))
        for image in pictures()
        for dtype in (torch.uint8, torch.float32)
    ]


def _swap_tries() -> list[Try]:
    orders = {3: [2, 1, 0], 4: [2, 1, 0, 3]}
    return [
        lambda run, image=image, dtype=dtype: run(image.to(dtype), orders[image.shape[3]])
        for image in pictures((3, 4))
        for dtype in (torch.uint8, torch.float32)
    ]


register(FastPath("rgb_to_gray", "OpenCV", "host", opencv.loaded("gray"), _gray_u8, _gray_tries, T0))
register(FastPath("rgb_to_gray", "CV-CUDA", "device", cvcuda.loaded("gray"), _gray_u8, _gray_tries, T0))
register(FastPath("to_planes", "OpenCV", "host", opencv.loaded("to_planes"), _planes, _plane_tries, T0))
register(
    FastPath("swap_channels", "OpenCV", "host", opencv.loaded("swap_channels"), _swapped, _swap_tries, T0)
)
register(
    FastPath("swap_channels", "CV-CUDA", "device", cvcuda.loaded("swap_channels"), _swapped, _swap_tries, T0)
)


def _scalar(value: float) -> float:
    """The nearest float32, so that float32 times it is one rounding on every device."""
    return float(np.float32(value))
