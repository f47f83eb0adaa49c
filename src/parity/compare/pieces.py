"""How many rows are compared at once: so many that a call costs nothing, and fewer where rows are large."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

PIECE_ROWS = 131_072
PIECE_BYTES = 32 << 20


def piece_rows(row_bytes: int) -> int:
    """How many rows of a size are compared at once."""
    return max(1, min(PIECE_ROWS, PIECE_BYTES // max(1, row_bytes)))


def pieces(count: int, *tables: pa.Table) -> Iterator[npt.NDArray[np.int64]]:
    """The numbers 0 to `count` in pieces of as many rows of the tables as are compared at once."""
    step = piece_rows(max((table.nbytes // max(1, table.num_rows) for table in tables), default=1))
    for start in range(0, count, step):
        yield np.arange(start, min(start + step, count), dtype=np.int64)
