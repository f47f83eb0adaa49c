"""What to do after a check, in sentences, the most telling first."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from parity.numerics import OPERATION, PLAN
from parity.report.model import CheckReport

LARGEST_NOISE = 1e-3
"""The relative distance up to which rounding may explain a difference: ten bits of significand."""


def advice(report: CheckReport) -> list[str]:
    """What to do next, one sentence each, the most telling first; empty when all agrees."""
    if report.verdict == "agrees":
        return []
    if report.verdict == "nothing compared":
        command = f"parity golden record {reference(report)} ROWS --case NAME"
        return [f"Record a golden case with at least one row that gets an answer: {command}"]
    found: list[str] = []
    if report.verdict == "nondeterministic":
        found.append(
            "Make the handler repeatable first (seeds, eval mode, state, clock): the rest may follow."
        )
    for entry in report.entries:
        if entry.comparison is None:
            done = "refused" if entry.refused else "failed on"
            found.append(f"Runner {entry.name} {done} case {entry.case}: {entry.error}")
    found += [
        f"Law {law.law!r} could not be tried: {law.detail}" for law in report.laws if law.verdict == "unable"
    ]
    found += [
        f"Law {law.law!r} compared nothing: {law.detail or 'no row that it looks at gets an answer'}"
        for law in report.laws
        if law.verdict == "nothing"
    ]
    found += _remedies(report)
    found += _who_differs(report)
    found += _what_would_pass(report)
    broken = [law for law in report.laws if law.verdict == "broken" and law.counterexample is not None]
    if broken:
        first = next((law for law in broken if not law.follows), broken[0])
        found.append(f"Look at the counterexample of law {first.law!r}: the fewest rows that break it.")
    if report.fingerprint_changes() and any(report.failures()):
        changes = report.fingerprint_changes()
        found += [
            f"Operation {name.removeprefix(OPERATION)} changed: version {was} -> {now}. It gives other "
            f"values than at the recording; if all else agrees: parity golden update {reference(report)}"
            for name, (was, now) in changes.items()
            if name.startswith(OPERATION)
        ]
        found += [
            f"Plan {name.removeprefix(PLAN)} is another than at the recording: its operations, their "
            f"versions or arguments changed ({was} -> {now}). If that is intended: parity golden update "
            f"{reference(report)}"
            for name, (was, now) in changes.items()
            if name.startswith(PLAN)
        ]
        names = [name for name in changes if not name.startswith((OPERATION, PLAN))]
        if names:
            found.append(
                f"Since the recording these changed, which may be the cause: {', '.join(names[:6])}."
            )
    return found


def reference(report: CheckReport) -> str:
    """The handler as a shell's command line names it."""
    return shlex.quote(report.reference or report.handler)


def _remedies(report: CheckReport) -> Iterator[str]:
    """What the causes that were found ask for, each once."""
    found = [law.diagnosis for law in report.broken()] + [entry.diagnosis for entry in report.failures()]
    causes = {item.cause.name: item.cause for item in found if item is not None and item.cause is not None}
    yield from (f"{cause.name}: {cause.remedy}" for cause in causes.values() if cause.remedy)


def _who_differs(report: CheckReport) -> Iterator[str]:
    for case in report.cases():
        entries = [entry for entry in report.entries if entry.case == case and entry.comparison is not None]
        wrong = [entry.name for entry in entries if entry.verdict == "divergent"]
        if wrong and len(wrong) == len(entries) and len(entries) > 1:
            yield (
                f"Every runner differs from case {case!r}: the handler, its artifacts or a library changed "
                f"since it was recorded. If that is intended: parity golden update {reference(report)}"
            )
        elif wrong:
            right = [entry.name for entry in entries if entry.name not in wrong]
            agree = f"; {', '.join(right)} agree{'s' if len(right) == 1 else ''}" if right else ""
            yield f"Case {case!r} differs in {', '.join(wrong)}{agree}: compare the worst rows' inputs there."


def _what_would_pass(report: CheckReport) -> Iterator[str]:
    """The ulp each divergent column needs, or that its distance is beyond what rounding explains.

    Nothing about columns whose difference has a known cause.
    """
    needed: dict[str, int] = {}
    far: dict[str, float] = {}
    for entry in report.failures():
        if entry.diagnosis is not None and entry.diagnosis.cause is not None:
            continue
        for column in entry.comparison.divergent() if entry.comparison is not None else ():
            if column.distances is not None and column.distances.needed_ulp and not column.structure_fails:
                needed[column.name] = max(needed.get(column.name, 0), column.distances.needed_ulp)
                far[column.name] = max(far.get(column.name, 0.0), column.distances.rel.largest)
    for name, ulp in list(needed.items())[:3]:
        if far[name] <= LARGEST_NOISE:
            yield (
                f"Column {name!r} would pass with ulp = {ulp}. Only if you know why the bits differ, "
                f'declare it in handler.toml: [tolerance.{name}] kind = "close", ulp = {ulp}'
            )
        else:
            yield (
                f"Column {name!r} is off by {far[name]:.1%} of its scale: no float noise, "
                "so look for a cause, not for a tolerance."
            )
