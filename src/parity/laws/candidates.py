"""Rows on their way to a counterexample: some of them, with simpler values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from parity.batch import Batch
from parity.column import Column

SIMPLIFIED = ", simplified"


@dataclass(frozen=True)
class Candidate:
    """Rows that may break a law.

    Attributes:
        batch: the rows.
        labels: where each comes from.
        origins: the position in the bench's pool that each comes from.
        judged: for each, whether its answer counts.
    """

    batch: Batch
    labels: tuple[str, ...]
    origins: tuple[int, ...]
    judged: tuple[bool, ...]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def places(self) -> list[int]:
        """The places of the rows whose answers count."""
        return [place for place, counts in enumerate(self.judged) if counts]

    def take(self, places: Sequence[int]) -> Candidate:
        """The rows at some places, in that order."""
        return Candidate(
            self.batch.take(np.asarray(places, np.int64)),
            tuple(self.labels[place] for place in places),
            tuple(self.origins[place] for place in places),
            tuple(self.judged[place] for place in places),
        )

    def judging(self, places: Sequence[int]) -> Candidate:
        """The same rows, where the answers at these places alone count."""
        return replace(self, judged=tuple(place in places for place in range(len(self))))

    def with_value(self, name: str, rows: Sequence[int], value: Any) -> Candidate:
        """The rows with one value, in stored form, in a column of some of them."""
        column = self.batch[name]
        new = pa.array([value], column.field.arrow_type)
        changed = [row for row in rows if not new[0].equals(column.arrow[row])]
        if not changed:
            return self
        pieces = [new if row in changed else column.arrow.slice(row, 1) for row in range(len(self))]
        columns = {**self.batch, name: Column(column.field, arrow=pa.concat_arrays(pieces))}
        labels = tuple(
            label + SIMPLIFIED if row in changed and not label.endswith(SIMPLIFIED) else label
            for row, label in enumerate(self.labels)
        )
        return replace(self, batch=Batch(self.batch.schema, columns, len(self)), labels=labels)
