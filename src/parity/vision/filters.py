"""Blur, and scores of sharpness and exposure. Borders are mirrored without the edge pixel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from parity.errors import ConfigError
from parity.vision import cvcuda, opencv
from parity.vision.arguments import odd, pictures_of, positive
from parity.vision.colour import rgb_to_gray
from parity.vision.curve import Curve
from parity.vision.fastpaths import T0, T1, FastPath, Try, fast, pictures, register
from parity.vision.geometry import pad
from parity.vision.images import Images

DARK = 5
"""The level up to which a pixel is clipped at the dark end, of 255."""

BRIGHT = 250
"""The level from which on it is clipped at the bright end."""


def gaussian_blur(images: Images, *, kernel: int, sigma: float) -> Images:
    """Float32 pictures, each pixel the mean of its kernel x kernel neighbours, weighted by a normal curve.

    Weights are computed in float64 and add up to 1; rows first, then columns.

    Args:
        images: the pictures.
        kernel: the side of the window in pixels, odd.
        sigma: the standard deviation of the curve, in pixels.

    Raises:
        ConfigError: the kernel is even or larger than a picture can mirror, or sigma is not positive.
    """
    images = pictures_of("gaussian_blur", images)
    kernel = odd("gaussian_blur", "kernel", kernel)
    sigma = positive("gaussian_blur", "sigma", sigma)
    reach, curve = kernel // 2, Curve(kernel, sigma)
    for height, width in images.sizes:
        if reach >= min(height, width):
            raise ConfigError(
                f"gaussian_blur: kernel {kernel} reaches {reach} pixels, more than can be mirrored from "
                f"{min(height, width)} pixels"
            )
    return images.map(lambda pixels: (fast("gaussian_blur", pixels) or _blurred)(pixels, curve))


def _blurred(pixels: torch.Tensor, curve: Curve) -> torch.Tensor:
    taps, reach = curve.weights, curve.kernel // 2
    padded = pad(Images(pixels.to(torch.float32)), reach, reach, reach, reach, mode="reflect").stack()
    rows = _weighted(padded, 2, pixels.shape[2], taps)
    return _weighted(rows, 1, pixels.shape[1], taps)


def _weighted(pixels: torch.Tensor, axis: int, size: int, taps: list[float]) -> torch.Tensor:
    """Shifted pixels times their weights, added in one order; convolutions take another for other shapes."""
    total = pixels.narrow(axis, 0, size) * taps[0]
    for place, weight in enumerate(taps[1:], start=1):
        total = total + pixels.narrow(axis, place, size) * weight
    return total


def sharpness(images: Images) -> torch.Tensor:
    """How sharp each picture is: the variance of the Laplacian of its grey levels 0 to 255, (N,) float32.

    The Laplacian is the sum of the four neighbours less four times the pixel. Below about 100 a photograph is
    commonly taken for blurred; the number depends on the size, so resize first.
    """
    images = pictures_of("sharpness", images)

    def measure(image: torch.Tensor) -> torch.Tensor:
        grey = _grey_levels(image, images.peak)
        # Of whole levels the Laplacian is exact, whoever computes it; of others, torch alone has these bits.
        faster = fast("laplacian", grey) if images.dtype == torch.uint8 else None
        return (faster or four_neighbours)(grey).to(torch.float64).var(correction=0)

    return _each(images, measure)


def four_neighbours(pixels: torch.Tensor) -> torch.Tensor:
    """The sum of the four neighbours less four times the pixel, of (n, H, W, C) float32."""
    _, height, width, _ = pixels.shape  # one pixel has no other to be mirrored: it is its own neighbour
    tall = pad(Images(pixels), 0, 1, 0, 1, mode="edge" if height == 1 else "reflect")
    mirrored = pad(tall, 1, 0, 1, 0, mode="edge" if width == 1 else "reflect").stack()
    beside = mirrored[:, :-2, 1:-1] + mirrored[:, 2:, 1:-1] + mirrored[:, 1:-1, :-2] + mirrored[:, 1:-1, 2:]
    return beside - 4 * mirrored[:, 1:-1, 1:-1]


@dataclass(frozen=True)
class Exposure:
    """How light each picture is; tensors of shape (N,) float32.

    Attributes:
        mean: the mean grey level, 0 to 1.
        dark: the share of pixels that are clipped at the dark end, up to level 5 of 255.
        bright: the share at the bright end, from level 250 on.
    """

    mean: torch.Tensor
    dark: torch.Tensor
    bright: torch.Tensor


def exposure(images: Images) -> Exposure:
    """The mean grey level of each picture, and the shares of its pixels that are clipped."""
    images = pictures_of("exposure", images)
    means: list[torch.Tensor] = []
    dark: list[torch.Tensor] = []
    bright: list[torch.Tensor] = []
    for image in images:
        grey = _grey_levels(image.unsqueeze(0), images.peak)
        means.append(grey.to(torch.float64).mean() / 255)
        dark.append((grey <= DARK).to(torch.float64).mean())
        bright.append((grey >= BRIGHT).to(torch.float64).mean())
    return Exposure(*(_numbers(found) for found in (means, dark, bright)))


def _each(images: Images, measure: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """One number for each picture by itself: sums over a batch may be added in another order."""
    return _numbers([measure(image.unsqueeze(0)) for image in images])


def _numbers(found: list[torch.Tensor]) -> torch.Tensor:
    """(N,) float32 of N tensors of one number, where they are: nothing waits for a device."""
    return torch.stack(found).to(torch.float32) if found else torch.empty(0, dtype=torch.float32)


def _grey_levels(pixels: torch.Tensor, peak: float) -> torch.Tensor:
    """(n, H, W, 1) float32 grey levels, 0 to 255."""
    images = Images(pixels, peak)
    grey = rgb_to_gray(images) if images.channels > 1 else images
    levels = grey.stack().to(torch.float32)
    return levels if peak == 255.0 else levels * 255.0


def _blur_tries() -> list[Try]:
    curves = Curve(5, 1.1), Curve(3, 0.4)
    return [
        lambda run, image=image, curve=curve: run(image, curve)
        for image in pictures()
        if min(image.shape[1:3]) > 2
        for curve in curves
    ]


def _laplacian_tries() -> list[Try]:
    return [lambda run, image=image: run(image.to(torch.float32)) for image in pictures()]


register(
    FastPath("gaussian_blur", "OpenCV", "host", opencv.loaded("gaussian_blur"), _blurred, _blur_tries, T1)
)
register(
    FastPath("gaussian_blur", "CV-CUDA", "device", cvcuda.loaded("gaussian_blur"), _blurred, _blur_tries, T1)
)
register(
    FastPath("laplacian", "OpenCV", "host", opencv.loaded("laplacian"), four_neighbours, _laplacian_tries, T0)
)
