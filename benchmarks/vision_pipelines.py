"""Decode, resize and normalize one JPEG after another: `vision` beside hand-written OpenCV, Pillow and torch.

All on one thread, on the same files, in rounds that take turns, by CPU seconds; ratios are medians of rounds.
OpenCV has no antialiased linear resize: it is compared by its plain one with `antialias=False`, and by
INTER_AREA with `antialias=True`. "torch" is what torchvision does to a float32 tensor, antialiased.
"""

from __future__ import annotations

import io
import statistics
import time
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image

from parity import Profile, numerics, vision

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
HEIGHT, WIDTH = SIZE = (224, 224)
FILES, ROUNDS = 8, 15

_mean, _std = np.array(MEAN, np.float32), np.array(STD, np.float32)
_k, _b = (1 / (255 * _std)).astype(np.float32), _mean / _std


def run() -> dict[str, Any]:
    """Milliseconds an image and the bars."""
    numerics.apply(Profile(threads=1))
    cv2.setNumThreads(1)
    files = [jpeg(seed) for seed in range(FILES)]
    vision.backends()
    plan = vision.Plan(
        vision.step(vision.resize_shortest, 256, antialias=True),
        vision.step(vision.center_crop, SIZE),
        vision.step(vision.normalize, mean=MEAN, std=STD),
    )
    ways: dict[str, Callable[[bytes], Any]] = {
        "vision": lambda data: with_vision(data, antialias=False),
        "vision antialiased": lambda data: with_vision(data, antialias=True),
        "OpenCV linear": lambda data: with_opencv(data, cv2.INTER_LINEAR),
        "OpenCV area": lambda data: with_opencv(data, cv2.INTER_AREA),
        "Pillow": with_pillow,
        "torch antialiased": with_torch,
        "plan": lambda data: plan(vision.decode([data])),
        "plan, unfused": lambda data: plan.unfused(vision.decode([data])),
    }
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for way in ways.values():
        way(files[0])
    for _ in range(ROUNDS):
        for name, way in ways.items():
            began = time.thread_time()
            for data in files:
                way(data)
            spent[name].append((time.thread_time() - began) / FILES)

    def faster(ours: str, theirs: str) -> float:
        return statistics.median(b / a for a, b in zip(spent[ours], spent[theirs], strict=True))

    return {
        "bars": [
            bar(
                "throughput of hand-written OpenCV, neither antialiased",
                faster("vision", "OpenCV linear"),
                0.95,
            ),
            bar(
                "throughput of OpenCV's INTER_AREA, antialiased",
                faster("vision antialiased", "OpenCV area"),
                0.95,
            ),
            bar("throughput of Pillow, antialiased", faster("vision antialiased", "Pillow"), 1.0),
            bar("throughput of torch, antialiased", faster("vision antialiased", "torch antialiased"), 1.0),
            bar("throughput of the same plan unfused: resize, crop", faster("plan", "plan, unfused"), 1.0),
        ],
        "milliseconds an image": {
            name: round(1e3 * statistics.median(found), 3) for name, found in spent.items()
        },
        "image": "640 x 480 JPEG, quality 90, 4:2:0, to 224 x 224",
    }


def bar(what: str, value: float, least: float) -> dict[str, Any]:
    return {"what": what, "value": value, "bar": least, "at": "least"}


def jpeg(seed: int) -> bytes:
    """A picture with edges, slopes and some noise."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[0:480, 0:640]
    waves = np.stack([np.sin(x / 9 + seed), np.cos(y / 7), np.sin((x + y) / 31)], -1) * 60 + 128
    waves[100:300, 200 + 10 * seed : 400] += 60
    pixels = np.clip(waves + random.normal(0, 6, waves.shape), 0, 255).astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=90)
    return buffer.getvalue()


def with_vision(data: bytes, *, antialias: bool) -> torch.Tensor:
    images = vision.resize(vision.decode([data]), SIZE, interpolation="linear", antialias=antialias)
    return vision.normalize(images, mean=MEAN, std=STD, layout="NCHW")


def with_opencv(data: bytes, interpolation: int) -> torch.Tensor:
    pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    assert pixels is not None
    pixels = cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB)
    pixels = cv2.resize(pixels, (WIDTH, HEIGHT), interpolation=interpolation)
    scaled = pixels.astype(np.float32) * _k - _b
    return torch.from_numpy(np.ascontiguousarray(scaled.transpose(2, 0, 1)[None]))


def with_pillow(data: bytes) -> torch.Tensor:
    image = Image.open(io.BytesIO(data)).convert("RGB").resize((WIDTH, HEIGHT), Image.Resampling.BILINEAR)
    scaled = np.asarray(image).astype(np.float32) * _k - _b
    return torch.from_numpy(np.ascontiguousarray(scaled.transpose(2, 0, 1)[None]))


def with_torch(data: bytes) -> torch.Tensor:
    pixels = torch.from_numpy(np.array(Image.open(io.BytesIO(data)).convert("RGB")))
    planes = pixels.permute(2, 0, 1)[None].to(torch.float32) / 255
    resized = F.interpolate(planes, SIZE, mode="bilinear", align_corners=False, antialias=True)
    mean, std = (torch.from_numpy(values)[:, None, None] for values in (_mean, _std))
    return (resized - mean) / std
