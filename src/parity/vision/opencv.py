"""OpenCV's way of an operation, on the host: (n, H, W, C) tensors in and out, each picture by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import torch

from parity.vision.curve import Curve

Pixels = torch.Tensor

LONGEST_SIDE: Final = 1024
"""OpenCV has places in float32: along a longer side they are off by more than the tolerance."""


def loaded(name: str) -> Callable[[], Callable[..., Any]]:
    """What loads the function of this module that is named, where OpenCV can be imported."""

    def load() -> Callable[..., Any]:
        cv2 = _cv2()
        # As many as torch has: more would be taken from the other requests.
        cv2.setNumThreads(min(cv2.getNumThreads(), torch.get_num_threads()))
        return globals()[name]

    return load


def _cv2() -> Any:
    try:
        import cv2
    except ModuleNotFoundError:
        raise ImportError("OpenCV is not installed: pip install 'parity[opencv]'") from None
    except ImportError as exc:
        raise ImportError(f"OpenCV cannot be imported: {exc}") from exc
    return cv2


def _each(pixels: Pixels, change: Callable[[Any], Any], dtype: Any = None) -> Pixels:
    """`change` of each picture's (H, W, C) array; OpenCV drops an axis of one channel."""
    array = pixels.contiguous().numpy()
    if dtype is not None and array.dtype != dtype:
        array = array.astype(dtype)
    made = [torch.from_numpy(_with_channels(change(image))) for image in array]
    return made[0].unsqueeze(0) if len(made) == 1 else torch.stack(made)


def _with_channels(image: Any) -> Any:
    return image[..., None] if image.ndim == 2 else image


def resize(pixels: Pixels, height: int, width: int, kernel: str) -> Pixels:
    """Linear or cubic without antialias, float32."""
    cv2 = _cv2()
    code = cv2.INTER_LINEAR if kernel == "linear" else cv2.INTER_CUBIC
    found = np.empty((pixels.shape[0], height, width, pixels.shape[3]), np.float32)
    for image, place in zip(pixels.contiguous().numpy(), found, strict=True):
        cv2.resize(image.astype(np.float32, copy=False), (width, height), place, interpolation=code)
    return torch.from_numpy(found)


def gray(pixels: Pixels) -> Pixels:
    """uint8 RGB or RGBA to grey."""
    cv2 = _cv2()
    return _recoloured(pixels, cv2.COLOR_RGB2GRAY if pixels.shape[3] == 3 else cv2.COLOR_RGBA2GRAY)


def hsv(pixels: Pixels) -> Pixels:
    """uint8 RGB to 180 hues, saturation and value."""
    return _recoloured(pixels, _cv2().COLOR_RGB2HSV)


def _recoloured(pixels: Pixels, code: int) -> Pixels:
    count, height, width, channels = pixels.shape
    flat = pixels.contiguous().numpy().reshape(count * height, width, channels)
    return torch.from_numpy(_cv2().cvtColor(flat, code).reshape(count, height, width, -1))


def gaussian_blur(pixels: Pixels, curve: Curve) -> Pixels:
    """Means weighted by a normal curve."""
    return blur(pixels, curve.weights)


def blur(pixels: Pixels, weights: Sequence[float]) -> Pixels:
    """Weighted means along both axes, edges mirrored without the edge pixel, float32."""
    cv2 = _cv2()
    column = np.asarray(weights, np.float32)
    border = cv2.BORDER_REFLECT_101
    return _each(
        pixels,
        lambda image: cv2.sepFilter2D(image, cv2.CV_32F, column, column, borderType=border),
        np.float32,
    )


def laplacian(pixels: Pixels) -> Pixels:
    """The four neighbours less four times the pixel, of float32 pictures."""
    cv2 = _cv2()
    return _each(pixels, lambda image: cv2.Laplacian(image, cv2.CV_32F, ksize=1))


def box_sum(pixels: Pixels, kernel: int) -> Pixels:
    """Sums over windows of uint8 pictures, edges mirrored without the edge pixel, float32."""
    cv2 = _cv2()
    border = cv2.BORDER_REFLECT_101
    return _each(
        pixels,
        lambda image: cv2.boxFilter(image, cv2.CV_32F, (kernel, kernel), normalize=False, borderType=border),
    )


