"""JPEG bytes to a score by a small convolutional network: plain OpenCV and torch, shared by every peer."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from typing import Any, cast

import cv2
import numpy as np
import torch
from torch import nn

FEATURES = ["jpeg"]
PASSED = ["id"]
SIDE = 128
_ROWS = 16
_THREADS = int(os.environ.get("TORCH_THREADS", "1"))
_SEEDING = threading.Lock()  # the generator is the process's


def load() -> nn.Module:
    """The network, its weights the same each time."""
    layers: list[nn.Module] = []
    with _SEEDING, torch.random.fork_rng(devices=[]):
        torch.manual_seed(20240603)
        for wide, wider in ((3, 16), (16, 32), (32, 64), (64, 128)):
            layers += [nn.Conv2d(wide, wider, 3, stride=2, padding=1), nn.ReLU()]
            layers += [nn.Conv2d(wider, wider, 3, padding=1), nn.ReLU()]
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 1), nn.Flatten(0)]
        return nn.Sequential(*layers).eval()


def decode(data: Iterable[bytes]) -> torch.Tensor:
    """Pictures as (n, 3, 128, 128) float32, from -1 to 1."""
    made: list[np.ndarray[Any, Any]] = []
    for item in data:
        picture = cast("Any", cv2.imdecode(np.frombuffer(item, np.uint8), cv2.IMREAD_COLOR))
        made.append(cv2.resize(picture, (SIDE, SIDE), interpolation=cv2.INTER_AREA))
    stacked = torch.from_numpy(np.stack(made))
    return (stacked.permute(0, 3, 1, 2).contiguous().float() - 127.5) / 127.5


@torch.inference_mode()
def score(net: nn.Module, columns: Sequence[Any]) -> np.ndarray[Any, Any]:
    """One float32 for each row, 16 rows at a time.

    Args:
        net: the network.
        columns: a single one, a sequence of JPEG files.
    """
    (pictures,) = columns
    torch.set_num_threads(_THREADS)  # OpenMP keeps that number for each thread
    scores = np.empty(len(pictures), np.float32)
    for start in range(0, len(scores), _ROWS):
        scores[start : start + _ROWS] = net(decode(pictures[start : start + _ROWS])).numpy()
    return scores
