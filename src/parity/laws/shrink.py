"""Delta debugging: the fewest of some items that still show a failure (Zeller and Hildebrandt, 2002)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def shrink(items: Sequence[Item], fails: Callable[[list[Item]], bool], max_trials: int = 200) -> list[Item]:
    """A subsequence of `items` that fails and of which, the trials permitting, no item can be left out.

    Args:
        items: what fails as a whole; it is not tried again.
        fails: whether a subsequence, never empty and in the original order, fails.
        max_trials: after so many calls of `fails` the best so far is returned.
    """
    kept = list(items)
    parts = 2
    trials = 0
    while len(kept) > 1:
        size = -(-len(kept) // parts)
        chunks = [kept[start : start + size] for start in range(0, len(kept), size)]
        candidates = [*chunks] if parts == 2 else []
        candidates += [_without(chunks, position) for position in range(len(chunks)) if len(chunks) > 2]
        for candidate in candidates:
            if trials >= max_trials:
                return kept
            trials += 1
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
