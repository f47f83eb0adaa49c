"""Why a route's answers are not the recorded ones: first this process is asked, then the route once more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pyarrow as pa

from parity.check.routes import Route
from parity.compare import Comparison, Tolerances, compare
from parity.engine import Engine
from parity.errors import FingerprintError, RunnerError
from parity.golden import GoldenCase
from parity.triage import Diagnosis, Divergence, Side, diagnose
from parity.triage.sides import engine_side, recorded_side, runner_side

GOLDEN, RUNNER = "golden", "runner"
MAX_ROWS = 64
"""Rows of a case that triage looks at: those that differ first, then others as there is room."""


def diagnose_golden(case: GoldenCase, found: Comparison, engine: Engine, tolerances: Tolerances) -> Diagnosis:
    """Where this process parts from a golden case, whose recorded answers `found` compares with it."""
    return _diagnosed(
        GOLDEN, case.inputs, recorded_side(case), engine_side(engine, case.inputs), found, engine, tolerances
    )


def diagnose_route(
    case: GoldenCase, route: Route, engine: Engine, tolerances: Tolerances
) -> tuple[Diagnosis | None, str]:
    """Where a runner parts from this process, which agrees with the case.

    The runner is asked again, with its stages tapped.

    Returns:
        The diagnosis, or None and why there is none.
    """
    assert route.runner is not None, "the engine is no runner"
    try:
        theirs = runner_side(route.runner, route.wire, engine, case.inputs)
    except (RunnerError, FingerprintError) as exc:
        return None, f"asked again for its stage values, {route.name} failed: {exc}"
    ours = engine_side(engine, case.inputs)
    again = compare(ours.answers, theirs.answers, tolerances)
    if again.verdict != "divergent":
        return None, (
            f"asked again for its stage values, {route.name} agreed: the difference depends on which rows "
            "were batched together, or on chance"
        )
    return _diagnosed(RUNNER, case.inputs, ours, theirs, again, engine, tolerances), ""


def _diagnosed(
    law: str,
    rows: pa.Table,
    expected: Side,
    obtained: Side,
    found: Comparison,
    engine: Engine,
    tolerances: Tolerances,
) -> Diagnosis:
    """The diagnosis of some rows, its row numbers those of all rows."""
    chosen = _looked_at(found, rows.num_rows)
    divergence = Divergence(law, _at(rows, chosen), _taken(expected, chosen), _taken(obtained, chosen))
    diagnosis = diagnose(divergence, tolerances=tolerances, engine=engine)
    return replace(diagnosis, rows=tuple(chosen[row] for row in diagnosis.rows))


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
