"""Where the values of a nested level lie: in which row of the table, and where in its lists.

A level's positions keep the order of the rows, so the positions of one row are a range.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Places(ABC):
    """The places of one level's positions, of which there are `count`."""

    count: int

    @abstractmethod
    def rows(self, positions: Positions) -> Positions:
        """The row in which each position lies."""

    @abstractmethod
    def spread(self, flags: Mask | None) -> Mask:
        """The rows of which any position is flagged, all of them for None."""

    @abstractmethod
    def span(self, row: int) -> tuple[int, int]:
        """The range of positions that lie in `row`."""

    @abstractmethod
    def path(self, position: int) -> list[int]:
        """The place of a position in the lists around it, outermost first; empty outside of lists."""


class Rows(Places):
    """The outermost level: a position is a row."""

    def __init__(self, count: int) -> None:
        self.count = count

    def rows(self, positions: Positions) -> Positions:
        """The positions themselves."""
        return positions

    def spread(self, flags: Mask | None) -> Mask:
        """The flags themselves."""
        return np.ones(self.count, np.bool_) if flags is None else flags

    def span(self, row: int) -> tuple[int, int]:
        """The row alone."""
        return row, row + 1

    def path(self, position: int) -> list[int]:  # noqa: ARG002 - every level is asked alike
        """Nothing: there is no list."""
        return []


class Kept(Places):
    """Some positions of an outer level, ascending."""

    def __init__(self, outer: Places, kept: Positions) -> None:
        self.count = len(kept)
        self._outer, self._kept = outer, kept

    def rows(self, positions: Positions) -> Positions:
        """The rows of what was kept."""
        return self._outer.rows(self._kept[positions])

    def spread(self, flags: Mask | None) -> Mask:
        """The rows of flagged positions."""
        outer = np.zeros(self._outer.count, np.bool_)
        outer[self._kept] = True if flags is None else flags
        return self._outer.spread(outer)

    def span(self, row: int) -> tuple[int, int]:
        """What was kept of the row's range."""
        begin, end = np.searchsorted(self._kept, self._outer.span(row)).tolist()
        return begin, end

    def path(self, position: int) -> list[int]:
        """The outer level's path."""
        return self._outer.path(int(self._kept[position]))


class Items(Places):
    """The elements of an outer level's lists, one list after another; `offsets` has one entry more."""

    def __init__(self, outer: Places, offsets: Positions) -> None:
        self.count = int(offsets[-1])
        self._outer, self._offsets = outer, offsets

    def rows(self, positions: Positions) -> Positions:
        """The rows of the lists that hold the positions."""
        return self._outer.rows(np.searchsorted(self._offsets, positions, side="right") - 1)

    def spread(self, flags: Mask | None) -> Mask:
        """The rows of lists that hold a flagged position."""
        if flags is None:
            return self._outer.spread(self._offsets[1:] != self._offsets[:-1])
        before = np.zeros(len(flags) + 1, np.int64)
        np.cumsum(flags, out=before[1:])
        before = before[self._offsets]
        return self._outer.spread(before[1:] != before[:-1])

    def span(self, row: int) -> tuple[int, int]:
        """The elements of the row's lists."""
        begin, end = self._outer.span(row)
        return int(self._offsets[begin]), int(self._offsets[end])

    def path(self, position: int) -> list[int]:
        """The outer path, and the place in the list."""
        holder = int(np.searchsorted(self._offsets, position, side="right")) - 1
        return [*self._outer.path(holder), position - int(self._offsets[holder])]
