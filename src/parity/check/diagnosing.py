"""Why a route's answers are not the recorded ones: first this process is asked, then the route once more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pyarrow as pa

from parity.check.routes import Route
from parity.compare import Comparison, Tolerances, compare
from parity.engine import Engine
from parity.errors import FingerprintError, RunnerError
from parity.golden import GoldenCase
from parity.report.imagery import pictured_stages
from parity.report.samples import Pictured
from parity.triage import Diagnosis, Divergence, Side, diagnose
from parity.triage.sides import engine_side, recorded_side, runner_side

GOLDEN, RUNNER = "golden", "runner"
MAX_ROWS = 64
"""Rows of a case that triage looks at: those that differ first, then others as there is room."""

PICTURED_ROWS = 2


@dataclass(frozen=True)
class Explained:
    """Why an entry diverges.

    Attributes:
        diagnosis: what triage found; None where it could not look.
        note: why it could not.
        pictures: what the stages made of the first rows that differ, where that is an image on both sides.
    """

    diagnosis: Diagnosis | None
    note: str = ""
    pictures: tuple[Pictured, ...] = ()


def explain_golden(case: GoldenCase, found: Comparison, engine: Engine, tolerances: Tolerances) -> Explained:
    """Where this process parts from a golden case, whose recorded answers `found` compares with it."""
    ours, theirs = recorded_side(case), engine_side(engine, case.inputs)
    return _explained(GOLDEN, case.inputs, ours, theirs, found, engine, tolerances)


def explain_route(case: GoldenCase, route: Route, engine: Engine, tolerances: Tolerances) -> Explained:
    """Where a runner parts from this process, which agrees with the case.

    The runner is asked again, with its stages tapped.
    """
    assert route.runner is not None, "the engine is no runner"
    try:
        theirs = runner_side(route.runner, route.wire, engine, case.inputs)
    except (RunnerError, FingerprintError) as exc:
        return Explained(None, f"asked again for its stage values, {route.name} failed: {exc}")
    ours = engine_side(engine, case.inputs)
    again = compare(ours.answers, theirs.answers, tolerances)
    if again.verdict != "divergent":
        return Explained(
            None,
            f"asked again for its stage values, {route.name} agreed: the difference depends on which rows "
            "were batched together, or on chance",
        )
    return _explained(RUNNER, case.inputs, ours, theirs, again, engine, tolerances)


def _explained(
    law: str,
    rows: pa.Table,
    expected: Side,
    obtained: Side,
    found: Comparison,
    engine: Engine,
    tolerances: Tolerances,
) -> Explained:
    """The diagnosis of some rows, its row numbers those of all rows."""
    chosen = _looked_at(found, rows.num_rows)
    divergence = Divergence(law, _at(rows, chosen), _taken(expected, chosen), _taken(obtained, chosen))
    diagnosis = diagnose(divergence, tolerances=tolerances, engine=engine)
    pictures: list[Pictured] = []
    if expected.traces is not None and obtained.traces is not None:
        worst = found.failing_rows[:PICTURED_ROWS].tolist()
        pictures = pictured_stages(worst, expected.traces, obtained.traces)
    of_all_rows = replace(diagnosis, rows=tuple(chosen[row] for row in diagnosis.rows))
    return Explained(of_all_rows, pictures=tuple(pictures))


def _looked_at(found: Comparison, rows: int) -> list[int]:
    failing = found.failing_rows[:MAX_ROWS].tolist()
    others = np.setdiff1d(np.arange(rows), found.failing_rows)
    room = min(len(others), max(0, MAX_ROWS - len(failing)))
    spread = others[np.linspace(0, len(others) - 1, room).round().astype(np.int64)] if room else others[:0]
    return sorted({*failing, *spread.tolist()})


def _taken(side: Side, rows: Sequence[int]) -> Side:
    traces = None if side.traces is None else side.traces.take(rows)
    return replace(side, answers=_at(side.answers, rows), traces=traces)


def _at(table: pa.Table, rows: Sequence[int]) -> pa.Table:
    return table.take(cast("Any", pa.array(rows, pa.int64())))
