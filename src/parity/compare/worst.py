"""The rows of a column that differ most: failing ones first, the worst first, of equals the first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parity.compare.comparison import WorstRow
from parity.compare.leaves import Difference
from parity.compare.plan import ColumnPlan
from parity.compare.rules import Text
from parity.compare.sides import Side
from parity.compare.texts import place_of_difference
from parity.compare.values import cell, raw_text, shown_value

Mask = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]

MAX_WORST = 5

_Ranked = tuple[float, int, WorstRow]
"""Minus the severity, the row, and what to show of it: sorted, the worst comes first."""


class WorstRows:
    """The worst rows so far, each with the values of the columns `key`."""

    def __init__(self, plan: ColumnPlan, *, key: Sequence[str]) -> None:
        self._key = key
        self._forms = plan.rule.normalize if isinstance(plan.rule, Text) else ()
        self._whole = plan.name if plan.way == "errors" else ""
        self._failing: list[_Ranked] = []
        self._passing: list[_Ranked] = []

    def add(self, found: Sequence[Difference], fails: Mask, expected: Side, obtained: Side) -> None:
        """Take in the differences of some more rows; `fails` marks the rows that fail."""
        least, row = self._least(bool(fails.any()))
        ties = expected.rows[0] < row
        parts = [part for part in found if part.worst > least or (part.worst == least and ties)]
        if not parts:
            return
        severity = np.full(len(fails), -1.0)
        for part in parts:
            _raise(severity, part, least)
        for rows, ranked in ((fails, self._failing), (~fails, self._passing)):
            pool = np.flatnonzero(rows & (severity >= 0))
            for row in _largest(severity, pool):
                shown = self._describe(parts, row, bool(fails[row]), expected, obtained)
                ranked.append((-float(severity[row]), shown.row, shown))
            ranked.sort(key=lambda item: item[:2])
            del ranked[MAX_WORST:]

    def total(self) -> tuple[WorstRow, ...]:
        """At most five rows, each with the most severe of its differences."""
        return tuple(row for _, _, row in [*self._failing, *self._passing][:MAX_WORST])

    def _least(self, any_fails: bool) -> tuple[float, int]:
        """The severity that a row must have to be among the worst, and the row it must precede in a tie."""
        worst = self._failing
        if len(worst) < MAX_WORST:
            if any_fails or len(self._passing) < MAX_WORST:
                return -1.0, 0
            worst = self._passing
        elif not any_fails:
            return np.inf, 0
        return -worst[-1][0], worst[-1][1]

    def _describe(
        self, found: Sequence[Difference], row: int, fails: bool, expected: Side, obtained: Side
    ) -> WorstRow:
        best: tuple[float, int] | None = None
        part = found[0]
        for candidate in found:
            begin, end = candidate.within(row)
            if end > begin:
                severities = candidate.severities(begin, end)
                entry = int(severities.argmax())
                if best is None or float(severities[entry]) > best[0]:
                    best, part = (float(severities[entry]), begin + entry), candidate
        assert best is not None
        entry = best[1]
        at = part.position(entry)
        odd = part.odd is not None and bool(part.odd[entry])
        reason = "NaN or infinity on one side" if odd else part.reason
        if part.reason == "values differ":
            texts = raw_text(part.expected, at), raw_text(part.obtained, at)
            reason += place_of_difference(*texts, self._forms)
        shown = shown_value(part.expected, at), shown_value(part.obtained, at)
        if self._whole:
            shown = cell(expected.table, self._whole, row), cell(obtained.table, self._whole, row)
        return WorstRow(
            row=int(expected.rows[row]),
            obtained_row=int(obtained.rows[row]),
            where=part.path + "".join(f"[{place}]" for place in part.places.path(at)),
            expected=shown[0],
            obtained=shown[1],
            reason=reason,
            fails=fails,
            ulp=None if part.ulp is None else float(part.ulp[entry]),
            key=self._key_of(expected.table, row),
        )

    def _key_of(self, table: pa.Table, row: int) -> object:
        cells = {name: cell(table, name, row) for name in self._key}
        return next(iter(cells.values()), None) if len(cells) < 2 else cells


def _raise(severity: npt.NDArray[np.float64], part: Difference, least: float) -> None:
    """Raise each row's severity to that of its worst difference in `part`, where that is `least` or more."""
    values = part.severities()
    entries = np.flatnonzero(values >= least) if least > 0 else None
    positions = part.positions
    if entries is not None:
        values = values[entries]
        positions = entries if positions is None else positions[entries]
    elif positions is None:
        positions = np.arange(part.places.count)
    if not len(positions):
        return
    rows = part.places.rows(positions)
    starts = np.flatnonzero(rows[1:] != rows[:-1]) + 1
    starts = np.concatenate([np.zeros(1, np.int64), starts])
    at = rows[starts]
    severity[at] = np.maximum(severity[at], np.maximum.reduceat(values, starts))


def _largest(severity: npt.NDArray[np.float64], pool: Positions) -> list[int]:
    """The rows of `pool` with the largest severity, the first of equals."""
    values = severity[pool]
    if len(pool) > MAX_WORST:
        least = -np.partition(-values, MAX_WORST - 1)[MAX_WORST - 1]
        pool = np.concatenate([pool[values > least], pool[values == least][:MAX_WORST]])
    return pool[np.lexsort((pool, -severity[pool]))][:MAX_WORST].tolist()
