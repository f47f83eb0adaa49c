"""Which stage diverged first, on which rows, and why: causes are claimed only where evidence explains them.

model       what triage is given and what it finds
values      values of one place on two sides, row by row
alignment   traces in the order of the rows
checks      the five stages compared in order
diagnosing  diagnose(divergence) -> Diagnosis
"""

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
    "Cause",
    "Diagnosis",
    "Divergence",
    "RuledOut",
    "Side",
    "Stage",
    "StageCheck",
    "StageVerdict",
    "diagnose",
]
