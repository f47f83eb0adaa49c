"""CV-CUDA's way of an operation, on a CUDA device: (n, H, W, C) tensors in and out, each picture by itself.

All memory is torch's: CV-CUDA reads torch's tensors and writes into torch's tensors, on the stream that torch
works on, so that nothing waits and one allocator owns the device. Left to torch are `resize` nearest (places
in float32 miss ties for some sizes), `normalize`, `to_float` and `to_u8` (CV-CUDA rounds in another order,
torch's have the host's bits) and quarter turns (CV-CUDA resamples). The kernel that resizes, crops, scales
and makes planes in one resizes and crops alone here: its one scale and one offset are for all channels, where
`normalize` has some for each.

This module has not run on a GPU yet: its calls are held to the recorded signatures of CV-CUDA 0.19.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Callable, Sequence
from typing import Any, Final

import torch

from parity.numerics import CV_CUDA
from parity.vision.curve import Curve

Pixels = torch.Tensor

LONGEST_SIDE: Final = 1024
"""CV-CUDA has places in float32: along a longer side they are off by more than the tolerance."""

LONGEST_SIDE_IN_ONE: Final = 512
"""For the kernel that resizes and crops in one, which computes the scale in float32, too: places along 1024
pixels are off by up to 8.5e-5 pixels, which both axes together may make 0.043 levels of the 0.0255 borne."""

RELEASE: Final = (0, 19)
"""The release whose calls these are; each one changes some."""

CACHE_BYTES: Final = 64 << 20
"""What CV-CUDA may keep of what it allocates for itself; by default it is half of the device's memory."""

_TYPES: Final = {torch.uint8: "|u1", torch.float32: "<f4"}


def loaded(name: str) -> Callable[[], Callable[..., Any]]:
    """What loads the function of this module that is named, where CV-CUDA can be imported."""

    def load() -> Callable[..., Any]:
        library().set_cache_limit_inbytes(CACHE_BYTES)
        return globals()[name]

    return load


def library() -> Any:
    """The cvcuda module.

    Raises:
        ImportError: it is not installed, is of another release, or cannot be imported; the message says why.
    """
    version = _installed()
    if version is None:
        raise ImportError("CV-CUDA is not installed: pip install 'parity[gpu]'")
    wanted = ".".join(map(str, RELEASE))
    if version.split(".")[:2] != wanted.split("."):
        raise ImportError(
            f"CV-CUDA {version} is installed, and its calls may be others than those of {wanted}: "
            "pip install 'parity[gpu]'"
        )
    try:
        return importlib.import_module("cvcuda")
    except ImportError as exc:
        driver = " (the NVIDIA driver brings it)" if "libcuda" in str(exc) else ""
        raise ImportError(f"CV-CUDA {version} cannot be imported: {exc}{driver}") from exc


def _installed() -> str | None:
    for name in CV_CUDA:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


class _Lent:
    """A tensor's memory as the CUDA array interface, version 3, tells of it.

    It names the stream on which the values are made. torch itself names the legacy stream, for which CV-CUDA
    would wait with the whole device at each call.
    """

    def __init__(self, tensor: Pixels, stream: int) -> None:
        self.tensor = tensor
        self.__cuda_array_interface__ = {
            "shape": tuple(tensor.shape),
            "typestr": _TYPES[tensor.dtype],
            "data": (tensor.data_ptr(), False),
            "strides": None,  # packed
            "version": 3,
            "stream": stream or -1,  # -1: nothing to wait for, as it is the stream that is worked on
        }


def _stream(device: torch.device) -> int:
    """The address of the stream that torch works on; 0 for the legacy one."""
    return torch.cuda.current_stream(device).cuda_stream


def _made(
    pixels: Pixels,
    size: tuple[int, int],
    channels: int,
    fill: Callable[[Any, Any, Any, Any], object],
    dtype: torch.dtype | None = None,
) -> Pixels:
    """A new (n, height, width, channels) tensor that `fill(cvcuda, target, source, stream)` fills.

    It is of the pixels' dtype where no other is told.
    """
    cvcuda = library()
    source = pixels.contiguous()
    made = source.new_empty((len(source), *size, channels), dtype=dtype)
    with torch.cuda.device_of(source):
        address = _stream(source.device)
        target, taken = (cvcuda.as_tensor(_Lent(tensor, address), "NHWC") for tensor in (made, source))
        fill(cvcuda, target, taken, cvcuda.as_stream(address))
    return made


def resize(pixels: Pixels, height: int, width: int, kernel: str) -> Pixels:
    """Linear or cubic without antialias, float32."""
    return _resized(pixels, height, width, kernel, antialias=False)


def resize_antialiased(pixels: Pixels, height: int, width: int, kernel: str) -> Pixels:
    """Linear or cubic with antialias, float32."""
    return _resized(pixels, height, width, kernel, antialias=True)


