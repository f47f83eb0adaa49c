"""Rows cut into batches of one size, bounded in bytes too; the cuts follow from the rows alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import numpy as np
import pyarrow as pa

from parity.codec.arrow_sizes import row_bytes

BATCH_BYTES = 32 * 1024 * 1024
"""A micro-batch of more bytes is cut short, unless it is a single row."""

TOGETHER_BYTES = 4 * 1024 * 1024
"""Whole micro-batches are given out together only where they have no more bytes."""


def rebatch(
    batches: Iterable[pa.RecordBatch],
    rows: int,
    most_bytes: int = BATCH_BYTES,
    together: Callable[[], int] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The same rows cut into batches of exactly `rows` rows, but for the last one and for large rows.

    A batch of several rows has at most `most_bytes`, each row counted with the values of its own: one that
    rows share, as in a dictionary, for each of them.

    Args:
        batches: the rows.
        rows: of a batch.
        most_bytes: of a batch.
        together: how many batches of `rows` rows may be given out as one, asked each time; fewer are where
            what was read, or `TOGETHER_BYTES`, ends. Cut each `rows` rows, it is the same batches.
    """
    held: list[pa.RecordBatch] = []
    held_rows = 0
    held_bytes = 0.0
    widths = _Widths()
    for batch in batches:
        start, sizes = 0, _Sizes(batch, widths)
        while start < batch.num_rows:
            if together is not None and not held and rows > 1:
                several = min(together(), (batch.num_rows - start) // rows) * rows
                most = min(most_bytes, TOGETHER_BYTES)
                while several > rows and sizes.of(start, several) > most:
                    several = several // rows // 2 * rows
                if several > rows:
                    yield batch.slice(start, several)
                    start += several
                    continue
            count = min(rows - held_rows, batch.num_rows - start)
            while count > 1 and held_bytes + sizes.of(start, count) > most_bytes:
                count //= 2
            size = sizes.of(start, count)
            if held and held_bytes + size > most_bytes:
                yield _joined(held)
                held, held_rows, held_bytes = [], 0, 0.0
                continue
            held.append(batch.slice(start, count))
            start += count
            held_rows += count
            held_bytes += size
            if held_rows == rows:
                yield _joined(held)
                held, held_rows, held_bytes = [], 0, 0.0
    if held:
        yield _joined(held)


class _Widths:
    """Which columns have rows of one size, by their types alone: looked at once for batches of one schema."""

    def __init__(self) -> None:
        self._schema: pa.Schema | None = None
        self._each = 0.0
        self._others: list[int] = []

    def of(self, schema: pa.Schema) -> tuple[float, list[int]]:
        """The bytes of a row of such columns together, and the places of the others."""
        if self._schema is None or not schema.equals(self._schema):
            self._schema, self._each, self._others = schema, 0.0, []
            for place, kind in enumerate(schema.types):
                if pa.types.is_primitive(kind):
                    self._each += kind.bit_width / 8
                else:
                    self._others.append(place)
        return self._each, self._others


class _Sizes:
    """How many bytes runs of a batch's rows take."""

    def __init__(self, batch: pa.RecordBatch, widths: _Widths) -> None:
        self._each, others = widths.of(batch.schema)
        self._before: np.ndarray[Any, np.dtype[np.float64]] | None = None
        several = np.zeros(0)
        for place in others:
            found = row_bytes(batch.column(place))
            if isinstance(found, np.ndarray):
                several = found if not len(several) else several + found
            else:
                self._each += found
        if len(several):
            self._before = np.concatenate([np.zeros(1), np.cumsum(several)])

    def of(self, start: int, rows: int) -> float:
        own = 0.0 if self._before is None else float(self._before[start + rows] - self._before[start])
        return self._each * rows + own


def _joined(pieces: list[pa.RecordBatch]) -> pa.RecordBatch:
    return pieces[0] if len(pieces) == 1 else cast("Any", pa).concat_batches(pieces)
