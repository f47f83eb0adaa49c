"""Which stage diverged first, on which rows, and why: causes are claimed only where evidence explains them.

model  what triage is given and what it finds
"""

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
]
