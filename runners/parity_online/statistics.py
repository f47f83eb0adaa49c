"""What a model has done since it was loaded, in the words of Triton's statistics extension.

Counted beside the Prometheus metrics, since those keep no sums by batch size. "success" and "fail" are
requests with their time from headers to answer; "queue" is requests with their wait; the three "compute" are
batches with the time of preprocess, inference and postprocess; `inference_count` counts rows and
`execution_count` batches.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

_PARTS = {"preprocess": "compute_input", "inference": "compute_infer", "postprocess": "compute_output"}


class _Durations:
    """A count and the nanoseconds that it took in all."""

    __slots__ = ("count", "ns")

    def __init__(self) -> None:
        self.count = 0
        self.ns = 0

    def add(self, seconds: float, count: int = 1) -> None:
        self.count += count
        self.ns += round(seconds * 1e9)

    def told(self) -> dict[str, int]:
        return {"count": self.count, "ns": self.ns}


class Statistics:
    """The numbers of one model. Requests are counted on the loop, batches on the slot."""

    def __init__(self) -> None:
        self._success, self._fail, self._queue = _Durations(), _Durations(), _Durations()
        self._parts = {name: _Durations() for name in _PARTS.values()}
        self._by_size: dict[int, dict[str, _Durations]] = {}
        self._rows = 0
        self._batches = 0
        self._last_ms = 0
        self._lock = threading.Lock()  # there may be several slots

    def answered(self, seconds: float) -> None:
        """A request was answered 200."""
        self._success.add(seconds)

    def failed(self, seconds: float) -> None:
        """A request was answered with an error, or its client left."""
        self._fail.add(seconds)

    def dispatched(self, waits_s: Sequence[float]) -> None:
        """Requests left the queue after these waits."""
        self._queue.add(sum(waits_s), len(waits_s))

    def scored(self, rows: int, answered: int, stages_s: Mapping[str, float]) -> None:
        """A batch of `rows` rows, `answered` of which got an answer, has run."""
        with self._lock:
            self._batches += 1
            self._rows += answered
            self._last_ms = time.time_ns() // 1_000_000
            of_size = self._by_size.get(rows)
            if of_size is None:
                of_size = self._by_size[rows] = {name: _Durations() for name in _PARTS.values()}
            for stage, name in _PARTS.items():
                seconds = stages_s.get(stage, 0.0)
                self._parts[name].add(seconds)
                of_size[name].add(seconds)

    def told(self, name: str, version: str) -> dict[str, Any]:
        """The numbers as an entry of `model_stats`."""
        nothing = _Durations().told()
        return {
            "name": name,
            "version": version,
            "last_inference": self._last_ms,
            "inference_count": self._rows,
            "execution_count": self._batches,
            "inference_stats": {
                "success": self._success.told(),
                "fail": self._fail.told(),
                "queue": self._queue.told(),
                **{part: durations.told() for part, durations in self._parts.items()},
                "cache_hit": nothing,
                "cache_miss": nothing,
            },
            "batch_stats": [
                {"batch_size": size, **{part: durations.told() for part, durations in parts.items()}}
                for size, parts in sorted(self._by_size.copy().items())
            ],
        }
