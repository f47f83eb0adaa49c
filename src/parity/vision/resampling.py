"""Resize: half-pixel centres, edges clamped, and antialiasing that is asked for or forgone by name."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal

import torch

from parity.errors import ConfigError
from parity.vision import cvcuda, opencv
from parity.vision.arguments import MAX_PIXELS, choice, flag, pictures_of, size_of, whole
from parity.vision.decoding import ImageError
from parity.vision.exact import fixed_taps
from parity.vision.exact import resampled as exactly_resampled
from parity.vision.fastpaths import T1, FastPath, Try, fast, pictures, register
from parity.vision.images import Images
from parity.vision.kept import kept
from parity.vision.taps import Kernel, Taps, pixel_weights, resampled, taps_float32, taps_of

Interpolation = Literal["linear", "cubic", "nearest"]

_INTERPOLATIONS: tuple[Interpolation, ...] = ("linear", "cubic", "nearest")
_LONGEST_SIDE = min(cvcuda.LONGEST_SIDE, opencv.LONGEST_SIDE)


Contract = Literal["float", "u8_exact"]


def resize(
    images: Images,
    size: tuple[int, int],
    *,
    interpolation: Interpolation = "linear",
    antialias: bool,
    contract: Contract = "float",
) -> Images:
    """Pictures of one size.

    Pixel i of the result is taken at (i + 0.5) * source / size - 0.5, and what lies outside is the nearest
    edge pixel. With antialias, the kernel is stretched by the factor of a reduction, as Pillow does it;
    without, two (linear) or four (cubic) neighbours count, as OpenCV does it. The two differ by up to 75 of
    255 levels on a photograph, so there is no default. Linear and cubic give float32, unrounded; cubic
    (a = -0.75, or -0.5 with antialias) may leave the range, which `to_u8` saturates. Nearest takes pixel
    ((2 i + 1) * source) // (2 * size) by integer arithmetic and keeps the dtype.

    With the contract "u8_exact", linear and cubic take uint8 pictures and give uint8, in fixed-point
    arithmetic that has the same bits on every device: columns first, then rows, each rounded once. With
    antialias that is Pillow's resize bit for bit, where Pillow takes the columns first, as releases before 13
    always do.

    Args:
        images: the pictures, uint8 or float32.
        size: height and width of the result, in pixels.
        interpolation: "linear", "cubic" or "nearest".
        antialias: whether to average over what a reduction leaves out; False for "nearest".
        contract: "float" (float32, unrounded) or "u8_exact".

    Raises:
        ConfigError: the size is not positive, or the interpolation is unknown or cannot be antialiased.
    """
    images = pictures_of("resize", images)
    height, width = size_of("resize", "size", size)
    contract = choice("resize", "contract", contract, ("float", "u8_exact"))
    interpolation, antialias = checked_way("resize", interpolation, antialias)
    if interpolation == "nearest":
        return images.map(lambda pixels: _nearest(pixels, height, width))

    if contract == "u8_exact":
        if len(images) and images.dtype != torch.uint8:
            raise ConfigError(
                f"resize: contract 'u8_exact' is of uint8 pictures, these are {images.dtype}; to_u8 first, "
                "or contract='float'"
            )
        return images.map(lambda pixels: _exactly(pixels, height, width, interpolation, antialias))
    operation, definition = ("resize_antialiased", _averaged) if antialias else ("resize", _by_taps)

    def change(pixels: torch.Tensor) -> torch.Tensor:
        longest = max(*pixels.shape[1:3], height, width)
        faster = fast(operation, pixels) if longest <= _LONGEST_SIDE else None
        return (faster or definition)(pixels, height, width, interpolation)

    return images.map(change)


def checked_way(operation: str, interpolation: object, antialias: object) -> tuple[Interpolation, bool]:
    """The interpolation and whether to antialias, as `resize` takes them; raises ConfigError otherwise."""
    known = choice(operation, "interpolation", interpolation, _INTERPOLATIONS)
    averaged = flag(operation, "antialias", antialias)
    if known == "nearest" and averaged:
        raise ConfigError(f"{operation}: nearest takes one pixel, so nothing is averaged; antialias=False")
    return known, averaged


def _exactly(pixels: torch.Tensor, height: int, width: int, kernel: Kernel, antialias: bool) -> torch.Tensor:
    _, rows, columns, _ = pixels.shape
    down = fixed_taps(rows, height, kernel, antialias, pixels.device) if rows != height else None
    across = fixed_taps(columns, width, kernel, antialias, pixels.device) if columns != width else None
    return torch.stack([exactly_resampled(image, down, across) for image in pixels])


def _by_taps(
    pixels: torch.Tensor, height: int, width: int, kernel: Kernel, antialias: bool = False
) -> torch.Tensor:
    down = taps_float32(pixels.shape[1], height, kernel, antialias, pixels.device)
    across = taps_float32(pixels.shape[2], width, kernel, antialias, pixels.device)
    made = [resampled(image, down, across) for image in pixels]
    return made[0].unsqueeze(0) if len(made) == 1 else torch.stack(made)


def _averaged(pixels: torch.Tensor, height: int, width: int, kernel: Kernel) -> torch.Tensor:
    return _by_taps(pixels, height, width, kernel, antialias=True)


def _tries() -> list[Try]:
    sizes = ((7, 9), (24, 24), (50, 33))
    return [
        lambda run, image=image, size=size, kernel=kernel: run(image, *size, kernel)
        for image in pictures((1, 3))
        for size in sizes
        for kernel in ("linear", "cubic")
    ]


def _cut_after_resize(
    pixels: torch.Tensor, size: tuple[int, int], corner: tuple[int, int], window: tuple[int, int]
) -> torch.Tensor:
    (top, left), (height, width) = corner, window
    return _by_taps(pixels, *size, "linear")[:, top : top + height, left : left + width]


def _window_tries() -> list[Try]:
    ways = (((7, 9), (0, 2), (7, 6)), ((24, 24), (5, 1), (11, 20)), ((50, 33), (0, 0), (50, 33)))
    return [lambda run, image=image, way=way: run(image, *way) for image in pictures((1, 3)) for way in ways]


register(FastPath("resize", "OpenCV", "host", opencv.loaded("resize"), _by_taps, _tries, T1))
for _name, _function in (("resize", _by_taps), ("resize_antialiased", _averaged)):
    register(FastPath(_name, "CV-CUDA", "device", cvcuda.loaded(_name), _function, _tries, T1))
register(
    FastPath(
        "resize_cropped",
        "CV-CUDA",
        "device",
        cvcuda.loaded("resize_cropped"),
        _cut_after_resize,
        _window_tries,
        T1,
    )
)


def resize_shortest(
    images: Images, side: int, *, interpolation: Interpolation = "linear", antialias: bool
) -> Images:
    """Pictures at their own aspect whose shorter side is `side`; the longer one is side * long // short.

    Raises:
        ImageError: pictures would have more than `MAX_PIXELS`; it names all of them.
    """
    images = pictures_of("resize_shortest", images)
    side = whole("resize_shortest", "side", side, least=1)
    interpolation, antialias = checked_way("resize_shortest", interpolation, antialias)
    return _resize_to(images, side, min, interpolation, antialias)


def resize_longest(
    images: Images, side: int, *, interpolation: Interpolation = "linear", antialias: bool
) -> Images:
    """Pictures at their own aspect whose longer side is `side`; the other one is side * short // long."""
    images = pictures_of("resize_longest", images)
    side = whole("resize_longest", "side", side, least=1)
    interpolation, antialias = checked_way("resize_longest", interpolation, antialias)
    return _resize_to(images, side, max, interpolation, antialias)


