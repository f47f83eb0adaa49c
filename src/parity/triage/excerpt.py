"""A divergence of many rows cut to as many as can be looked at one by one, and its findings put back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from parity.compare import Tolerances, compare
from parity.triage.checks import figures_of
from parity.triage.model import Diagnosis, Divergence, Side, StageCheck

MAX_ROWS: Final = 1024


@dataclass(frozen=True)
class Excerpt:
    """Some rows of a divergence.

    Attributes:
        divergence: the divergence of these rows.
        places: their places in the whole; None where it is the whole.
        failing: the rows of the whole that differ beyond tolerance.
        figures: counts and distances of the whole.
    """

    divergence: Divergence
    places: Sequence[int] | None = None
    failing: Sequence[int] = ()
    figures: Mapping[str, float] = field(default_factory=dict[str, float])

    def put_back(self, diagnosis: Diagnosis) -> Diagnosis:
        """The diagnosis with its rows numbered as in the whole."""
        places = self.places
        if places is None:
            return diagnosis

        def moved(check: StageCheck) -> StageCheck:
            return replace(check, rows=tuple(places[row] for row in check.rows))

        checks = tuple(moved(check) for check in diagnosis.stages)
        return replace(diagnosis, rows=tuple(self.failing), stages=checks, figures=self.figures)


def excerpt(divergence: Divergence, tolerances: Tolerances) -> Excerpt:
    """At most `MAX_ROWS` of the rows of a divergence.

    Few rows that differ are all in it, beside others that do not; of many, it is a stretch of neighbouring
    rows, so that an order still shows.
    """
    rows = divergence.rows.num_rows
    if rows <= MAX_ROWS:
        return Excerpt(divergence)
    one, other = divergence.expected.answers, divergence.obtained.answers
    scale_from = one if divergence.scale_from is None else divergence.scale_from
    compared = compare(one, other, tolerances, scale_from=scale_from)
    failing: list[int] = compared.failing_rows.tolist()
    if len(failing) > MAX_ROWS // 2:
        start = min(failing[0], rows - MAX_ROWS)
        places = list(range(start, start + MAX_ROWS))
    else:
        others = np.setdiff1d(np.arange(rows), failing)
        step = max(1, len(others) // (MAX_ROWS - len(failing)))
        places = sorted([*failing, *others[::step][: MAX_ROWS - len(failing)].tolist()])
    part = replace(
        divergence,
        rows=_taken(divergence.rows, places),
        expected=_side(divergence.expected, places, rows),
        obtained=_side(divergence.obtained, places, rows),
        scale_from=scale_from,
    )
    return Excerpt(part, places, failing, figures_of(compared))


def _side(side: Side, places: Sequence[int], rows: int) -> Side:
    traces = side.traces
    if traces is not None and traces.num_rows == rows:
        traces = traces.take(places)
    return replace(
        side,
        answers=_taken(side.answers, places),
        traces=traces,
        places=tuple(side.places[place] for place in places) if len(side.places) == rows else (),
    )


def _taken(table: pa.Table, places: Sequence[int]) -> pa.Table:
    indices: Any = pa.array(places, pa.int64())
    return table.take(indices)
