"""32 numbers to a score by a small dense network: plain numpy and torch, shared by every peer."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

_THREADS = int(os.environ.get("TORCH_THREADS", "1"))
_SEEDING = threading.Lock()  # the generator is the process's


def load() -> nn.Module:
    """The network, its weights the same each time."""
    with _SEEDING, torch.random.fork_rng(devices=[]):
        torch.manual_seed(20240603)
        layers = [nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1)]
        return nn.Sequential(*layers, nn.Flatten(0)).eval()


@torch.inference_mode()
def score(net: nn.Module, columns: Sequence[Any]) -> np.ndarray[Any, Any]:
    """One float32 for each row.

    Args:
        net: the network.
        columns: a single one, a sequence of rows of 32 numbers.
    """
    (rows,) = columns
    torch.set_num_threads(_THREADS)  # OpenMP keeps that number for each thread
    return net(torch.from_numpy(np.asarray(rows, np.float32))).numpy()
