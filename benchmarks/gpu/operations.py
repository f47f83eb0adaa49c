"""Image operations: the device against the host, by torch alone and by whatever does them there."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch

from benchmarks.gpu.clock import milliseconds
from benchmarks.gpu.table import Line
from parity import vision
from parity.vision import Images
from parity.vision.fastpaths import definitions_only

OPERATIONS: dict[str, tuple[float, Callable[[Images], Images]]] = {
    "resize linear antialiased": (0.0255, lambda x: vision.resize(x, (224, 224), antialias=True)),
    "resize linear": (0.0255, lambda x: vision.resize(x, (224, 224), antialias=False)),
    "resize cubic antialiased": (
        0.0255,
        lambda x: vision.resize(x, (224, 224), interpolation="cubic", antialias=True),
    ),
    "resize nearest": (
        0.0,
        lambda x: vision.resize(x, (224, 224), interpolation="nearest", antialias=False),
    ),
    "resize u8_exact": (
        0.0,
        lambda x: vision.resize(x, (224, 224), antialias=True, contract="u8_exact"),
    ),
    "center_crop": (0.0, lambda x: vision.center_crop(x, (224, 224))),
    "pad reflect": (0.0, lambda x: vision.pad(x, 9, 9, 9, 9, mode="reflect")),
    "letterbox": (0.0255, lambda x: vision.letterbox(x, (320, 320), antialias=True)[0]),
    "flip": (0.0, lambda x: vision.flip(x, horizontal=True)),
    "swap_channels": (0.0, lambda x: vision.swap_channels(x, (2, 1, 0))),
    "rgb_to_gray": (0.0, vision.rgb_to_gray),
    "gaussian_blur": (0.0255, lambda x: vision.gaussian_blur(x, kernel=7, sigma=1.5)),
    "to_float": (0.0, vision.to_float),
}
"""Each operation with the largest difference from the host that it may have, in levels of 255."""


def compared(device: str) -> Iterator[Line]:
    """A line for each operation by torch and, where CV-CUDA does it, one more by CV-CUDA."""
    pixels = np.random.default_rng(1).integers(0, 256, (16, 480, 640, 3), np.uint8)
    host = Images(torch.from_numpy(pixels))
    there = Images(torch.from_numpy(pixels).to(device))
    for name, (bar, operation) in OPERATIONS.items():
        expected = operation(host).stack()
        host_ms = milliseconds(lambda operation=operation: operation(host), "cpu")
        with definitions_only():
            by_torch = operation(there).stack()
            torch_ms = milliseconds(lambda operation=operation: operation(there), device)
        yield _line(f"{name}, torch", expected, by_torch, bar, host_ms, torch_ms)
        whatever = operation(there).stack()
        device_ms = milliseconds(lambda operation=operation: operation(there), device)
        yield _line(f"{name}, as used", expected, whatever, bar, host_ms, device_ms)
    for backend in vision.backends():
        if backend.place == "device":
            note = "" if backend.used else "torch does it: "
            yield Line(
                "vision", f"{backend.operation} by {backend.library}", None, note=note + backend.reason
            )


def _line(
    what: str, expected: torch.Tensor, found: torch.Tensor, bar: float, host_ms: float, device_ms: float
) -> Line:
    apart = (expected.to(torch.float64) - found.cpu().to(torch.float64)).abs().max().item()
    note = "levels of 255, bar 0" if bar == 0 else f"levels of 255, bar {bar}"
    return Line("vision", what, apart <= bar, apart, host_ms, device_ms, note)
