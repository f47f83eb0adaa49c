"""Trying laws on a handler, as the tests do it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from parity import Batch, Engine
from parity.handler import LoadedHandler
from parity.laws import LAWS, LawOutcome, check_laws, law_rows, laws_named

FIXTURES = Path(__file__).parents[1] / "fixtures" / "handlers"
ELSEWHERE = ("declared-access", "process")
HERE = [law.name for law in LAWS if law.name not in ELSEWHERE]
"""The laws that start no process."""


def try_laws(
    loaded: LoadedHandler, laws: Sequence[str] | None = None, rows: Batch | None = None, **options: Any
) -> dict[str, LawOutcome]:
    """What comes of laws on example rows, or on `rows`."""
    with Engine(loaded) as engine:
        labels = None
        if rows is None:
            rows, labels = law_rows(loaded, [])
        options.setdefault("clock", _stopped)  # shrinking must not depend on how busy the machine is
        found = check_laws(engine, rows, laws=laws_named(laws), labels=labels, **options)
    return {outcome.law: outcome for outcome in found}


def _stopped() -> float:
    return 0.0


def broken(outcomes: dict[str, LawOutcome]) -> list[str]:
    """The laws that are broken by themselves, in order."""
    return [law for law, outcome in outcomes.items() if outcome.verdict == "broken" and not outcome.follows]


def same(one: object, other: object) -> bool:
    """Equality that holds for NaN."""
    both_nan = isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other)
    return both_nan or one == other
