"""Which stage diverged first, on which rows, and why: causes are claimed only where evidence explains them.

model       what triage is given and what it finds
sides       the two sides of a divergence, gathered
diagnosing  diagnose(divergence) -> Diagnosis
catalogue   the causes, in the order in which they are preferred
causes      the causes, by theme
excerpt     as many rows as can be looked at one by one
case        what a cause is examined on
dependence  a row under other company
trials      the handler asked again
swap        one side's stage values given to the other side's next stage
checks      the five stages compared in order
alignment   traces in the order of the rows
values      values of one place on two sides, row by row
"""

from parity.triage.catalogue import CATALOGUE, cause_named
from parity.triage.diagnosing import diagnose
from parity.triage.model import (
    Cause,
    Diagnosis,
    Divergence,
    RuledOut,
    Side,
    Stage,
    StageCheck,
    StageVerdict,
)

__all__ = [
    "CATALOGUE",
    "Cause",
    "Diagnosis",
    "Divergence",
    "RuledOut",
    "Side",
    "Stage",
    "StageCheck",
    "StageVerdict",
    "cause_named",
    "diagnose",
]
