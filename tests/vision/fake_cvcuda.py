"""Stands for cvcuda on the host: takes only what its recorded signatures allow, and computes with numpy.

It reads and writes memory by the CUDA array interface that it is lent, so that a wrong address, shape, layout
or dtype fails here. Operations are written from CV-CUDA's documentation, not from ours.
"""

from __future__ import annotations

import ast
import ctypes
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

TYPES = {"|u1": np.dtype(np.uint8), "<f4": np.dtype(np.float32)}


class Tensor:
    """Memory with a layout."""

    def __init__(self, buffer: Any, layout: str) -> None:
        lent = buffer.__cuda_array_interface__
        assert lent["version"] == 3, "version 3 has the stream"
        assert lent["strides"] is None, "pitch must be packed"
        assert layout == "NHWC", f"layout {layout}: channels are last"
        assert len(lent["shape"]) == 4, lent["shape"]
        assert lent["stream"] != 0, "the array interface forbids stream 0"
        address, read_only = lent["data"]
        assert not read_only
        dtype = TYPES[lent["typestr"]]
        count = int(np.prod(lent["shape"])) * dtype.itemsize
        memory = (ctypes.c_uint8 * count).from_address(address)
        self.values: np.ndarray = np.ctypeslib.as_array(memory).view(dtype).reshape(lent["shape"])
        self.stream = lent["stream"]
        self.owner = buffer


class Stream:
    def __init__(self, address: int) -> None:
        self.address = address


class RectI:
    def __init__(self, x: int, y: int, width: int, height: int) -> None:
        self.x, self.y, self.width, self.height = x, y, width, height


class Member:
    """A member of an enum."""

    def __init__(self, enum: str, name: str) -> None:
        self.enum, self.name = enum, name


