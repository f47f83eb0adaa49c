"""Batch sizes of "auto": the smallest beyond which a handler answers no more rows a second.

Sizes are tried from small to large, each the double of the one before, or the profile's buckets. The search
ends where two sizes in a row have brought less than `GROWTH_SHARE` more rows a second, where a batch takes
longer than it may, or where the next one is not to be tried, as it may not fit into memory. Of the sizes that
keep to these bounds the smallest is chosen whose rate is within `GROWTH_SHARE` of the best: what is larger
would only wait longer.

No clock and no engine: runners have them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

AUTO: Literal["auto"] = "auto"
"""What a user says in place of a number."""

GROWTH_SHARE = 0.05
"""So much more of rows a second a larger batch must bring."""

_FLAT_MOST = 2


@dataclass(frozen=True, slots=True)
class Timing:
    """The least seconds that a batch of so many rows took."""

    rows: int
    seconds: float

    @property
    def rows_per_s(self) -> float:
        """The rate."""
        return self.rows / max(self.seconds, 1e-9)


@dataclass(frozen=True, slots=True)
class Sizing:
    """What was decided.

    Attributes:
        rows: most rows in a batch.
        timings: what was measured, from small to large; empty where nothing had to be.
        reason: why no larger size was taken.
    """

    rows: int
    timings: tuple[Timing, ...]
    reason: str

    @property
    def batch_s(self) -> float:
        """The seconds that a warm batch of `rows` rows takes; 0 where nothing was measured."""
        return next((timing.seconds for timing in self.timings if timing.rows == self.rows), 0.0)

    def __str__(self) -> str:
        rates = ", ".join(f"{timing.rows}: {timing.rows_per_s:.4g}" for timing in self.timings)
        measured = f"; measured rows a second by rows in a batch: {rates}" if rates else ""
        return f"auto: {self.rows} rows, {self.reason}{measured}"

    def to_json(self, name: str = "rows") -> dict[str, Any]:
        """It as JSON-ready data, in which the size has a name."""
        measured = [
            {"rows": timing.rows, "seconds": timing.seconds, "rows_per_s": timing.rows_per_s}
            for timing in self.timings
        ]
        return {name: self.rows, "reason": self.reason, "measured": measured}


def sizes_to_try(buckets: Sequence[int], most_rows: int, least_rows: int = 1) -> list[int]:
    """The sizes in rows, ascending: the buckets, or powers of two; none above `most_rows`."""
    if buckets:
        return sorted(size for size in buckets if size <= most_rows) or [most_rows]
    sizes = [1 << power for power in range(most_rows.bit_length())]
    return [size for size in sizes if size >= least_rows] or [most_rows]


def choose(
    time_s: Callable[[int], float],
    sizes: Sequence[int],
    *,
    allowed_s: float = math.inf,
    refused: Callable[[Timing, int], str] = lambda _last, _rows: "",
) -> Sizing:
    """Time batches of growing sizes and decide.

    Args:
        time_s: runs batches of so many rows; the least seconds that one took.
        sizes: the sizes to try, ascending; at least one.
        allowed_s: how long a batch may take.
        refused: why, after this timing, a batch of so many more rows is not to be tried; empty where it is.
    """
    timings: list[Timing] = []
    best, flat = 0.0, 0
    bound = f"no larger size was tried than {sizes[-1]}"
    for rows in sizes:
        if timings and (why := refused(timings[-1], rows)):
            bound = why
            break
        timing = Timing(rows, time_s(rows))
        timings.append(timing)
        if timing.seconds > allowed_s:
            bound = f"a batch of {rows} takes {_ms(timing.seconds)}, and may take {_ms(allowed_s)}"
            break
        flat = flat + 1 if timing.rows_per_s < best * (1 + GROWTH_SHARE) else 0
        best = max(best, timing.rows_per_s)
        if flat == _FLAT_MOST:
            break
    allowed = [timing for timing in timings if timing.seconds <= allowed_s]
    if not allowed:
        return Sizing(sizes[0], tuple(timings), f"the smallest, though {bound}")
    chosen = next(timing for timing in allowed if timing.rows_per_s * (1 + GROWTH_SHARE) >= best)
    if chosen is not allowed[-1]:
        bound = f"beyond which a batch brings less than {GROWTH_SHARE:.0%} more rows a second"
    return Sizing(chosen.rows, tuple(timings), bound)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.3g} ms"
