"""The images' path as a handler has it: JPEG files to a normalized tensor, on the host and to the device."""

from __future__ import annotations

import time
from collections.abc import Iterator

import torch

from benchmarks.gpu.table import Line
from benchmarks.vision_pipelines import MEAN, SIZE, STD, jpeg
from parity import vision

FILES, ROUNDS = 32, 8


def compared(device: str) -> Iterator[Line]:
    """One line: milliseconds a batch of files, the decoding and the copy included."""
    files = [jpeg(seed % 8) for seed in range(FILES)]
    expected, found = path(files, "cpu"), path(files, device).cpu()
    apart = (expected - found).abs().max().item()
    yield Line(
        "pipeline",
        f"{FILES} JPEG files to {SIZE[0]} x {SIZE[1]}",
        apart <= 1e-3,
        apart,
        wall(files, "cpu"),
        wall(files, device),
        "normalized units, bar 0.001; milliseconds a batch",
    )


def path(files: list[bytes], device: str) -> torch.Tensor:
    images = vision.resize(vision.decode(files, device=device), SIZE, interpolation="linear", antialias=True)
    return vision.normalize(images, mean=MEAN, std=STD, layout="NCHW")


def wall(files: list[bytes], device: str) -> float:
    """Milliseconds of wall time a batch, over batches that may overlap."""
    path(files, device)
    began = time.perf_counter()
    made = [path(files, device) for _ in range(ROUNDS)]
    made[-1].flatten()[0].item()  # on one stream, the last is made last
    return 1e3 * (time.perf_counter() - began) / ROUNDS