class FakeCvcuda:
    """The module.

    Attributes:
        calls: the names of the operations that were called.
        limits: the cache limits that were set.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.limits: list[int] = []
        self._signatures: dict[str, list[inspect.Signature]] = {}
        for name, signature in recorded():
            self._signatures.setdefault(name, []).append(signature)
        for enum, members in enums().items():
            setattr(self, enum, SimpleNamespace(**{name: Member(enum, name) for name in members}))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in self._signatures or not hasattr(sys.modules[__name__], f"_{name}"):
            raise AttributeError(f"cvcuda has no {name}, or it is not recorded")

        def call(*args: Any, **kwargs: Any) -> Any:
            given = self._bound(name, args, kwargs)
            if name.endswith("_into"):
                on_one_stream(name, given)
                self.calls.append(name)
            return globals()[f"_{name}"](self, **given)

        return call

    def _bound(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        for signature in self._signatures[name]:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError:
                continue
            if all(
                fits(value, str(signature.parameters[key].annotation))
                for key, value in bound.arguments.items()
            ):
                return bound.arguments
        raise TypeError(f"{name}(): incompatible function arguments: {args} {kwargs}")


def lines() -> list[str]:
    text = Path(__file__).with_name("cvcuda_signatures.txt").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def recorded() -> Iterator[tuple[str, inspect.Signature]]:
    """The name and signature of each recorded overload; annotations are texts."""
    for line in lines():
        name, opened, rest = line.partition("(")
        if not opened:
            continue
        (function,) = ast.parse(f"def f({rest}: ...").body
        assert isinstance(function, ast.FunctionDef)
        given = function.args
        positional = [*given.posonlyargs, *given.args]
        required = len(positional) - len(given.defaults)
        parameters = [
            inspect.Parameter(
                argument.arg,
                inspect.Parameter.POSITIONAL_ONLY
                if argument in given.posonlyargs
                else inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=inspect.Parameter.empty if place < required else None,
                annotation=ast.unparse(argument.annotation or ast.Constant(None)),
            )
            for place, argument in enumerate(positional)
        ]
        parameters += [
            inspect.Parameter(
                argument.arg,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if default is None else None,
                annotation=ast.unparse(argument.annotation or ast.Constant(None)),
            )
            for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
        ]
        yield name, inspect.Signature(parameters)


def enums() -> dict[str, list[str]]:
    found = [line.partition(": ") for line in lines() if "(" not in line]
    return {enum: members.split(", ") for enum, _, members in found}


def fits(value: Any, annotation: str) -> bool:
    """Whether nanobind would take the value for an argument of the type."""
    if " | " in annotation and "[" not in annotation:
        return any(fits(value, one) for one in annotation.split(" | "))
    if annotation.startswith(("tuple[", "Sequence[")):
        item = annotation[annotation.index("[") + 1 : -1].split(", ")
        if annotation.startswith("tuple[") and (not isinstance(value, tuple) or len(value) != len(item)):
            return False
        return isinstance(value, list | tuple) and all(fits(one, item[0]) for one in value)
    if annotation == "None":
        return value is None
    if annotation in ("int", "float"):
        return isinstance(value, int if annotation == "int" else (int, float)) and not isinstance(value, bool)
    plain = {"bool": bool, "str": str, "Tensor": Tensor, "Stream": Stream, "RectI": RectI}
    if annotation in plain:
        return isinstance(value, plain[annotation])
    if annotation == "ExternalBuffer":
        return hasattr(value, "__cuda_array_interface__")
    return isinstance(value, Member) and value.enum == annotation


def on_one_stream(name: str, given: dict[str, Any]) -> None:
    """Nothing may wait: inputs are made on the stream that the operation is given."""
    stream = given.get("stream")
    assert stream is not None, f"{name} without a stream runs on the thread's, whatever that is"
    for tensor in (given["dst"], given["src"]):
        assert tensor.stream == (stream.address or -1), f"{name}: another stream than its inputs'"


def _set_cache_limit_inbytes(cvcuda: FakeCvcuda, arg: int) -> None:
    cvcuda.limits.append(arg)


def _as_stream(cvcuda: FakeCvcuda, arg: int) -> Stream:
    return Stream(arg)


def _as_tensor(cvcuda: FakeCvcuda, buffer: Any, layout: str) -> Tensor:
    return Tensor(buffer, layout)


def _RectI(cvcuda: FakeCvcuda, x: int, y: int, width: int, height: int) -> RectI:  # noqa: N802 - cvcuda's name
    return RectI(x, y, width, height)


def written(dst: Tensor, values: np.ndarray) -> Tensor:
    assert dst.values.shape == values.shape, f"dst has shape {dst.values.shape}, the result {values.shape}"
    assert dst.values.dtype == values.dtype, f"dst is {dst.values.dtype}, the result {values.dtype}"
    dst.values[...] = values
    return dst


def _tvresize_into(
    cvcuda: FakeCvcuda, dst: Tensor, src: Tensor, interp: Any, antialias: bool, stream: Stream
) -> Tensor:
    assert src.values.dtype == np.float32, "what is uint8 would be rounded"
    _, height, width, _ = dst.values.shape
    down = weights(src.values.shape[1], height, interp.name, antialias)
    across = weights(src.values.shape[2], width, interp.name, antialias)
    found = [np.einsum("ih,hjc->ijc", down, np.einsum("jw,hwc->hjc", across, image)) for image in src.values]
    return written(dst, np.stack(found).astype(np.float32))


def weights(source: int, size: int, interp: str, antialias: bool) -> np.ndarray:
    """(size, source) float64, as torchvision's."""
    scale = source / size
    stretch = max(scale, 1.0) if antialias else 1.0
    found = np.zeros((size, source))
    for row in range(size):
        middle = (row + 0.5) * scale
        reach = (1 if interp == "LINEAR" else 2) * stretch
        places = np.arange(int(np.floor(middle - reach)) - 1, int(np.ceil(middle + reach)) + 1)
        near = np.abs((places + 0.5 - middle) / stretch)
        if interp == "LINEAR":
            curve = np.maximum(0, 1 - near)
        else:
            a = -0.5 if antialias else -0.75
            inner = (a + 2) * near**3 - (a + 3) * near**2 + 1
            outer = a * (near**3 - 5 * near**2 + 8 * near - 4)
            curve = np.where(near <= 1, inner, np.where(near < 2, outer, 0))
        if antialias:
            curve = np.where((places >= 0) & (places < source), curve, 0)
        np.add.at(found[row], places.clip(0, source - 1), curve)
    return found / found.sum(1, keepdims=True)


def _resize_crop_convert_reformat_into(
    cvcuda: FakeCvcuda,
    dst: Tensor,
    src: Tensor,
    resize_dim: tuple[int, int],
    interp: Any,
    cropPos: tuple[int, int],  # noqa: N803
    manip: Any,
    scale: float,
    offset: float,
    srcCast: bool,  # noqa: N803
    stream: Stream,
) -> Tensor:
    """In float32, as CV-CUDA's published source computes it."""
    assert src.values.dtype == np.uint8, "8bit unsigned is the only type that it takes"
    assert src.values.shape[3] in (1, 3), f"{src.values.shape[3]} channels; it takes 1 or 3"
    assert (interp.name, manip.name, srcCast) == ("LINEAR", "NO_OP", False)
    _, height, width, _ = dst.values.shape
    (wide, tall), (left, top) = resize_dim, cropPos
    assert 0 <= left <= left + width <= wide, "the crop must fall within the resized image"
    assert 0 <= top <= top + height <= tall, "the crop must fall within the resized image"
    upper, lower, down = neighbours(src.values.shape[1], tall, top, height)
    before, after, across = neighbours(src.values.shape[2], wide, left, width)
    pixels, one = src.values.astype(np.float32), np.float32(1)
    down, across = down[:, None, None], across[:, None]
    rows = [
        (one - across) * pixels[:, row][:, :, before] + pixels[:, row][:, :, after] * across
        for row in (upper, lower)
    ]
    found = (one - down) * rows[0] + down * rows[1]
    return written(dst, np.float32(scale) * found + np.float32(offset))


