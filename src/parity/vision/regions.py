"""Regions of pictures, each resized to one size: what a second model looks at after a detector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch

from parity.errors import ConfigError
from parity.vision.arguments import choice, flag, pictures_of, size_of
from parity.vision.boxes import boxes_of_each
from parity.vision.images import Images
from parity.vision.taps import Kernel, Taps, pixel_weights, resampled, taps_of

_KERNELS: tuple[Kernel, ...] = ("linear", "cubic")


def roi_crop_resize(
    images: Images,
    boxes: Sequence[torch.Tensor],
    size: tuple[int, int],
    *,
    interpolation: Literal["linear", "cubic"] = "linear",
    antialias: bool,
) -> Images:
    """Each box as a float32 picture of one size; those of the first picture first, in their order.

    A box is clipped to its picture. Pixel i of the result is then taken at start + (i + 0.5) * extent / size
    - 0.5 as by `resize`; its neighbours may lie beyond the box, and beyond the picture the edge pixel counts.
    A box of the whole picture gives what `resize` defines.

    Args:
        images: the pictures.
        boxes: for each picture (k, 4) float: left, top, right, bottom in pixels; 0 is the edge of the first
            pixel, and fractions count.
        size: height and width of each result, in pixels.
        interpolation: "linear" or "cubic".
        antialias: as for `resize`.

    Raises:
        ConfigError: boxes are not as told above, or nothing of one is within its picture.
    """
    images = pictures_of("roi_crop_resize", images)
    each = boxes_of_each("roi_crop_resize", boxes, len(images))
    height, width = size_of("roi_crop_resize", "size", size)
    interpolation = choice("roi_crop_resize", "interpolation", interpolation, _KERNELS)
    antialias = flag("roi_crop_resize", "antialias", antialias)
    made: list[torch.Tensor] = []
    for row, (image, found) in enumerate(zip(images, each, strict=True)):
        rows, columns, _ = image.shape
        clipped = np.clip(found, 0, [columns, rows, columns, rows])
        for place, (left, top, right, bottom) in enumerate(clipped.tolist()):
            if right <= left or bottom <= top:
                raise ConfigError(
                    f"roi_crop_resize: boxes of image {row} has {found[place].tolist()} at {place}; expected "
                    f"some of it within the picture of {columns} x {rows} pixels"
                )
            first, last, down = _along(rows, top, bottom, height, interpolation, antialias, image.device)
            start, end, across = _along(columns, left, right, width, interpolation, antialias, image.device)
            made.append(resampled(image[first:last, start:end].contiguous(), down, across))
    return Images(made, images.peak)


def _along(
    source: int, begin: float, end: float, size: int, kernel: Kernel, antialias: bool, device: torch.device
) -> tuple[int, int, Taps]:
    """The first pixel along an axis that counts, the one after the last, and the taps among them."""
    places, weights = pixel_weights(source, size, kernel, antialias, begin, end - begin)
    counted = places[weights != 0]
    first, last = int(counted.min()), int(counted.max()) + 1
    rounded = weights.astype(np.float32)
    return first, last, taps_of(places - first, rounded, last - first, device)