def resized_size(operation: str, size: tuple[int, int], wanted: Any) -> tuple[int, int]:
    """Height and width of a picture of `size` after `resize`, `resize_shortest` or `resize_longest`."""
    if operation == "resize":
        return size_of(operation, "size", wanted)
    return _scaled(size, wanted, (min if operation == "resize_shortest" else max)(size))


def require_size(images: Images, resized: Callable[[tuple[int, int]], tuple[int, int]]) -> None:
    """Raise ImageError for pictures that would have more than `MAX_PIXELS`, naming all of them."""
    too_large: dict[int, str] = {}
    for row, (height, width) in enumerate(images.sizes):
        tall, wide = resized((height, width))
        if tall * wide > MAX_PIXELS:
            too_large[row] = (
                f"{height} x {width} pixels would become {tall} x {wide}, more than {MAX_PIXELS:,}"
            )
    if too_large:
        raise ImageError(too_large, len(images), "resized")


def window_at_once(
    pixels: torch.Tensor, kernel: Interpolation, antialias: bool, longest: int
) -> Callable[[torch.Tensor, tuple[int, int], tuple[int, int], tuple[int, int]], torch.Tensor] | None:
    """What computes a window of resized pictures without the rest; None where nothing does.

    It takes pixels, the size they are resized to, and the window's corner and size; heights come first.

    Args:
        pixels: (n, H, W, C) pictures of the kind.
        kernel: the interpolation.
        antialias: whether it is antialiased.
        longest: the longest side of all pictures, before and after.
    """
    if antialias and kernel != "nearest":
        all_is_faster = fast("resize_antialiased", pixels) is not None
        return None if all_is_faster else functools.partial(resized_window, kernel=kernel)
    short = longest <= cvcuda.LONGEST_SIDE_IN_ONE
    if kernel == "linear" and pixels.dtype == torch.uint8 and pixels.shape[3] in (1, 3) and short:
        return fast("resize_cropped", pixels)
    return None


