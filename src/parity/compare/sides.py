"""Some rows of one of the tables, paired with as many rows of the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parity.compare.values import one_array

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Side:
    """Rows of one of the tables; `rows` are their places in the original table."""

    table: pa.Table
    rows: Positions

    def take(self, positions: Positions, columns: Sequence[str] | None = None) -> Side:
        """The rows at `positions`, with all columns or these."""
        table = self.table if columns is None else self.table.select(list(columns))
        return Side(table.take(positions), self.rows[positions])

    def values(self, name: str) -> pa.Array[Any]:
        """The column `name` as one array."""
        return one_array(self.table.column(name))