def neighbours(source: int, size: int, begin: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The pixel before each place of a window, the one after, and how far the place is, all by float32."""
    scale = np.float32(source) / np.float32(size)
    places = (np.arange(begin, begin + count).astype(np.float32) + np.float32(0.5)) * scale - np.float32(0.5)
    first = np.floor(places).astype(np.int64)
    return first.clip(0), (first + 1).clip(0, source - 1), places - first.astype(np.float32)


def _customcrop_into(cvcuda: FakeCvcuda, dst: Tensor, src: Tensor, rect: RectI, stream: Stream) -> Tensor:
    _, rows, columns, _ = src.values.shape
    assert 0 <= rect.x <= rect.x + rect.width <= columns, "the rectangle leaves the picture"
    assert 0 <= rect.y <= rect.y + rect.height <= rows, "the rectangle leaves the picture"
    cut = src.values[:, rect.y : rect.y + rect.height, rect.x : rect.x + rect.width]
    return written(dst, cut)


def _copymakeborder_into(
    cvcuda: FakeCvcuda,
    dst: Tensor,
    src: Tensor,
    border_mode: Any,
    border_value: list[float],
    top: int,
    left: int,
    stream: Stream,
) -> Tensor:
    bottom = dst.values.shape[1] - src.values.shape[1] - top
    right = dst.values.shape[2] - src.values.shape[2] - left
    margins = ((0, 0), (top, bottom), (left, right), (0, 0))
    if border_mode.name != "CONSTANT":
        modes: dict[str, Any] = {"REPLICATE": "edge", "REFLECT101": "reflect", "REFLECT": "symmetric"}
        return written(dst, np.pad(src.values, margins, mode=modes[border_mode.name]))
    found = np.empty(dst.values.shape, src.values.dtype)
    values = np.array([*border_value, 0, 0, 0, 0][: src.values.shape[3]])  # those left out are 0
    found[:] = values.round() if found.dtype == np.uint8 else values
    found[:, top : top + src.values.shape[1], left : left + src.values.shape[2]] = src.values
    return written(dst, found)


def _flip_into(cvcuda: FakeCvcuda, dst: Tensor, src: Tensor, flipCode: int, stream: Stream) -> Tensor:  # noqa: N803
    axes = {0: 1, 1: 2}.get(flipCode, (1, 2))
    return written(dst, np.flip(src.values, axes))


def _channelreorder_into(
    cvcuda: FakeCvcuda, dst: Tensor, src: Tensor, order: list[int], stream: Stream
) -> Tensor:
    return written(dst, src.values[..., order])


def _cvtcolor_into(cvcuda: FakeCvcuda, dst: Tensor, src: Tensor, code: Any, stream: Stream) -> Tensor:
    channels = {"RGB2GRAY": 3, "RGBA2GRAY": 4}[code.name]
    assert src.values.shape[3] == channels, f"{code.name} of {src.values.shape[3]} channels"
    assert src.values.dtype == np.uint8
    red, green, blue = (src.values[..., channel].astype(np.int64) for channel in range(3))
    return written(
        dst, ((red * 9798 + green * 19235 + blue * 3735 + (1 << 14)) >> 15).astype(np.uint8)[..., None]
    )


def _gaussian_into(
    cvcuda: FakeCvcuda,
    dst: Tensor,
    src: Tensor,
    kernel_size: tuple[int, int],
    sigma: tuple[float, float],
    border: Any,
    stream: Stream,
) -> Tensor:
    assert border.name == "REFLECT101"
    assert src.values.dtype == np.float32, "what is uint8 would be rounded"
    found = src.values.astype(np.float64)
    for axis, size, deviation in ((2, kernel_size[0], sigma[0]), (1, kernel_size[1], sigma[1])):
        reach = size // 2
        curve = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * deviation**2))
        margins = [(reach, reach) if at == axis else (0, 0) for at in range(4)]
        padded = np.pad(found, margins, mode="reflect")
        length, curve = found.shape[axis], curve / curve.sum()
        shifted = [np.take(padded, range(place, place + length), axis) for place in range(size)]
        found = np.einsum("k,k...->...", curve, np.stack(shifted))
    return written(dst, found.astype(np.float32))
