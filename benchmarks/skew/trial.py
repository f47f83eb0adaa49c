"""What parity says of a kind's handlers: laws tried on one, or its answers checked against a golden case."""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
import warnings
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from benchmarks.skew.kind import GOLDEN, Kind, Side
from parity import golden
from parity.codec import arrow
from parity.compare import compare
from parity.engine import Engine
from parity.laws import LAWS, LawOutcome, check_laws, laws_named
from parity.profile import Profile
from parity.registry import find_runner, usual_runner_names
from parity.triage import Diagnosis, Divergence, diagnose
from parity.triage.sides import engine_side, recorded_side

COSTLY: Final = ("process", "runner", "device")
"""Laws that start processes; a quick run tries them only on the kinds that are about them."""

CASE: Final = "natural"


@dataclass(frozen=True)
class Finding:
    """That a handler's answers depend on what they must not, or differ from the golden ones.

    Attributes:
        law: the broken law, or "golden".
        summary: what was found, in words.
        diagnosis: where and why; None where none was made.
        example: the rows of the smallest counterexample as Python values, in order; none for a golden case.
        row: which of them gets another answer.
        column: the column that differs.
        unable: the law could not be tried.
    """

    law: str
    summary: str
    diagnosis: Diagnosis | None = None
    example: Sequence[Mapping[str, Any]] = ()
    row: int = 0
    column: str = ""
    unable: bool = False

    @property
    def stage(self) -> str:
        """The first stage whose values differ; "" where that is not said."""
        return "" if self.diagnosis is None else self.diagnosis.stage or ""

    @property
    def cause(self) -> str:
        """The cause that is claimed; "" where none is."""
        return "" if self.diagnosis is None or self.diagnosis.cause is None else self.diagnosis.cause.name


Depth = Literal["own", "quick", "thorough"]
"""own: the law that a kind is about; quick: that and all that start no process; thorough: all laws."""


def law_names(kind: Kind, depth: Depth) -> list[str]:
    """The laws that are tried on a kind."""
    wanted = kind.expected.law if kind.expected is not None else ""
    if depth == "own":
        return [law.name for law in LAWS if law.name == wanted]
    return [law.name for law in LAWS if depth == "thorough" or law.name not in COSTLY or law.name == wanted]


def broken_laws(kind: Kind, side: Side, names: Sequence[str], folder: Path) -> list[Finding]:
    """The laws among `names` that the handler of a side breaks, in the order in which they are reported."""
    if not names:
        return []
    loaded = kind.load(side, folder)
    batch = arrow.decode_table(loaded.inputs, kind.rows()).batch
    runners = [find_runner(name) for name in usual_runner_names()] if "runner" in names else []
    with _undisturbed(folder / side.lower()), Engine(loaded) as engine:
        outcomes = check_laws(engine, batch, laws=laws_named(names), runners=runners)
    return [_of_law(outcome) for outcome in outcomes if outcome.verdict in ("broken", "unable", "nothing")]


def golden_difference(kind: Kind, side: Side, folder: Path) -> Finding | None:
    """How the answers of a side differ from the reference's, recorded with its stage values."""
    reference = kind.load("Reference", folder)
    loaded = kind.load(side, folder)
    cases = folder / "golden"
    place = cases / kind.name / CASE
    with _undisturbed(folder), warnings.catch_warnings():
        if not place.is_dir():
            golden.record(
                reference, kind.rows(), CASE, reason="the reference's answers", golden=cases, stages=True
            )
        case = golden.read_case(place, loaded)
        with Engine(loaded, Profile()) as engine:
            rules = golden.case_tolerances(case, engine.profile)
            recorded, obtained = recorded_side(case), engine_side(engine, case.inputs)
            found = compare(case.expected, obtained.answers, rules, inputs=case.inputs)
            if found.verdict == "identical" or (found and found.verdict != "nothing"):
                return None
            recorded = replace(recorded, fingerprint={**recorded.fingerprint, **kind.fingerprint})
            divergence = Divergence(GOLDEN, case.inputs, recorded, obtained)
            diagnosis = diagnose(divergence, tolerances=rules, engine=engine)
    return Finding(GOLDEN, found.summary(), diagnosis, column=diagnosis.column)


def _of_law(outcome: LawOutcome) -> Finding:
    diagnosis: Diagnosis | None = getattr(outcome, "diagnosis", None)
    example = outcome.counterexample
    summary = f"{outcome.verdict}: {outcome.detail}"
    unable = outcome.verdict != "broken"
    if example is None:
        column = "" if diagnosis is None else diagnosis.column
        return Finding(outcome.law, summary, diagnosis, column=column, unable=unable)
    return Finding(
        outcome.law,
        f"{summary}; {example.summary()}",
        diagnosis,
        example.rows.to_pylist(),
        example.row,
        example.column,
        unable,
    )


@contextlib.contextmanager
def _undisturbed(folder: Path) -> Generator[None]:
    """Work in `folder`, outside CI (where nothing records), without the logs of failures made on purpose."""
    logger, level = logging.getLogger("parity.engine"), logging.getLogger("parity.engine").level
    logger.setLevel(logging.CRITICAL)
    ci = os.environ.pop("CI", None)
    try:
        with contextlib.chdir(folder), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
        if ci is not None:
            os.environ["CI"] = ci


@contextlib.contextmanager
def scratch() -> Generator[Path]:
    """A folder for a kind's handlers and goldens, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="parity-skew-") as folder:
        yield Path(folder)
