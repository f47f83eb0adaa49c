"""What came of trying a law, as frozen data that serialises to JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from parity.compare import Comparison, WorstRow
from parity.compare.values import shown_value

LawVerdict = Literal["holds", "noise", "broken", "nothing"]
"""holds: the same bits; noise: others, within tolerance; broken: beyond it; nothing: no row was compared."""


@dataclass(frozen=True)
class Counterexample:
    """The fewest rows found that break a law.

    Attributes:
        rows: the input rows, in the order in which they broke it.
        labels: where each row comes from, such as "row 5" or "neighbour: nan".
        row: the position in `rows` of the row whose answer differs.
        column: the output column that differs.
        expected: its value one way.
        obtained: its value the other way.
        how: the two ways, such as "alone, and in this batch of 2".
    """

    rows: pa.Table
    labels: tuple[str, ...]
    row: int
    column: str
    expected: object
    obtained: object
    how: str

    def only_row(self) -> Counterexample:
        """The counterexample with nothing but the row whose answer differs."""
        return replace(self, rows=self.rows.slice(self.row, 1), labels=(self.labels[self.row],), row=0)

    def summary(self) -> str:
        """The counterexample in one sentence."""
        rows = "1 row" if len(self.labels) == 1 else f"{len(self.labels)} rows"
        return (
            f"{rows} ({', '.join(self.labels)}), asked {self.how}: {self.column} of "
            f"{self.labels[self.row]} is {self.expected!r} one way and {self.obtained!r} the other"
        )

    def to_dict(self) -> dict[str, object]:
        """The counterexample as JSON-ready data, long values cut."""
        rows = [
            {name: shown_value(_chunk(self.rows, name), row) for name in self.rows.column_names}
            for row in range(self.rows.num_rows)
        ]
        return {
            "rows": [_plain(row) for row in rows],
            "labels": list(self.labels),
            "row": self.row,
            "column": self.column,
            "expected": _plain(self.expected),
            "obtained": _plain(self.obtained),
            "how": self.how,
        }


@dataclass(frozen=True)
class LawOutcome:
    """A law and what came of it; true unless it is broken or nothing was compared.

    Attributes:
        law: the law's name.
        sentence: what the law says.
        verdict: see `LawVerdict`.
        pairs: the pairs of answers compared.
        differing: how many of them are not bit-identical.
        detail: what was found, in a sentence; for noise its name and size.
        worst_ulp: the largest distance in units in the last place, None where no float was compared.
        counterexample: for a broken law, the fewest rows that break it.
    """

    law: str
    sentence: str
    verdict: LawVerdict
    pairs: int
    differing: int = 0
    detail: str = ""
    worst_ulp: float | None = None
    counterexample: Counterexample | None = None

    def __bool__(self) -> bool:
        return self.verdict in ("holds", "noise")

    def to_dict(self) -> dict[str, object]:
        """The outcome as JSON-ready data."""
        return {
            "law": self.law,
            "sentence": self.sentence,
            "verdict": self.verdict,
            "pairs": self.pairs,
            "differing": self.differing,
            "detail": self.detail,
            "worst_ulp": _plain(self.worst_ulp),
            "counterexample": self.counterexample.to_dict() if self.counterexample is not None else None,
        }


def summed(law: str, sentence: str, comparisons: Sequence[Comparison], noise: str) -> LawOutcome:
    """The outcome of comparisons none of which diverges; `noise` names what a small difference would be."""
    pairs = sum(comparison.rows for comparison in comparisons)
    differing = sum(len(comparison.differing_rows) for comparison in comparisons)
    distances = [item.worst_ulp for item in comparisons if item.worst_ulp is not None]
    worst = max(distances, default=None)
    answered = sum(item.rows - item.errors_expected for item in comparisons if item.verdict != "nothing")
    if answered == 0:
        return LawOutcome(law, sentence, "nothing", pairs, detail="no answer was compared")
    if differing == 0:
        return LawOutcome(law, sentence, "holds", pairs, 0, f"{pairs} pairs bit-identical", worst)
    size = f", at most {worst:.3g} ulp" if worst else ""
    detail = f"{noise}: {differing} of {pairs} pairs differ within tolerance{size}"
    return LawOutcome(law, sentence, "noise", pairs, differing, detail, worst)


def worst_row(comparison: Comparison) -> tuple[str, WorstRow] | None:
    """The column and row where a divergent comparison differs most; None when only its structure differs."""
    for column in comparison.divergent():
        for row in column.worst:
            if row.fails:
                return column.name, row
    return None


def _chunk(table: pa.Table, name: str) -> pa.Array[Any]:
    return pa.concat_arrays(table.column(name).chunks)


def _plain(value: Any) -> object:
    if isinstance(value, float) and not np.isfinite(value):
        return "NaN" if np.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
