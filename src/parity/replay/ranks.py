"""Order statistics of two columns that come in pieces: rank correlations, top k, a random sample of pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

Floats = np.ndarray[Any, np.dtype[np.float64]]
Ints = np.ndarray[Any, np.dtype[np.int64]]

_KENDALL_PAIRS = 2000


class PairSample:
    """A uniform random sample of pairs, of bounded size; the same pairs every time.

    Args:
        size: the most pairs that are kept.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._random = np.random.default_rng(0)
        self._kept: Floats = np.empty((0, 3))

    def add(self, one: Floats, other: Floats) -> None:
        """Look at more pairs."""
        found = np.column_stack([self._random.random(len(one)), one, other])
        kept = np.concatenate([self._kept, found])
        if len(kept) > self._size:
            kept = kept[np.argpartition(kept[:, 0], self._size)[: self._size]]
        self._kept = kept

    @property
    def pairs(self) -> tuple[Floats, Floats]:
        """The sample, in no order of the rows."""
        return self._kept[:, 1], self._kept[:, 2]


class TopRows:
    """The rows with the largest values, exactly, however many come by; the earlier of equals.

    Args:
        size: how many.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: Floats = np.empty(0)
        self._rows: Ints = np.empty(0, np.int64)

    def add(self, values: Floats, rows: Ints) -> None:
        """Look at more rows, whose numbers are larger than those before."""
        values = np.concatenate([self._values, values])
        rows = np.concatenate([self._rows, rows])
        if len(values) > self._size:
            least = np.partition(values, len(values) - self._size)[len(values) - self._size]
            near = np.flatnonzero(values >= least)
            values, rows = values[near], rows[near]
        order = np.lexsort((rows, -values))[: self._size]
        self._values, self._rows = values[order], rows[order]

    def first(self, count: int) -> Ints:
        """The numbers of the first `count` of them, largest value first."""
        return self._rows[:count]


def spearman(one: Floats, other: Floats) -> float | None:
    """Spearman's rank correlation, ties sharing the mean of their ranks; None where a side is constant."""
    return _pearson(_ranks(one), _ranks(other))


def kendall(one: Floats, other: Floats) -> float | None:
    """Kendall's tau-b over at most the first 2000 pairs; None where a side is constant."""
    one, other = one[:_KENDALL_PAIRS], other[:_KENDALL_PAIRS]
    agreeing = first = second = 0
    for place in range(len(one) - 1):
        signs = np.sign(one[place + 1 :] - one[place])
        others = np.sign(other[place + 1 :] - other[place])
        agreeing += int((signs * others).sum())
        first += int(np.count_nonzero(signs))
        second += int(np.count_nonzero(others))
    if not first or not second:
        return None
    return agreeing / float(np.sqrt(float(first) * float(second)))


def _ranks(values: Floats) -> Floats:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return ((ends - counts + ends - 1) / 2.0)[inverse]


def _pearson(one: Floats, other: Floats) -> float | None:
    if len(one) < 2:
        return None
    one, other = one - one.mean(), other - other.mean()
    size = float(np.sqrt((one * one).sum() * (other * other).sum()))
    if size == 0:
        return None
    return float(np.clip((one * other).sum() / size, -1.0, 1.0))