def resized_window(
    pixels: torch.Tensor,
    size: tuple[int, int],
    corner: tuple[int, int],
    window: tuple[int, int],
    kernel: Kernel,
) -> torch.Tensor:
    """The window (height, width) at a corner (top, left) within pictures antialiased to `size`, float32."""
    first, last, down = _part(pixels.shape[1], size[0], corner[0], window[0], kernel, pixels.device)
    start, end, across = _part(pixels.shape[2], size[1], corner[1], window[1], kernel, pixels.device)
    return torch.stack(
        [resampled(image[first:last, start:end].contiguous(), down, across) for image in pixels]
    )


@kept
def _part(
    source: int, size: int, begin: int, count: int, kernel: Kernel, device: torch.device
) -> tuple[int, int, Taps]:
    """The first pixel of the source that counts, the one after the last, and the taps of `count` pixels."""
    places, weights = pixel_weights(source, size, kernel, True, window=(begin, begin + count))
    counted = places[weights != 0]
    first, last = int(counted.min()), int(counted.max()) + 1
    exact = taps_of(places - first, weights, last - first, device)
    return first, last, Taps(exact.needed, exact.places, exact.weights.to(torch.float32), exact.starts)


def _scaled(size: tuple[int, int], side: int, measured: int) -> tuple[int, int]:
    height, width = size
    return max(1, side * height // measured), max(1, side * width // measured)


def _resize_to(
    images: Images,
    side: int,
    measure: Callable[[tuple[int, int]], int],
    interpolation: Interpolation,
    antialias: bool,
) -> Images:
    rows: dict[tuple[int, int], list[int]] = {}
    for row, size in enumerate(images.sizes):
        rows.setdefault(size, []).append(row)
    require_size(images, lambda size: _scaled(size, side, measure(size)))
    found: dict[int, torch.Tensor] = {}
    for size, alike in rows.items():
        group = Images([images[row] for row in alike], images.peak)
        made = resize(
            group, _scaled(size, side, measure(size)), interpolation=interpolation, antialias=antialias
        )
        found.update(zip(alike, made, strict=True))
    return Images([found[row] for row in range(len(images))], images.peak)


def _nearest(pixels: torch.Tensor, height: int, width: int) -> torch.Tensor:
    rows = _nearest_places(pixels.shape[1], height, pixels.device)
    columns = _nearest_places(pixels.shape[2], width, pixels.device)
    return pixels[:, rows][:, :, columns]


def _nearest_places(source: int, size: int, device: torch.device) -> torch.Tensor:
    return torch.arange(size, device=device).mul(2).add(1).mul(source).div(2 * size, rounding_mode="floor")
