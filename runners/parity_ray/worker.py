"""What runs in a Ray actor: a handler that is loaded once, and tables scored by it."""

from __future__ import annotations

import pyarrow as pa

from parity.distributed import Placement, TableScorer


class Worker:
    """The callable class that `map_batches` makes one object of in each actor.

    Args:
        placement: the handler and its profile.
        columns: the columns to pass through.
        batch_rows: rows scored at once.
        tap: a folder that the engine writes its stages to, or None.
    """

    def __init__(
        self, placement: Placement, columns: tuple[str, ...], batch_rows: int, tap: str | None
    ) -> None:
        self._scorer = TableScorer(placement, columns=columns, batch_rows=batch_rows, tap=tap)

    def __call__(self, rows: pa.Table) -> pa.Table:
        """The rows, scored."""
        return self._scorer.score(rows)
