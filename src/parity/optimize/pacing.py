"""Two calls measured in turns, so that what else the machine does slows both, until one is clearly faster."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

LEAST_PAIRS: Final = 15
_LEAST_S: Final = 0.002
"""A call that takes less is made several times for one measurement."""


@dataclass(frozen=True)
class Pace:
    """How fast a call is beside another.

    Attributes:
        pairs: how often both were measured, one right after the other.
        ratio: the median over pairs of the other call's time to this one's: above 1 it is faster.
        low: the lower end of a 95 % interval of that median.
        high: its upper end.
        base_ms: the median milliseconds of the other call.
        ms: the median milliseconds of this one.
        p99_ms: the 99th percentile of this one's; each call counts.
    """

    pairs: int
    ratio: float
    low: float
    high: float
    base_ms: float
    ms: float
    p99_ms: float

    def to_dict(self) -> dict[str, float]:
        """The pace as JSON-ready data."""
        return {name: round(value, 5) for name, value in vars(self).items()}


def measure(
    base: Callable[[], object],
    other: Callable[[], object],
    *,
    goal: float,
    seconds: float,
    clock: Callable[[], float] = time.perf_counter,
) -> Pace:
    """Measure `other` beside `base` until it clearly is `goal` times as fast, or is not, or time is over.

    The interval of the median is that of order statistics (a sign test), which assumes nothing of the noise.

    Args:
        base: the call to compare with.
        other: the call that is to be faster.
        goal: the ratio to decide about.
        seconds: when to stop at the latest; at least one pair is measured.
        clock: what tells the seconds.
    """
    base()
    other()
    counts = _repeats(base, clock), _repeats(other, clock)
    times: tuple[list[float], list[float]] = ([], [])
    ratios: list[float] = []
    each: list[float] = []
    end = clock() + seconds
    while not ratios or clock() < end:
        found = [0.0, 0.0]
        for side in (0, 1) if len(ratios) % 2 else (1, 0):
            call, count = (base, other)[side], counts[side]
            started = clock()
            for _ in range(count):
                one = clock()
                call()
                if side:
                    each.append(clock() - one)
            found[side] = (clock() - started) / count
            times[side].append(found[side])
        ratios.append(found[0] / max(found[1], 1e-9))
        low, high = _interval(ratios)
        if len(ratios) >= LEAST_PAIRS and (low >= goal or high < goal):
            break
    low, high = _interval(ratios)
    return Pace(
        len(ratios),
        _middle(ratios),
        low,
        high,
        _middle(times[0]) * 1000,
        _middle(times[1]) * 1000,
        sorted(each)[math.ceil(0.99 * len(each)) - 1] * 1000,
    )


def _repeats(call: Callable[[], object], clock: Callable[[], float]) -> int:
    started = clock()
    call()
    return max(1, min(1000, math.ceil(_LEAST_S / max(clock() - started, 1e-6))))


def _middle(values: Sequence[float]) -> float:
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _interval(values: Sequence[float]) -> tuple[float, float]:
    """A 95 % interval of the median by ranks; everything where there are too few values."""
    ordered, count = sorted(values), len(values)
    rank = math.floor((count - 1.96 * math.sqrt(count)) / 2)
    if rank < 1:
        return 0.0, math.inf
    return ordered[rank - 1], ordered[count - rank]
