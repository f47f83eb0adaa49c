"""The version of what each operation means. It is raised when the same call begins to give other pixels.

A golden case records the versions of the operations that its rows went through, so that answers which moved
for this reason are told by it. A test holds a digest of what each operation gives beside its version: a
meaning that changes without a new version fails.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Final

VERSIONS: Final = MappingProxyType(
    {
        "add_alpha": 1,
        "argmax": 1,
        "box_blur": 1,
        "center_crop": 1,
        "crop": 1,
        "decode": 1,
        "dilate": 1,
        "draw_boxes": 1,
        "drop_alpha": 1,
        "encode_jpeg": 1,
        "encode_png": 1,
        "equalize": 1,
        "erode": 1,
        "exposure": 1,
        "flip": 1,
        "gaussian_blur": 1,
        "hsv_to_rgb": 1,
        "invert": 1,
        "laplacian": 1,
        "letterbox": 1,
        "median_blur": 1,
        "nms": 1,
        "normalize": 1,
        "nv12_to_rgb": 1,
        "pad": 1,
        "posterize": 1,
        "resize": 1,
        "resize_longest": 1,
        "resize_shortest": 1,
        "rgb_to_gray": 1,
        "rgb_to_hsv": 1,
        "roi_crop_resize": 1,
        "rotate": 1,
        "rotate90": 1,
        "sharpness": 1,
        "softmax": 1,
        "swap_channels": 1,
        "threshold": 1,
        "to_float": 1,
        "to_u8": 1,
        "topk": 1,
        "warp_affine": 1,
        "warp_perspective": 1,
        "yuv_to_rgb": 1,
    }
)

_used: set[str] = set()
_plans: dict[str, set[str]] = {}
_noting: ContextVar[bool] = ContextVar("noting", default=True)


def versions() -> dict[str, int]:
    """The version of each operation's meaning, by the operation's name."""
    return dict(VERSIONS)


def note_use(operation: str) -> None:
    """Note that an operation was used in this process."""
    if _noting.get():
        _used.add(operation)


@contextmanager
def unnoted() -> Generator[None]:
    """Within it, this thread's uses of operations are not noted: no picture goes through them."""
    before = _noting.set(False)
    try:
        yield
    finally:
        _noting.reset(before)


def used() -> dict[str, int]:
    """The versions of the operations that were used in this process, whoever used them."""
    return {operation: VERSIONS[operation] for operation in sorted(_used.copy()) if operation in VERSIONS}


def note_plan(name: str, digest: str) -> None:
    """Note that a plan was used in this process."""
    if digest not in _plans.get(name, ()):
        _plans[name] = {digest} | _plans.get(name, set())


def plans() -> dict[str, str]:
    """The digests of the plans that were used in this process, by name; of several of a name all."""
    return {name: " ".join(sorted(digests)) for name, digests in _plans.copy().items()}
