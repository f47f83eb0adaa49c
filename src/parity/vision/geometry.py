"""Crop, pad, letterbox, flip and rotate: pixels move, and none is computed but by letterbox's resize."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from parity.errors import ConfigError
from parity.vision import cvcuda, opencv
from parity.vision.arguments import boxes_of, choice, flag, pictures_of, size_of, whole, within_float32
from parity.vision.fastpaths import T0, FastPath, Try, fast, pictures, register
from parity.vision.images import Images
from parity.vision.kept import kept
from parity.vision.resampling import Interpolation, checked_way, resize

PadMode = Literal["constant", "edge", "reflect", "symmetric"]

_PAD_MODES: tuple[PadMode, ...] = ("constant", "edge", "reflect", "symmetric")


def crop(images: Images, top: int, left: int, size: tuple[int, int]) -> Images:
    """The rectangle of `size` (height, width) that begins at (top, left); zeros where it lies outside."""
    images = pictures_of("crop", images)
    top, left = whole("crop", "top", top), whole("crop", "left", left)
    height, width = size_of("crop", "size", size)
    return images.map(lambda pixels: _window(pixels, top, left, height, width))


def center_crop(images: Images, size: tuple[int, int]) -> Images:
    """The rectangle of `size` (height, width) in the middle; zeros where a picture is smaller.

    It begins at round((side - size) / 2), ties to even, as torchvision's does.
    """
    images = pictures_of("center_crop", images)
    height, width = size_of("center_crop", "size", size)

    def change(pixels: torch.Tensor) -> torch.Tensor:
        top, left = middle((pixels.shape[1], pixels.shape[2]), (height, width))
        return _window(pixels, top, left, height, width)

    return images.map(change)


def middle(size: tuple[int, int], window: tuple[int, int]) -> tuple[int, int]:
    """Where `center_crop` takes its window (height, width) of a picture of a size: top and left."""
    return round((size[0] - window[0]) / 2), round((size[1] - window[1]) / 2)


def _window(pixels: torch.Tensor, top: int, left: int, height: int, width: int) -> torch.Tensor:
    count, rows, columns, channels = pixels.shape
    first, last = max(top, 0), min(top + height, rows)
    start, end = max(left, 0), min(left + width, columns)
    if (first, last, start, end) == (top, top + height, left, left + width):
        return (fast("crop", pixels) or _cut_out)(pixels, top, left, height, width)
    found = pixels.new_zeros((count, height, width, channels))
    if first < last and start < end:
        found[:, first - top : last - top, start - left : end - left] = pixels[:, first:last, start:end]
    return found


def _cut_out(pixels: torch.Tensor, top: int, left: int, height: int, width: int) -> torch.Tensor:
    return pixels[:, top : top + height, left : left + width]


def pad(
    images: Images,
    left: int = 0,
    top: int = 0,
    right: int = 0,
    bottom: int = 0,
    *,
    mode: PadMode = "constant",
    fill: float = 0.0,
) -> Images:
    """Pictures with a margin of so many pixels at each side.

    Args:
        images: the pictures.
        left: pixels at the left; likewise the others.
        top: pixels above.
        right: pixels at the right.
        bottom: pixels below.
        mode: "constant" (`fill`), "edge" (the edge pixel), "reflect" (mirrored without the edge pixel,
            OpenCV's 101) or "symmetric" (mirrored with it).
        fill: the value of the margin, at the pictures' own peak.

    Raises:
        ConfigError: a margin is negative, larger than a mirrored picture has pixels, or the mode is unknown.
    """
    images = pictures_of("pad", images)
    margins = {"left": left, "top": top, "right": right, "bottom": bottom}
    left, top, right, bottom = (whole("pad", name, margin) for name, margin in margins.items())
    if min(left, top, right, bottom) < 0:
        raise ConfigError(f"pad: margins {(left, top, right, bottom)} are not all 0 or more; use crop to cut")
    mode = choice("pad", "mode", mode, _PAD_MODES)
    fill = within_float32("pad", "fill", fill)
    if images.dtype == torch.uint8 and not (0 <= fill <= 255 and fill == int(fill)):
        raise ConfigError(f"pad: fill {fill} of uint8 pictures; expected a whole number from 0 to 255")

    def change(pixels: torch.Tensor) -> torch.Tensor:
        _, rows, columns, _ = pixels.shape
        if mode == "constant":
            return (fast("pad_constant", pixels) or _framed)(pixels, left, top, right, bottom, fill)
        _check_mirrored(rows, top, bottom, mode)
        _check_mirrored(columns, left, right, mode)
        return (fast("pad", pixels) or _padded)(pixels, left, top, right, bottom, mode)

    return images.map(change)


def _framed(pixels: torch.Tensor, left: int, top: int, right: int, bottom: int, fill: float) -> torch.Tensor:
    count, rows, columns, channels = pixels.shape
    found = pixels.new_full((count, top + rows + bottom, left + columns + right, channels), fill)
    found[:, top : top + rows, left : left + columns] = pixels
    return found


def _padded(
    pixels: torch.Tensor, left: int, top: int, right: int, bottom: int, mode: PadMode
) -> torch.Tensor:
    down = _mirrored(pixels.shape[1], top, bottom, mode, pixels.device)
    across = _mirrored(pixels.shape[2], left, right, mode, pixels.device)
    return pixels[:, down][:, :, across]


def _check_mirrored(count: int, before: int, after: int, mode: PadMode) -> None:
    most = {"reflect": count - 1, "symmetric": count}.get(mode)
    if most is not None and max(before, after) > most:
        raise ConfigError(f"pad: a margin of {max(before, after)} cannot be mirrored from {count} pixels")


@kept
def _mirrored(count: int, before: int, after: int, mode: PadMode, device: torch.device) -> torch.Tensor:
    places = torch.arange(-before, count + after, device=device)
    if mode == "edge":
        return places.clamp(0, count - 1)
    shift = 0 if mode == "reflect" else 1
    places = torch.where(places < 0, -places - shift, places)
    return torch.where(places >= count, 2 * (count - 1) + shift - places, places)


@dataclass(frozen=True)
class Placement:
    """Where letterbox put a picture: its size before and after, and where its first pixel went.

    Attributes:
        source: height and width before.
        scaled: height and width after it was resized.
        top: rows above it.
        left: columns to the left of it.
    """

    source: tuple[int, int]
    scaled: tuple[int, int]
    top: int
    left: int

    def unmap(self, boxes: torch.Tensor) -> torch.Tensor:
        """Boxes in the letterboxed picture as boxes in the source, clipped to it.

        Args:
            boxes: (..., 4) float, as left, top, right, bottom in pixels; 0 is the edge of the first pixel.

        Raises:
            ConfigError: the boxes are no such tensor.
        """
        boxes = boxes_of("unmap", boxes)
        (height, width), (rows, columns) = self.source, self.scaled
        scale = boxes.new_tensor([width / columns, height / rows] * 2)
        moved = (boxes - boxes.new_tensor([self.left, self.top] * 2)) * scale
        return torch.minimum(moved.clamp(min=0), boxes.new_tensor([width, height] * 2))


def letterbox(
    images: Images,
    size: tuple[int, int],
    *,
    interpolation: Interpolation = "linear",
    antialias: bool,
    fill: float | None = None,
) -> tuple[Images, list[Placement]]:
    """Pictures resized to fit into `size` at their own aspect, in the middle of a margin.

    The side that fits exactly gets the whole size, the other one is cut to whole pixels by integer division;
    of an odd margin the smaller half is at the top or left.

    Args:
        images: the pictures.
        size: height and width of the result, in pixels.
        interpolation: as for `resize`.
        antialias: as for `resize`.
        fill: the value of the margin, at the pictures' own peak; grey level 114 of 255 when not given.

    Returns:
        The pictures, all of `size`, and where each was put, for boxes to be mapped back.
    """
    images = pictures_of("letterbox", images)
    height, width = size_of("letterbox", "size", size)
    interpolation, antialias = checked_way("letterbox", interpolation, antialias)
    fill = 114.0 * images.peak / 255.0 if fill is None else within_float32("letterbox", "fill", fill)
    placements = [_placement(source, height, width) for source in images.sizes]
    made: list[torch.Tensor] = []
    places: dict[tuple[int, int], list[int]] = {}
    for row, source in enumerate(images.sizes):
        places.setdefault(source, []).append(row)
    found: dict[int, torch.Tensor] = {}
    for rows in places.values():
        placement = placements[rows[0]]
        group = Images([images[row] for row in rows], images.peak)
        small = resize(group, placement.scaled, interpolation=interpolation, antialias=antialias)
        bottom = height - placement.scaled[0] - placement.top
        right = width - placement.scaled[1] - placement.left
        boxed = pad(small, placement.left, placement.top, right, bottom, fill=fill)
        found.update(zip(rows, boxed, strict=True))
    made = [found[row] for row in range(len(images))]
    return Images(torch.stack(made) if made else made, images.peak), placements


def _placement(source: tuple[int, int], height: int, width: int) -> Placement:
    rows, columns = source
    if rows * width >= columns * height:
        scaled = (height, max(1, columns * height // rows))
    else:
        scaled = (max(1, rows * width // columns), width)
    return Placement(source, scaled, (height - scaled[0]) // 2, (width - scaled[1]) // 2)


def flip(images: Images, *, horizontal: bool = False, vertical: bool = False) -> Images:
    """Pictures mirrored left to right, top to bottom, or both."""
    images = pictures_of("flip", images)
    horizontal, vertical = flag("flip", "horizontal", horizontal), flag("flip", "vertical", vertical)
    if not (horizontal or vertical):
        return images
    return images.map(lambda pixels: (fast("flip", pixels) or _flipped)(pixels, horizontal, vertical))


def _flipped(pixels: torch.Tensor, horizontal: bool, vertical: bool) -> torch.Tensor:
    return pixels.flip([axis for axis, wanted in ((1, vertical), (2, horizontal)) if wanted])


def rotate90(images: Images, turns: int) -> Images:
    """Pictures turned anticlockwise by so many quarters."""
    images = pictures_of("rotate90", images)
    turns = whole("rotate90", "turns", turns)
    if turns % 4 == 0:
        return images
    return images.map(lambda pixels: (fast("rotate90", pixels) or _turned)(pixels, turns % 4))


def _turned(pixels: torch.Tensor, turns: int) -> torch.Tensor:
    return pixels.rot90(turns, (1, 2))


def _both() -> list[torch.Tensor]:
    return [image.to(dtype) for image in pictures() for dtype in (torch.uint8, torch.float32)]


def _flip_tries() -> list[Try]:
    ways = ((True, False), (False, True), (True, True))
    return [lambda run, image=image, way=way: run(image, *way) for image in _both() for way in ways]


def _turn_tries() -> list[Try]:
    return [
        lambda run, image=image, turns=turns: run(image, turns) for image in _both() for turns in (1, 2, 3)
    ]


def _pad_tries() -> list[Try]:
    return [
        lambda run, image=image, mode=mode: run(image, 2, 1, 0, 3, mode)
        for image in _both()
        for mode in ("edge", "reflect", "symmetric")
        if mode == "edge" or min(image.shape[1:3]) > 3
    ]


def _frame_tries() -> list[Try]:
    return [
        lambda run, image=image, fill=fill: run(image, 2, 1, 0, 3, fill)
        for image in _both()
        for fill in (0.0, 114.0, 7.6)
    ]


def _crop_tries() -> list[Try]:
    return [
        lambda run, image=image: run(image, 3, 5, image.shape[1] - 7, image.shape[2] - 6)
        for image in _both()
        if min(image.shape[1:3]) > 7
    ]


for _name, _function, _tries in (
    ("flip", _flipped, _flip_tries),
    ("rotate90", _turned, _turn_tries),
    ("pad", _padded, _pad_tries),
):
    register(FastPath(_name, "OpenCV", "host", opencv.loaded(_name), _function, _tries, T0))

for _name, _function, _tries in (
    ("crop", _cut_out, _crop_tries),
    ("flip", _flipped, _flip_tries),
    ("pad", _padded, _pad_tries),
    ("pad_constant", _framed, _frame_tries),
):
    register(FastPath(_name, "CV-CUDA", "device", cvcuda.loaded(_name), _function, _tries, T0))
