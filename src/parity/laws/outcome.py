"""What came of trying a law, as frozen data that serialises to JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from parity.compare import Comparison, WorstRow
from parity.compare.values import shown_value
from parity.laws.noise import ColumnNoise
from parity.triage import Diagnosis

LawVerdict = Literal["holds", "noise", "broken", "nothing", "unable", "skipped"]
"""holds: the same bits; noise: others, within tolerance; broken: beyond it; nothing: tried, but no answer was
compared; unable: a process or runner failed to start; skipped: it does not apply, the detail says why."""


@dataclass(frozen=True)
class Counterexample:
    """The fewest rows found that break a law, their values made as simple as they can be.

    Attributes:
        rows: the input rows, in the order in which they broke it.
        labels: where each row comes from, such as "row 5", "row 5, simplified" or "neighbour: nan".
        row: the position in `rows` of the row whose answer differs.
        column: the output column that differs.
        expected: its value one way.
        obtained: its value the other way.
        how: the two ways, such as "alone, and in this batch of 2".
        before: rows asked before, in a batch of their own, where that matters.
        snippet: Python source that asks in the two ways and prints both answers; empty where none can be
            written, and then `why_no_snippet` says why.
        why_no_snippet: why there is no snippet.
    """

    rows: pa.Table
    labels: tuple[str, ...]
    row: int
    column: str
    expected: object
    obtained: object
    how: str
    before: pa.Table | None = None
    snippet: str = ""
    why_no_snippet: str = ""

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
        return {
            "rows": _shown_rows(self.rows),
            "labels": list(self.labels),
            "row": self.row,
            "column": self.column,
            "expected": _plain(self.expected),
            "obtained": _plain(self.obtained),
            "how": self.how,
            "before": None if self.before is None else _shown_rows(self.before),
            "snippet": self.snippet,
            "why_no_snippet": self.why_no_snippet,
        }


@dataclass(frozen=True)
class LawOutcome:
    """A law and what came of it; true unless it is broken, could not be tried, or compared nothing.

    Attributes:
        law: the law's name.
        sentence: what the law says.
        verdict: see `LawVerdict`.
        pairs: the pairs of answers compared.
        differing: how many of them are not bit-identical.
        detail: what was found, in a sentence; for noise its name and size.
        worst_ulp: the largest distance in units in the last place, None where no float was compared.
        counterexample: for a broken law, the fewest rows that break it.
        diagnosis: for a broken law, the stage that diverged first and the cause.
        noise: for each output column, how far the answers compared lie apart.
        executed: the ways of asking that were compared, in words.
        follows: an earlier law that is broken too and may be all there is to this breach, or "".
    """

    law: str
    sentence: str
    verdict: LawVerdict
    pairs: int
    differing: int = 0
    detail: str = ""
    worst_ulp: float | None = None
    counterexample: Counterexample | None = None
    diagnosis: Diagnosis | None = None
    noise: tuple[ColumnNoise, ...] = ()
    executed: tuple[str, ...] = ()
    follows: str = ""

    def __bool__(self) -> bool:
        return self.verdict in ("holds", "noise", "skipped")

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
            "diagnosis": self.diagnosis.to_dict() if self.diagnosis is not None else None,
            "noise": [item.to_dict() for item in self.noise],
            "executed": list(self.executed),
            "follows": self.follows,
        }


def worst_row(comparison: Comparison) -> tuple[str, WorstRow] | None:
    """The column and row where a divergent comparison differs most; None when only its structure differs."""
    for column in comparison.divergent():
        for row in column.worst:
            if row.fails:
                return column.name, row
    return None


def _shown_rows(table: pa.Table) -> list[object]:
    return [
        _plain({name: shown_value(_chunk(table, name), row) for name in table.column_names})
        for row in range(table.num_rows)
    ]


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
