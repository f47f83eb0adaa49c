"""A diagnosis as HTML: the likely cause with its evidence, the stages in order, and what was ruled out."""

from __future__ import annotations

from collections.abc import Sequence

from parity.errors import counted
from parity.report.markup import folded, mark, table, text, tone, verdict
from parity.report.words import number
from parity.triage import Cause, Diagnosis, StageCheck

MAX_RULED_OUT = 60


def cause(found: Diagnosis | None) -> str:
    """The likely cause in words with its evidence; or that none of the known ones explains the difference."""
    if found is None:
        return ""
    if found.cause is None:
        tried = len(found.ruled_out)
        told = f"{tried} were tried and ruled out" if tried else "none could be tried"
        return (
            '<div class="cause"><p class="eyebrow">Likely cause</p>'
            f'<p class="told">No known cause explains this</p><p class="small quiet">{told}.</p></div>'
        )
    others = "".join(f"<li>{_also(other)}</li>" for other in found.also)
    more = folded(f"{len(found.also)} more would explain it", f"<ul>{others}</ul>") if others else ""
    remedy = f"<dt>What to do</dt><dd>{text(found.cause.remedy)}</dd>" if found.cause.remedy else ""
    return (
        f'<div class="cause"><p class="eyebrow">Likely cause: <code>{text(found.cause.name)}</code></p>'
        f'<p class="told">{_sentence(found.cause.sentence)}</p>'
        f"<dl><dt>Evidence</dt><dd>{text(found.cause.evidence)}</dd>{remedy}</dl>{more}</div>"
    )


def stages(found: Diagnosis | None) -> str:
    """The stages in order, the first that diverges marked; all their figures under a fold."""
    if found is None or not found.stages:
        return ""
    steps = "".join(_step(check, first=check.stage == found.stage) for check in found.stages)
    where = (
        f"First difference in <b>{text(found.stage)}</b>"
        if found.stage
        else "The first differing stage is unknown"
    )
    place = f" at <code>{text(found.place)}</code>" if found.place else ""
    return f'<h4>{where}{place}</h4><ol class="stages">{steps}</ol>{_figures(found.stages)}'


def ruled_out(found: Diagnosis | None) -> str:
    """The causes that were tried and do not explain the difference, folded."""
    if found is None or not found.ruled_out:
        return ""
    rows = [
        [f"<code>{text(item.name)}</code>", f'<span class="wrap">{text(item.why)}</span>']
        for item in found.ruled_out[:MAX_RULED_OUT]
    ]
    return folded(counted(len(found.ruled_out), "cause") + " ruled out", table(["cause", "why not"], rows))


def rows_told(rows: Sequence[int], most: int = 12) -> str:
    """Row numbers in a few words: "3, 5 and 7", "0 to 63", "1, 2, 3 and 40 more"."""
    if not rows:
        return "none"
    if len(rows) > 2 and list(rows) == list(range(rows[0], rows[0] + len(rows))):
        return f"{rows[0]} to {rows[-1]}"
    shown = [str(row) for row in rows[:most]]
    if len(rows) > most:
        return f"{', '.join(shown)} and {len(rows) - most} more"
    return f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else shown[0]


def amplification(checks: Sequence[StageCheck]) -> list[float | None]:
    """For each stage, how many times larger its difference is than that of the last one that had any."""
    found: list[float | None] = []
    before: float | None = None
    for check in checks:
        here = check.worst
        known = here is not None and before is not None and before > 0
        found.append(here / before if known and here is not None and before is not None else None)
        before = here if here else before
    return found


def _step(check: StageCheck, *, first: bool) -> str:
    told = check.verdict if check.worst is None else f"{check.verdict}, {number(check.worst)}"
    kind = f"{tone(check.verdict)}{' first' if first else ''}"
    return (
        f'<li class="{kind}"><span class="dot">{mark(check.verdict)}</span>'
        f'<span class="name">{text(check.stage)}</span><small>{text(told)}</small></li>'
    )


def _figures(checks: Sequence[StageCheck]) -> str:
    grown = amplification(checks)
    rows = [
        [
            text(check.stage),
            verdict(check.verdict),
            f"<code>{text(check.place)}</code>" if check.place else "",
            text(rows_told(check.rows)) if check.rows else "",
            number(check.worst),
            "" if factor is None else f"{number(factor)} times",
            f'<span class="wrap">{text(check.detail)}</span>',
        ]
        for check, factor in zip(checks, grown, strict=True)
    ]
    head = ["stage", "verdict", "place", "rows", "#largest", "#growth", "what differs"]
    return folded("Figures of every stage", table(head, rows))


def _also(other: Cause) -> str:
    return f"<code>{text(other.name)}</code>: {text(other.sentence)} ({text(other.evidence)})"


def _sentence(words: str) -> str:
    return text(words[:1].upper() + words[1:])
