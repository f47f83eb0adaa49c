"""Warps: each pixel of the result is taken where a matrix says; centres of pixels have whole coordinates.

A matrix maps places of the result to places of the source, (x, y) with x to the right and y down. Places are
computed in float64, so that they hold for pictures of any size; what lies outside a picture is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, cast

import numpy as np
import torch

from parity.errors import ConfigError
from parity.vision import opencv
from parity.vision.arguments import choice, kind, number, numbers, pictures_of, size_of
from parity.vision.fastpaths import T1, FastPath, Try, fast, pictures, register
from parity.vision.images import Images

WarpInterpolation = Literal["linear", "nearest"]
Matrix = Sequence[Sequence[float]] | np.ndarray[Any, Any] | torch.Tensor
"""Rows of numbers; an array or tensor of three axes where each picture has its own."""

_INTERPOLATIONS: tuple[WarpInterpolation, ...] = ("linear", "nearest")
_QUARTERS = {0.0: (1.0, 0.0), 90.0: (0.0, 1.0), 180.0: (-1.0, 0.0), 270.0: (0.0, -1.0)}


def warp_affine(
    images: Images,
    matrix: Matrix,
    size: tuple[int, int] | None = None,
    *,
    interpolation: WarpInterpolation = "linear",
) -> Images:
    """Pictures whose pixel (x, y) is the source's at `matrix` (x, y, 1), as OpenCV's WARP_INVERSE_MAP.

    Linear weighs the four pixels around the place, those outside being 0, and gives float32, unrounded.
    Nearest takes the pixel at floor(place + 0.5) and keeps the dtype.

    Args:
        images: the pictures.
        matrix: (2, 3), or (N, 2, 3) with one for each picture.
        size: height and width of the result; each picture's own when not given.
        interpolation: "linear" or "nearest".

    Raises:
        ConfigError: the matrix has another shape or is not finite, the size is not positive, or the
            interpolation is unknown.
    """
    images = pictures_of("warp_affine", images)
    affine = _matrices("warp_affine", matrix, (2, 3), len(images))
    last = np.broadcast_to(np.array([0.0, 0.0, 1.0]), (len(images), 1, 3))
    return _warped("warp_affine", images, np.concatenate([affine, last], axis=1), size, interpolation)


def warp_perspective(
    images: Images,
    matrix: Matrix,
    size: tuple[int, int] | None = None,
    *,
    interpolation: WarpInterpolation = "linear",
) -> Images:
    """Pictures whose pixel (x, y) is the source's at (u / w, v / w), with (u, v, w) = `matrix` (x, y, 1).

    Where w is 0 the pixel is 0; all else is as for `warp_affine`.

    Args:
        images: the pictures.
        matrix: (3, 3), or (N, 3, 3) with one for each picture.
        size: height and width of the result; each picture's own when not given.
        interpolation: "linear" or "nearest".

    Raises:
        ConfigError: as for `warp_affine`.
    """
    images = pictures_of("warp_perspective", images)
    homography = _matrices("warp_perspective", matrix, (3, 3), len(images))
    return _warped("warp_perspective", images, homography, size, interpolation)


def rotate(
    images: Images, degrees: float | Sequence[float], *, interpolation: WarpInterpolation = "linear"
) -> Images:
    """Pictures of their own size, turned anticlockwise about ((width - 1) / 2, (height - 1) / 2).

    What comes from outside is 0. Whole quarters are exact: `rotate90` keeps all pixels of a picture that is
    not square.

    Args:
        images: the pictures.
        degrees: the angle, or one for each picture.
        interpolation: "linear" (float32) or "nearest" (keeps the dtype).

    Raises:
        ConfigError: an angle is not finite, there are not as many as pictures, or the interpolation is
            unknown.
    """
    images = pictures_of("rotate", images)
    angles = _angles(degrees, len(images))
    turns = [_turn(angle, *size) for angle, size in zip(angles, images.sizes, strict=True)]
    return _warped("rotate", images, np.array(turns).reshape(-1, 3, 3), None, interpolation)


def _angles(degrees: object, count: int) -> list[float]:
    """One angle for each of `count` pictures."""
    if not isinstance(degrees, list | tuple) and np.ndim(cast("Any", degrees)) == 0:
        return [number("rotate", "degrees", degrees)] * count
    found = numbers("rotate", "degrees", degrees)
    if len(found) != count:
        raise ConfigError(
            f"rotate: {len(found)} angles (degrees) for {count} images; expected one, or one for each image"
        )
    return found


def _turn(degrees: float, height: int, width: int) -> list[list[float]]:
    degrees %= 360
    radians = math.radians(degrees)
    cosine, sine = _QUARTERS.get(degrees, (math.cos(radians), math.sin(radians)))
    x, y = (width - 1) / 2, (height - 1) / 2
    return [[cosine, -sine, x - cosine * x + sine * y], [sine, cosine, y - sine * x - cosine * y], [0, 0, 1]]


def _matrices(operation: str, matrix: object, shape: tuple[int, int], count: int) -> np.ndarray[Any, Any]:
    """One float64 matrix for each picture, (count, *shape)."""
    expected = f"expected {shape} finite numbers, or {(count, *shape)} with a matrix for each image"
    if isinstance(matrix, torch.Tensor | np.ndarray):
        given = cast("Any", matrix.cpu().numpy() if isinstance(matrix, torch.Tensor) else matrix)
        if given.dtype.kind not in "fiu" or given.shape not in (shape, (count, *shape)):
            raise ConfigError(f"{operation}: matrix is {kind(matrix)}; {expected}")
        if not np.isfinite(given).all():
            raise ConfigError(f"{operation}: matrix {given.tolist()}; {expected}")
        found = given.astype(np.float64)
    elif isinstance(matrix, list | tuple):
        rows = [numbers(operation, "a row of the matrix", row) for row in cast("list[object]", matrix)]
        if [len(row) for row in rows] != [shape[1]] * shape[0]:
            raise ConfigError(f"{operation}: matrix {rows}; {expected}")
        found = np.array(rows, np.float64)
    else:
        raise ConfigError(f"{operation}: matrix is {kind(matrix)}; {expected}")
    return np.broadcast_to(found, (count, *shape))


def _warped(
    operation: str,
    images: Images,
    matrices: np.ndarray[Any, Any],
    size: tuple[int, int] | None,
    interpolation: WarpInterpolation,
) -> Images:
    interpolation = choice(operation, "interpolation", interpolation, _INTERPOLATIONS)
    wanted = None if size is None else size_of(operation, "size", size)
    made: list[torch.Tensor] = []
    for image, matrix in zip(images, matrices.tolist(), strict=True):
        height, width = wanted or (image.shape[0], image.shape[1])
        take = _nearest if interpolation == "nearest" else _fastest(image, height, width)
        made.append(take(image, *_places(matrix, height, width, image.device)))
    return Images(made, images.peak)


def _fastest(image: torch.Tensor, height: int, width: int) -> Callable[..., torch.Tensor]:
    """The fastest way to take pixels linearly; for sides that float32 places are too coarse for, torch's."""
    short = max(image.shape[0], image.shape[1], height, width) <= opencv.LONGEST_SIDE
    return (fast("warp", image) if short else None) or _linear