def _resized(pixels: Pixels, height: int, width: int, kernel: str, *, antialias: bool) -> Pixels:
    def fill(cvcuda: Any, target: Any, source: Any, stream: Any) -> None:
        interp = cvcuda.Interp.LINEAR if kernel == "linear" else cvcuda.Interp.CUBIC
        cvcuda.tvresize_into(target, source, interp, antialias, stream=stream)

    return _made(pixels.to(torch.float32), (height, width), pixels.shape[3], fill)


def resize_cropped(
    pixels: Pixels, size: tuple[int, int], corner: tuple[int, int], window: tuple[int, int]
) -> Pixels:
    """Linear to `size` without antialias, and of that the window at a corner, which lies inside.

    float32 of uint8 pictures with one or three channels; sizes and corners have the height first.
    """

    def fill(cvcuda: Any, target: Any, source: Any, stream: Any) -> None:
        cvcuda.resize_crop_convert_reformat_into(
            target,
            source,
            size[::-1],
            cvcuda.Interp.LINEAR,
            corner[::-1],
            manip=cvcuda.ChannelManip.NO_OP,
            scale=1.0,
            offset=0.0,
            srcCast=False,  # or the result would be rounded to levels in between
            stream=stream,
        )

    return _made(pixels, window, pixels.shape[3], fill, torch.float32)


def crop(pixels: Pixels, top: int, left: int, height: int, width: int) -> Pixels:
    """A rectangle that lies inside."""

    def fill(cvcuda: Any, target: Any, source: Any, stream: Any) -> None:
        cvcuda.customcrop_into(target, source, cvcuda.RectI(left, top, width, height), stream=stream)

    return _made(pixels, (height, width), pixels.shape[3], fill)


def pad(pixels: Pixels, left: int, top: int, right: int, bottom: int, mode: str) -> Pixels:
    """A margin of edge pixels, or mirrored with them or without."""
    name = {"edge": "REPLICATE", "reflect": "REFLECT101", "symmetric": "REFLECT"}[mode]
    return _padded(pixels, left, top, right, bottom, name, 0.0)


def pad_constant(pixels: Pixels, left: int, top: int, right: int, bottom: int, fill: float) -> Pixels:
    """A margin of one value."""
    value = float(torch.full((), fill, dtype=pixels.dtype).item())  # cut to the dtype as torch cuts it
    return _padded(pixels, left, top, right, bottom, "CONSTANT", value)


def _padded(
    pixels: Pixels, left: int, top: int, right: int, bottom: int, border: str, value: float
) -> Pixels:
    def fill(cvcuda: Any, target: Any, source: Any, stream: Any) -> None:
        mode = getattr(cvcuda.Border, border)
        cvcuda.copymakeborder_into(target, source, mode, [value] * 4, top=top, left=left, stream=stream)

    _, rows, columns, channels = pixels.shape
    return _made(pixels, (top + rows + bottom, left + columns + right), channels, fill)


def flip(pixels: Pixels, horizontal: bool, vertical: bool) -> Pixels:
    """Mirrored left to right, top to bottom, or both."""
    code = -1 if horizontal and vertical else int(horizontal)
    return _made(
        pixels,
        (pixels.shape[1], pixels.shape[2]),
        pixels.shape[3],
        lambda cvcuda, target, source, stream: cvcuda.flip_into(target, source, code, stream=stream),
    )


def swap_channels(pixels: Pixels, order: Sequence[int]) -> Pixels:
    """Channels in another order, as many as before."""
    wanted = list(order)
    return _made(
        pixels,
        (pixels.shape[1], pixels.shape[2]),
        pixels.shape[3],
        lambda cvcuda, target, source, stream: cvcuda.channelreorder_into(
            target, source, wanted, stream=stream
        ),
    )


def gray(pixels: Pixels) -> Pixels:
    """uint8 RGB or RGBA to grey."""

    def fill(cvcuda: Any, target: Any, source: Any, stream: Any) -> None:
        codes = cvcuda.ColorConversion
        code = codes.RGB2GRAY if pixels.shape[3] == 3 else codes.RGBA2GRAY
        cvcuda.cvtcolor_into(target, source, code, stream=stream)

    return _made(pixels, (pixels.shape[1], pixels.shape[2]), 1, fill)


def gaussian_blur(pixels: Pixels, curve: Curve) -> Pixels:
    """Weighted means along both axes, edges mirrored without the edge pixel, float32."""
    kernel, sigma = (curve.kernel, curve.kernel), (curve.sigma, curve.sigma)

    def fill(cvcuda: Any, target: Any, source: Any, stream: Any) -> None:
        cvcuda.gaussian_into(target, source, kernel, sigma, cvcuda.Border.REFLECT101, stream=stream)

    return _made(pixels.to(torch.float32), (pixels.shape[1], pixels.shape[2]), pixels.shape[3], fill)
