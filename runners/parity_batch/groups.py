"""Micro-batches that are scored one after the other without anything in between.

What a micro-batch costs beside the model (decoding, building outputs, handing over to the writer) is paid
once for a group. And a small model's activations lie where those of the micro-batch before lay, in the cache:
with reading and writing in between, a dense network of three layers took one and a half times as long.

Grouping never shows in the answers: a handler sees the same micro-batches. So it may follow the clock.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any, cast

import pyarrow as pa

MOST_BATCHES = 16
GROUP_BYTES = 4 * 1024 * 1024
"""A group has no more bytes of input, so that large rows are scored as they are read."""

_SHORT_S, _LONG_S = 0.03, 0.1


class Pace:
    """How many micro-batches make a group: more while one takes no time, so that jobs still stop at once.

    Args:
        most: the most micro-batches in a group; at least one.
    """

    def __init__(self, most: int = MOST_BATCHES) -> None:
        self._most = max(1, min(most, MOST_BATCHES))
        self.batches = 1

    def took(self, seconds: float) -> None:
        """Take note of how long a group was scored; any thread may."""
        if seconds < _SHORT_S:
            self.batches = min(self._most, self.batches * 2)
        elif seconds > _LONG_S:
            self.batches = max(1, self.batches // 2)


def grouped(
    batches: Iterable[pa.RecordBatch], batch_rows: int, pace: Pace
) -> Generator[pa.RecordBatch, None, None]:
    """The same rows with whole micro-batches put together as the pace has it.

    Args:
        batches: micro-batches.
        batch_rows: the rows of a whole one; shorter ones stay alone, as do single rows, which may be too
            large.
        pace: how many are put together.
    """
    held: list[pa.RecordBatch] = []
    held_bytes = 0
    for rows in batches:
        size = rows.nbytes
        alone = rows.num_rows != batch_rows or batch_rows == 1
        if held and (alone or held_bytes + size > GROUP_BYTES or not held[0].schema.equals(rows.schema)):
            yield from _together(held)
            held, held_bytes = [], 0
        if alone:
            yield rows
            continue
        held.append(rows)
        held_bytes += size
        if len(held) >= pace.batches:
            yield from _together(held)
            held, held_bytes = [], 0
    yield from _together(held)


def _together(held: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    if len(held) < 2:
        return held
    try:
        return [cast("Any", pa).concat_batches(held)]
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):  # types that Arrow cannot put together
        return held