def _places(
    matrix: list[list[float]], height: int, width: int, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """The places x and y of the source, (height, width) float64 each; not finite where there is none."""
    across = torch.arange(width, dtype=torch.float64, device=device)
    down = torch.arange(height, dtype=torch.float64, device=device)[:, None]
    u, v, w = (across * row[0] + down * row[1] + row[2] for row in matrix)
    return (u, v) if matrix[2] == [0.0, 0.0, 1.0] else (u / w, v / w)


def _nearest(image: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return _taken(image, *_whole(x + 0.5, image.shape[1]), *_whole(y + 0.5, image.shape[0]))


def _linear(image: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    pixels = image.to(torch.float32)
    rows, columns, _ = image.shape
    (left, in_left), (right, in_right) = _whole(x, columns), _whole(x, columns, 1)
    (top, in_top), (bottom, in_bottom) = _whole(y, rows), _whole(y, rows, 1)
    over, below = (_part(place)[..., None] for place in (x, y))
    upper = _taken(pixels, left, in_left, top, in_top) * (1 - over)
    upper += _taken(pixels, right, in_right, top, in_top) * over
    lower = _taken(pixels, left, in_left, bottom, in_bottom) * (1 - over)
    lower += _taken(pixels, right, in_right, bottom, in_bottom) * over
    return upper * (1 - below) + lower * below


def _whole(place: torch.Tensor, count: int, further: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """The pixel at or before each place, or one further, and whether it is in the picture."""
    pixel = place.floor() + further
    inside = (pixel >= 0) & (pixel < count)
    return torch.where(inside, pixel, 0.0).to(torch.int64), inside


def _part(place: torch.Tensor) -> torch.Tensor:
    """How far each place is beyond its pixel, float32; 0 where there is no place."""
    part = place - place.floor()
    return torch.where(part.isfinite(), part, 0.0).to(torch.float32)


def _taken(
    image: torch.Tensor, x: torch.Tensor, in_x: torch.Tensor, y: torch.Tensor, in_y: torch.Tensor
) -> torch.Tensor:
    """The pixels (height, width, C) at whole places, 0 where they are outside."""
    flat = image.reshape(-1, image.shape[2]).index_select(0, (y * image.shape[1] + x).reshape(-1))
    taken = flat.reshape(*x.shape, image.shape[2])
    return taken.masked_fill_(~(in_x & in_y)[..., None], 0)


def _tries() -> list[Try]:
    generator = torch.Generator().manual_seed(7)

    def anywhere(height: int, width: int, count: int) -> torch.Tensor:
        drawn = torch.rand((height, width), dtype=torch.float64, generator=generator) * (count + 4) - 2
        drawn[0, 0] = float("nan")
        return drawn

    found: list[Try] = []
    for image in (picture[0] for picture in pictures()):
        x, y = anywhere(20, 30, image.shape[1]), anywhere(20, 30, image.shape[0])
        found.append(lambda run, image=image, x=x, y=y: run(image, x, y))
        whole = x.round(), y.round()
        found.append(lambda run, image=image, places=whole: run(image.to(torch.float32), *places))
    return found


register(FastPath("warp", "OpenCV", "host", opencv.loaded("warp"), _linear, _tries, T1))
