"""Micro-batches that are scored one after the other without anything in between.

What a micro-batch costs beside the model (decoding, building outputs, handing over to the writer) is paid
once for a group. And a small model's activations lie where those of the micro-batch before lay, in the cache:
with reading and writing in between, a dense network of three layers took one and a half times as long.

Grouping never shows in the answers: a handler sees the same micro-batches. So it may follow the clock.
"""

from __future__ import annotations

MOST_BATCHES = 16

_SHORT_S, _LONG_S = 0.03, 0.1


class Pace:
    """How many micro-batches make a group: more while one takes no time, so that jobs still stop at once.

    Args:
        most: the most micro-batches in a group; at least one.
    """

    def __init__(self, most: int = MOST_BATCHES) -> None:
        self._most = max(1, min(most, MOST_BATCHES))
        self._batches = 1

    def batches(self) -> int:
        """The micro-batches of the next group."""
        return self._batches

    def took(self, seconds: float) -> None:
        """Take note of how long a group was scored; any thread may."""
        if seconds < _SHORT_S:
            self._batches = min(self._most, self._batches * 2)
        elif seconds > _LONG_S:
            self._batches = max(1, self._batches // 2)
