"""diagnose: the first stage that diverges, the rows, and the cause that explains the difference."""

from __future__ import annotations

from parity.compare import Tolerances
from parity.engine import Engine
from parity.triage.checks import ORDER, compare_stages
from parity.triage.model import Diagnosis, Divergence


def diagnose(
    divergence: Divergence, *, tolerances: Tolerances | None = None, engine: Engine | None = None
) -> Diagnosis:
    """Where two executions of the same rows part, and why.

    Args:
        divergence: the rows, and what either way gave.
        tolerances: what is still noise in the answers; handler.toml's, or the defaults, when not given.
        engine: an entered engine of the handler, for causes that are confirmed by asking it again.
    """
    if tolerances is None:
        tolerances = (
            Tolerances() if engine is None else Tolerances.from_mapping(engine.loaded.manifest.tolerance)
        )
    compared = compare_stages(divergence, tolerances)
    first = compared.first
    rows = {row for item in compared.answers for row in item.failing or item.differing}
    if first is not None:
        rows |= set(first.check.rows)
    return Diagnosis(
        stage=None if first is None else first.check.stage,
        place="" if first is None else first.check.place,
        column=compared.column,
        rows=tuple(sorted(rows)),
        stages=tuple(compared.stages[stage].check for stage in ORDER),
        figures=compared.figures,
    )
