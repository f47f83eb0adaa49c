"""Fewer items, within a budget of trials and time: delta debugging (Zeller and Hildebrandt, 2002)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


class Budget:
    """So many trials, and so many seconds from now, whichever is spent first.

    Args:
        trials: the most trials.
        seconds: the most seconds; None for any number.
        clock: what tells the seconds.
    """

    def __init__(
        self, trials: int, seconds: float | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.trials = trials
        self._clock = clock
        self._end = None if seconds is None else clock() + seconds

    @property
    def spent(self) -> bool:
        """Whether no further trial is allowed."""
        return self.trials <= 0 or (self._end is not None and self._clock() >= self._end)

    def take(self) -> bool:
        """Take one trial; False when there is none left."""
        if self.spent:
            return False
        self.trials -= 1
        return True


def shrink(items: Sequence[Item], fails: Callable[[list[Item]], bool], budget: Budget) -> list[Item]:
    """A subsequence of `items` that fails and of which, the budget permitting, no item can be left out.

    Args:
        items: what fails as a whole; it is not tried again.
        fails: whether a subsequence, never empty and in the original order, fails.
        budget: how often `fails` may be called; when it is spent, the best so far is returned.
    """
    kept = list(items)
    parts = 2
    while len(kept) > 1:
        size = -(-len(kept) // parts)
        chunks = [kept[start : start + size] for start in range(0, len(kept), size)]
        candidates = [*chunks] if parts == 2 else []
        candidates += [_without(chunks, position) for position in range(len(chunks)) if len(chunks) > 2]
        for candidate in candidates:
            if not budget.take():
                return kept
            if fails(candidate):
                parts = max(2, min(parts - 1, len(candidate)))
                kept = candidate
                break
        else:
            if parts >= len(kept):
                return kept
            parts = min(2 * parts, len(kept))
    return kept


def _without(chunks: Sequence[list[Item]], position: int) -> list[Item]:
    return [item for index, chunk in enumerate(chunks) if index != position for item in chunk]
