"""One sound call of every public operation, for tests that hold all of them to something.

A new operation belongs in CALLS: `test_arguments.py` fails until it is there.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from PIL import Image

from parity import vision
from parity.vision import Images
from tests.vision.pictures import file_of, images, noise, photo

NO_OPERATIONS = frozenset({"backends", "step", "versions"})
"""Public functions that do nothing to pictures."""

BOXES = torch.tensor([[1.0, 2.5, 9.0, 8.0], [2.0, 2.0, 14.0, 11.5]])

CALLS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "box_blur": {"kernel": 5},
        "add_alpha": {},
        "argmax": {"scores": torch.tensor([0.1, 0.7, 0.7])},
        "center_crop": {"size": (6, 5)},
        "crop": {"top": 1, "left": -2, "size": (6, 5)},
        "decode": {
            "files": [file_of(Image.fromarray(photo(20, 30)), "JPEG", quality=80)],
            "mode": "RGB",
            "device": "cpu",
            "max_pixels": 10_000,
        },
        "dilate": {"kernel": 5},
        "encode_jpeg": {"quality": 85, "subsampling": "4:2:0"},
        "draw_boxes": {"boxes": [BOXES], "colour": (255, 0, 9), "width": 1},
        "drop_alpha": {},
        "encode_png": {},
        "equalize": {},
        "erode": {"kernel": 5},
        "exposure": {},
        "flip": {"horizontal": True, "vertical": False},
        "gaussian_blur": {"kernel": 5, "sigma": 1.3},
        "hsv_to_rgb": {"contract": "float"},
        "invert": {},
        "laplacian": {},
        "letterbox": {"size": (8, 9), "interpolation": "linear", "antialias": True, "fill": 7},
        "median_blur": {"kernel": 3},
        "nms": {
            "boxes": BOXES,
            "scores": torch.tensor([0.3, 0.7]),
            "iou": 0.5,
            "classes": torch.tensor([0, 0]),
            "min_score": 0.1,
            "limit": 5,
        },
        "normalize": {"mean": (0.5, 0.4, 0.3), "std": (0.2, 0.3, 0.4), "layout": "NCHW"},
        "nv12_to_rgb": {"standard": "bt601", "full_range": False},
        "pad": {"left": 1, "top": 2, "right": 3, "bottom": 4, "mode": "constant", "fill": 9},
        "posterize": {"bits": 3},
        "resize": {"size": (7, 9), "interpolation": "linear", "antialias": True, "contract": "float"},
        "resize_longest": {"side": 9, "interpolation": "linear", "antialias": True},
        "resize_shortest": {"side": 6, "interpolation": "cubic", "antialias": False},
        "rgb_to_gray": {},
        "rgb_to_hsv": {"contract": "float"},
        "roi_crop_resize": {"boxes": [BOXES], "size": (7, 9), "interpolation": "linear", "antialias": True},
        "rotate": {"degrees": 30.0, "interpolation": "linear"},
        "rotate90": {"turns": 1},
        "sharpness": {},
        "softmax": {"scores": torch.tensor([0.1, 0.7, 0.7])},
        "swap_channels": {"order": (2, 1, 0)},
        "threshold": {"level": 100.5},
        "to_float": {},
        "to_u8": {},
        "yuv_to_rgb": {"standard": "bt709", "full_range": True},
        "topk": {"scores": torch.tensor([0.1, 0.7, 0.7]), "k": 2},
        "warp_affine": {"matrix": [[1.1, 0.2, -3], [0, 1, 2.5]], "size": (7, 9), "interpolation": "linear"},
        "warp_perspective": {
            "matrix": [[1.1, 0.2, -3], [0, 1, 2.5], [0.001, 0, 1]],
            "size": (7, 9),
            "interpolation": "nearest",
        },
    }
)
"""The arguments beside the pictures, by the operation's name; all that it has."""

VARIANTS: Mapping[str, Sequence[Mapping[str, Any]]] = MappingProxyType(
    {
        "box_blur": ({"kernel": 3},),
        "center_crop": ({"size": (41, 17)},),
        "decode": ({"mode": "L"}, {"mode": "RGBA"}),
        "encode_jpeg": ({"subsampling": "4:4:4"}, {"quality": 40, "subsampling": "4:2:2"}),
        "flip": ({"vertical": True}, {"horizontal": False, "vertical": True}),
        "gaussian_blur": ({"kernel": 9, "sigma": 2.5},),
        "hsv_to_rgb": ({"contract": "u8_exact"},),
        "letterbox": (
            {"fill": None},
            {"antialias": False},
            {"interpolation": "nearest", "antialias": False},
        ),
        "median_blur": ({"kernel": 5},),
        "normalize": ({"layout": "NHWC"},),
        "nv12_to_rgb": ({"standard": "bt709"}, {"full_range": True}),
        "pad": ({"mode": "edge"}, {"mode": "reflect"}, {"mode": "symmetric"}),
        "resize": (
            {"antialias": False},
            {"size": (50, 61)},
            {"interpolation": "cubic"},
            {"interpolation": "cubic", "antialias": False},
            {"interpolation": "nearest", "antialias": False},
            {"contract": "u8_exact"},
            {"contract": "u8_exact", "antialias": False},
            {"contract": "u8_exact", "interpolation": "cubic"},
        ),
        "resize_longest": ({"antialias": False},),
        "resize_shortest": ({"interpolation": "linear", "antialias": True},),
        "rgb_to_hsv": ({"contract": "u8_exact"},),
        "rotate90": ({"turns": 2}, {"turns": 3}),
        "swap_channels": ({"order": (1,)},),
        "yuv_to_rgb": ({"full_range": False}, {"standard": "bt601"}),
    }
)
"""Other arguments, for what they mean beside those of CALLS."""


def every_call(name: str) -> list[dict[str, Any]]:
    """The arguments of all sound calls of an operation, beside its pictures."""
    return [{**CALLS[name], **changed} for changed in ({}, *VARIANTS.get(name, ()))]


def operations() -> list[str]:
    """The names of all public functions that do something to pictures or files."""
    found = [name for name in vision.__all__ if inspect.isfunction(getattr(vision, name))]
    return [name for name in found if name not in NO_OPERATIONS]


def on_pictures() -> list[str]:
    """Those whose first argument is `images`."""
    return [name for name in operations() if next(iter(signature(name).parameters)) == "images"]


def pictures_for(name: str, height: int = 20, width: int = 30) -> Images:
    """One picture, of the kind that the operation takes."""
    if name == "nv12_to_rgb":
        return images(noise(3, max(1, height // 3) * 3, max(1, width // 2) * 2, 1))
    picture = images(noise(3, height, width, 4 if name == "drop_alpha" else 3))
    return vision.rgb_to_hsv(picture) if name == "hsv_to_rgb" else picture


def function(name: str) -> Callable[..., Any]:
    """The operation itself."""
    return getattr(vision, name)


def signature(name: str) -> inspect.Signature:
    """Its parameters, with types for annotations."""
    return inspect.signature(function(name))
