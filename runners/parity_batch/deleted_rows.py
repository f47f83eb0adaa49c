"""Rows that a table has deleted beside a file: they are still in the file, and are not of the table."""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

Flags = np.ndarray[Any, np.dtype[np.bool_]]
Positions = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class DeletedRows:
    """The positions of a file's deleted rows, at least one, small enough to travel with each unit.

    Attributes:
        count: how many they are.
        end: the position after the last of them.
        sha256: a digest of the positions.
        packed: a bit for each row before `end`, the lowest first, set where it is deleted; compressed.
    """

    count: int
    end: int
    sha256: str
    packed: bytes = field(repr=False)

    @classmethod
    def flagged(cls, deleted: Flags) -> Self | None:
        """Those of a file whose rows are flagged from the first on; None where there is none."""
        places = np.flatnonzero(deleted)
        if not len(places):
            return None
        end = int(places[-1]) + 1
        bits = np.packbits(deleted[:end], bitorder="little").tobytes()
        return cls(len(places), end, hashlib.sha256(bits).hexdigest(), zlib.compress(bits, 1))

    @classmethod
    def at(cls, positions: Positions) -> Self | None:
        """Those at these positions, int64, in any order and any number of times.

        Raises:
            ValueError: a position is negative.
        """
        if not len(positions):
            return None
        if positions.min() < 0:
            raise ValueError(f"{positions.min()} is no position of a row")
        flags = np.zeros(int(positions.max()) + 1, np.bool_)
        flags[positions] = True
        return cls.flagged(flags)

    def unpacked(self) -> DeletedFlags:
        """The same, to be asked about runs of rows."""
        return DeletedFlags(np.frombuffer(zlib.decompress(self.packed), np.uint8))


@dataclass(frozen=True, slots=True)
class DeletedFlags:
    """Which rows of a file are deleted, an eighth of a byte a row.

    Attributes:
        bits: uint8, as in `DeletedRows.packed`.
    """

    bits: np.ndarray[Any, np.dtype[np.uint8]]

    def between(self, start: int, stop: int) -> Flags:
        """A flag for each row from `start` to before `stop`, set where it is deleted."""
        first = start // 8
        known = np.unpackbits(self.bits[first : -(-stop // 8)], bitorder="little")[start - first * 8 :]
        flags = np.zeros(stop - start, np.bool_)
        known = known[: stop - start]
        flags[: len(known)] = known
        return flags

    def count(self, start: int, stop: int) -> int:
        """How many rows from `start` to before `stop` are deleted."""
        return int(self.between(start, stop).sum())
