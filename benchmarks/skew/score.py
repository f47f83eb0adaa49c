"""How right parity was about a kind: law, stage, column, rows, cause; and whether the twin is silent."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.skew.kind import GOLDEN, Expected, Kind, Mode
from benchmarks.skew.trial import Depth, Finding, broken_laws, golden_difference, law_names, scratch

ASPECTS: Final = ("caught", "law", "stage", "column", "rows", "cause")


@dataclass(frozen=True)
class Score:
    """How right parity was about a kind; None where there is nothing to be right about.

    Attributes:
        kind: its name.
        sentence: what goes wrong.
        mode: how it is shown.
        caught: the broken handler is flagged.
        law: by the law that it breaks.
        stage: with the first stage that differs.
        column: and the column.
        rows: and rows that the kind can touch, with what it takes beside them, and no more of them.
        cause: and the cause.
        twin: the clean twin is not flagged.
        headline: the cause given with the first broken law is right too.
        expected: the law, stage, column and cause that should be named.
        obtained: those that were.
        alarm: what the twin was flagged for.
        seconds: how long it took.
        missing: why the kind could not run; it counts as nothing then.
    """

    kind: str
    sentence: str
    mode: Mode | None = None
    caught: bool | None = None
    law: bool | None = None
    stage: bool | None = None
    column: bool | None = None
    rows: bool | None = None
    cause: bool | None = None
    twin: bool | None = None
    headline: bool | None = None
    expected: tuple[str, str, str, str] = ("", "", "", "")
    obtained: tuple[str, str, str, str] = ("", "", "", "")
    alarm: str = ""
    seconds: float = 0.0
    missing: str = ""


def score(kind: Kind, depth: Depth = "quick") -> Score:
    """Try a kind's broken handler and its twin on the laws that `depth` says."""
    started = time.perf_counter()
    names = law_names(kind, depth)
    with scratch() as folder:
        found = broken_findings(kind, names, folder) if kind.expected is not None else []
        alarms = twin_findings(kind, names, folder)
    seconds = time.perf_counter() - started
    alarm = "; ".join(f"{item.law}: {item.summary}" for item in alarms)
    if kind.expected is None:
        return Score(kind.name, kind.sentence, kind.mode, twin=not alarms, alarm=alarm, seconds=seconds)
    return _scored(kind, kind.expected, found, alarm, seconds)


def crashed(kind: Kind, why: str) -> Score:
    """The score of a kind on which parity crashed: nothing about it is right."""
    wrong = dict.fromkeys((*ASPECTS, "headline"), False if kind.expected is not None else None)
    return Score(kind.name, kind.sentence, kind.mode, **wrong, twin=False, alarm=f"CRASHED: {why}")


def broken_findings(kind: Kind, names: Sequence[str], folder: Path) -> list[Finding]:
    """What parity says of the broken handler, first what it reports first."""
    if kind.mode == "reference":
        difference = golden_difference(kind, "Broken", folder)
        return [] if difference is None else [difference]
    found = broken_laws(kind, "Broken", names, folder)
    return [item for item in found if not item.unable]


def twin_findings(kind: Kind, names: Sequence[str], folder: Path) -> list[Finding]:
    """What parity says of the clean twin, which should be nothing."""
    found = broken_laws(kind, "Twin", names, folder)
    if kind.mode == "reference":
        difference = golden_difference(kind, "Twin", folder)
        found += [] if difference is None else [difference]
    return found


def _scored(kind: Kind, expected: Expected, found: Sequence[Finding], alarm: str, seconds: float) -> Score:
    by_law = [item for item in found if item.law == expected.law]
    told = (by_law or list(found) or [None])[0]
    says_rows = expected.column != ""
    return Score(
        kind=kind.name,
        sentence=kind.sentence,
        mode=kind.mode,
        caught=bool(found),
        law=bool(by_law),
        stage=told is not None and told.stage == expected.stage,
        column=(told is not None and told.column == expected.column) if says_rows else None,
        rows=(told is not None and _right_rows(kind, expected, told)) if says_rows else None,
        cause=told is not None and told.cause == expected.cause,
        twin=not alarm,
        headline=bool(found) and found[0].cause == expected.cause,
        expected=(expected.law, expected.stage, expected.column, expected.cause),
        obtained=("", "", "", "") if told is None else (told.law, told.stage, told.column, told.cause),
        alarm=alarm,
        seconds=seconds,
    )


def _right_rows(kind: Kind, expected: Expected, told: Finding) -> bool:
    if told.law == GOLDEN:
        wrong = {place for place, row in enumerate(kind.rows().to_pylist()) if expected.rows(row)}
        return told.diagnosis is not None and set(told.diagnosis.rows) == wrong
    if not told.example or not expected.rows(told.example[told.row]):
        return False
    others = [row for place, row in enumerate(told.example) if place != told.row]
    beside = expected.beside is None or any(expected.beside(row) for row in others)
    return beside and (expected.fewest is None or len(told.example) == expected.fewest)
