"""Numbers that shift: which way, how far, and what that does to the order of the rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

from parity.replay.model import ScoreDrift
from parity.replay.ranks import Floats, Ints, PairSample, TopRows, kendall, spearman
from parity.schema import Field, Floating, Integer

_SAMPLE = 100_000
_TOP = (10, 100, 1000)
_QUANTILES = (0.01, 0.05, 0.25, 0.75, 0.95, 0.99)


def is_score(field: Field) -> bool:
    """Whether a column is one of numbers; which integers are labels instead is for the caller to know."""
    return isinstance(field, Floating | Integer)


class ScoreTally:
    """Follows the shift of one column, in bounded memory.

    Args:
        column: its name.
    """

    def __init__(self, column: str) -> None:
        self._column = column
        self._rows = self._up = self._down = 0
        self._sums: list[list[float]] = [[], [], []]
        self._largest = 0.0
        self._sample = PairSample(_SAMPLE)
        self._recorded_top, self._replayed_top = TopRows(_TOP[-1]), TopRows(_TOP[-1])

    def add(self, recorded: pa.Array[Any], replayed: pa.Array[Any], rows: Ints) -> None:
        """Look at more rows, whose numbers are larger than those before."""
        one, other = _numbers(recorded), _numbers(replayed)
        finite = np.isfinite(one) & np.isfinite(other)
        one, other, rows = one[finite], other[finite], rows[finite]
        if not len(one):
            return
        shift = other - one
        self._rows += len(one)
        self._up += int(np.count_nonzero(shift > 0))
        self._down += int(np.count_nonzero(shift < 0))
        for sums, values in zip(self._sums, (one, other, shift), strict=True):
            sums[:] = [math.fsum([*sums, *values.tolist()])]
        farthest = float(shift[np.abs(shift).argmax()])
        if abs(farthest) > abs(self._largest):
            self._largest = farthest
        self._sample.add(one, other)
        self._recorded_top.add(one, rows)
        self._replayed_top.add(other, rows)

    def drift(self) -> ScoreDrift | None:
        """What was found; None when no row had a number on both sides."""
        if not self._rows:
            return None
        one, other = self._sample.pairs
        shift = other - one
        recorded, replayed, shifted = (sums[0] / self._rows for sums in self._sums)
        points = np.quantile(shift, _QUANTILES, method="nearest")
        return ScoreDrift(
            column=self._column,
            rows=self._rows,
            up=self._up,
            down=self._down,
            mean_recorded=recorded,
            mean_replayed=replayed,
            mean_shift=shifted,
            median_shift=float(np.quantile(shift, 0.5, method="nearest")),
            quantiles=tuple(zip(_QUANTILES, points.tolist(), strict=True)),
            largest_shift=self._largest,
            spearman=spearman(one, other),
            kendall=kendall(one, other),
            top=tuple((count, self._overlap(count)) for count in _counts(self._rows)),
            sampled=len(one),
        )

    def _overlap(self, count: int) -> float:
        kept = np.intersect1d(self._recorded_top.first(count), self._replayed_top.first(count))
        return len(kept) / count


def _counts(rows: int) -> list[int]:
    """The k of top k: those that are at most half of the rows, or a tenth of a few rows."""
    return [count for count in _TOP if 2 * count <= rows] or [max(1, rows // 10)]


def _numbers(column: pa.Array[Any]) -> Floats:
    """The values in float64, null as NaN; what is beyond float64's precision is rounded."""
    values = np.asarray(column.to_numpy(zero_copy_only=False))
    return values.astype(np.float64)
