"""Milliseconds of a call on host or device; on a device by events, so that queued work is counted."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

WARM_UP, CALLS = 3, 15


def milliseconds(call: Callable[[], Any], device: str) -> float:
    """The median of some calls after a few that do not count."""
    for _ in range(WARM_UP):
        call()
    return statistics.median(_on_device(call) if device != "cpu" else _on_host(call) for _ in range(CALLS))


def _on_host(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return 1e3 * (time.perf_counter() - began)


def _on_device(call: Callable[[], Any]) -> float:
    before, after = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    before.record()
    call()
    after.record()
    after.synchronize()
    return before.elapsed_time(after)