def erode(pixels: Pixels, kernel: int) -> Pixels:
    """The least value of each window; what lies outside does not count."""
    cv2 = _cv2()
    window = np.ones((kernel, kernel), np.uint8)
    return _each(pixels, lambda image: cv2.erode(image, window))


def dilate(pixels: Pixels, kernel: int) -> Pixels:
    """The greatest value of each window; what lies outside does not count."""
    cv2 = _cv2()
    window = np.ones((kernel, kernel), np.uint8)
    return _each(pixels, lambda image: cv2.dilate(image, window))


def median_blur(pixels: Pixels, kernel: int) -> Pixels:
    """The middle value of each window of uint8 pictures, edges repeated."""
    cv2 = _cv2()
    return _each(pixels, lambda image: cv2.medianBlur(image, kernel))


def flip(pixels: Pixels, horizontal: bool, vertical: bool) -> Pixels:
    """Mirrored left to right, top to bottom, or both."""
    cv2 = _cv2()
    code = -1 if horizontal and vertical else int(horizontal)
    return _each(pixels, lambda image: cv2.flip(image, code))


def rotate90(pixels: Pixels, turns: int) -> Pixels:
    """Turned anticlockwise by 1, 2 or 3 quarters."""
    cv2 = _cv2()
    code = {1: cv2.ROTATE_90_COUNTERCLOCKWISE, 2: cv2.ROTATE_180, 3: cv2.ROTATE_90_CLOCKWISE}[turns]
    return _each(pixels, lambda image: cv2.rotate(image, code))


def pad(pixels: Pixels, left: int, top: int, right: int, bottom: int, mode: str) -> Pixels:
    """A margin of edge pixels, or mirrored with them or without."""
    cv2 = _cv2()
    codes = {"edge": cv2.BORDER_REPLICATE, "reflect": cv2.BORDER_REFLECT_101, "symmetric": cv2.BORDER_REFLECT}
    return _each(pixels, lambda image: cv2.copyMakeBorder(image, top, bottom, left, right, codes[mode]))


def swap_channels(pixels: Pixels, order: Sequence[int]) -> Pixels:
    """Channels in another order, as many as before."""
    cv2 = _cv2()
    pairs = [number for place, channel in enumerate(order) for number in (channel, place)]

    def mixed(image: Any) -> Any:
        made = np.empty((*image.shape[:2], len(order)), image.dtype)
        cv2.mixChannels([image], [made], pairs)
        return made

    return _each(pixels, mixed)


def to_planes(pixels: Pixels) -> Pixels:
    """(n, C, H, W), each channel by itself."""
    cv2 = _cv2()
    array = pixels.contiguous().numpy()
    count, height, width, channels = array.shape
    found = np.empty((count, channels, height, width), array.dtype)
    pairs = [channel for channel in range(channels) for _ in range(2)]
    for image, planes in zip(array, found, strict=True):
        cv2.mixChannels([image], list(planes), pairs)
    return torch.from_numpy(found)


def swap_axes(image: Pixels) -> Pixels:
    """(W, H, C) of one (H, W, C) picture."""
    return torch.from_numpy(_with_channels(_cv2().transpose(image.contiguous().numpy())))


def warp(image: Pixels, x: Pixels, y: Pixels) -> Pixels:
    """(height, width, C) float32 of one (H, W, C) picture at places (height, width) float64, linearly."""
    cv2 = _cv2()
    rows, columns, _ = image.shape
    across, down = (
        # Two pixels outside is as good as anywhere outside, and float32 is finest near the picture.
        place.nan_to_num(-2.0, count + 1.0, -2.0).clamp_(-2.0, count + 1.0).to(torch.float32).numpy()
        for place, count in ((x, columns), (y, rows))
    )
    pixels = image.contiguous().numpy().astype(np.float32, copy=False)
    found = cv2.remap(pixels, across, down, cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT)
    return torch.from_numpy(_with_channels(found))
