"""diagnose: the first stage that diverges, the rows, and the cause that explains the difference."""

from __future__ import annotations

import logging

from parity.compare import Tolerances
from parity.engine import Engine
from parity.triage.case import Case, Explained, Finding, Refuted, Suspect
from parity.triage.catalogue import CATALOGUE
from parity.triage.checks import ORDER, Comparisons, compare_stages
from parity.triage.excerpt import excerpt
from parity.triage.model import Cause, Diagnosis, Divergence, RuledOut, Stage
from parity.triage.swap import confirmed
from parity.triage.trials import OutOfTimeError, Trials, generators_kept

logger = logging.getLogger(__name__)


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
    part = excerpt(divergence, tolerances)
    compared = compare_stages(part.divergence, tolerances)
    rows = {row for item in compared.answers for row in item.failing}
    if not rows:
        rows = {row for item in compared.answers for row in item.differing}
    case = Case(part.divergence, compared, None if engine is None else Trials(engine))
    with generators_kept():
        compared = _confirmed(case)
        first = compared.first
        causes, ruled_out, blamed = _examined(Case(part.divergence, compared, case.trials))
    stage = None if first is None else first.check.stage
    place = "" if first is None else first.check.place
    if blamed is not None and blamed != stage:
        stage, place = blamed, compared.stages[blamed].check.place
    diagnosis = Diagnosis(
        stage=stage,
        place=place,
        column=compared.column,
        rows=tuple(sorted(rows)),
        cause=causes[0] if causes else None,
        also=tuple(causes[1:]),
        ruled_out=tuple(ruled_out),
        stages=tuple(compared.stages[stage].check for stage in ORDER),
        figures=compared.figures,
    )
    return part.put_back(diagnosis)


def _confirmed(case: Case) -> Comparisons:
    """The stages with what swaps say of them; as they are where the handler breaks on strange values."""
    try:
        return confirmed(case)
    except Exception:
        logger.debug("event=swap_not_made", exc_info=True)
        return case.compared


def _examined(case: Case) -> tuple[list[Cause], list[RuledOut], Stage | None]:
    """The causes that explain the difference, best first; those that do not; and the stage that is to blame.

    The last is None but where the best cause's evidence shows that an earlier stage is than the values do.
    """
    causes: list[Cause] = []
    blamed: Stage | None = None
    ruled_out: list[RuledOut] = []
    for suspect in CATALOGUE:
        if case.group not in suspect.groups:
            continue
        if causes and suspect.name not in _ALSO:
            continue
        try:
            finding = _examine(suspect, case)
        except OutOfTimeError as exc:
            ruled_out.append(RuledOut(suspect.name, f"not tried: {exc}"))
            continue
        if isinstance(finding, Explained):
            blamed = blamed or (None if causes else finding.stage)
            causes.append(
                Cause(
                    suspect.name,
                    finding.sentence or suspect.sentence,
                    finding.evidence,
                    suspect.remedy,
                )
            )
        elif isinstance(finding, Refuted):
            ruled_out.append(RuledOut(suspect.name, finding.why))
    return causes, ruled_out, blamed


_ALSO = ("precision", "device", "weights", "environment", "source")
"""What is looked at even where a cause is found: facts about the two sides."""


def _examine(suspect: Suspect, case: Case) -> Finding:
    """What comes of a cause; one whose examination breaks on strange values has not been tried."""
    try:
        return suspect.examine(case)
    except OutOfTimeError:
        raise
    except Exception as exc:
        logger.debug("event=cause_not_examined cause=%s", suspect.name, exc_info=True)
        return Refuted(f"not tried: {type(exc).__name__}: {exc}")
