"""The numbers of many rows: the first of them, in bounded memory."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class FirstRows:
    """The least `most` of the rows taken in, None for all; `ordered` when they come in ascending order."""

    def __init__(self, *, ordered: bool, most: int | None) -> None:
        self._ordered, self._most = ordered, most
        self._parts: list[Positions] = []
        self._held = 0
        self._bound: int | None = None
        self.count = 0

    def add(self, rows: Positions, mask: Mask | None = None) -> None:
        """Take in some more rows, all or those that `mask` marks."""
        if mask is not None:
            rows = rows[mask]
        self.count += len(rows)
        if self._bound is not None:
            rows = rows[rows < self._bound]
        if not len(rows):
            return
        self._parts.append(rows)
        self._held += len(rows)
        if self._most is not None and self._held >= 2 * self._most:
            self._parts = [self.total()]
            self._held = self._most
            self._bound = int(self._parts[0][-1])

    def total(self) -> Positions:
        """The rows kept, ascending."""
        rows = np.concatenate(self._parts) if self._parts else np.empty(0, np.int64)
        return (rows if self._ordered else np.sort(rows))[: self._most]
