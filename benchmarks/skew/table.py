"""The scores as a table for the terminal and for the docs, and the bars that they must meet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from benchmarks.skew.score import ASPECTS, Score

BARS: Final = {"caught": 1.0, "twin": 1.0, "stage": 0.9, "cause": 0.8}
_TITLES: Final = ("kind", "shown by", "caught", "law", "stage", "column", "rows", "cause", "twin silent")
_NAMES: Final = ("caught", "law", "stage", "column", "rows", "cause", "twin", "headline")


def share(scores: Sequence[Score], aspect: str) -> float:
    """The share of the kinds that ran for which parity was right in an aspect."""
    asked = [value for item in scores if (value := getattr(item, aspect)) is not None]
    return sum(asked) / len(asked) if asked else 0.0


def bars(scores: Sequence[Score]) -> list[dict[str, Any]]:
    """What must hold, as `benchmarks.__main__` shows it."""
    words = {
        "caught": "broken handlers caught",
        "twin": "clean twins silent",
        "stage": "right stage",
        "cause": "right cause",
    }
    found = [
        {"what": words[aspect], "value": share(scores, aspect), "at": "least", "bar": bar}
        for aspect, bar in BARS.items()
    ]
    missing = sum(bool(item.missing) for item in scores)
    return [*found, {"what": "kinds that could not run", "value": missing, "at": "most", "bar": 0}]


def text_table(scores: Sequence[Score]) -> str:
    """The table for a terminal, what was wrong below it, and the totals."""
    rows = [_TITLES, *(_cells(item) for item in scores)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(_TITLES))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    lines.insert(1, "-" * max(map(len, lines)))
    wrong = [line for item in scores for line in faults(item)]
    missing = [f"NOT RUN {item.kind}: {item.missing}" for item in scores if item.missing]
    return "\n".join([*lines, "", *wrong, *missing, *([""] if wrong or missing else []), *totals(scores)])


def faults(item: Score) -> list[str]:
    """What parity got wrong about a kind, a line each."""
    found: list[str] = []
    for at, aspect in enumerate(("law", "stage", "column", "cause")):
        if getattr(item, aspect) is False:
            said = item.obtained[at] or "none"
            found.append(f"{item.kind}: {aspect} is {item.expected[at] or 'none'}, parity says {said}")
    if item.rows is False:
        found.append(f"{item.kind}: rows are wrong")
    if item.twin is False:
        found.append(f"{item.kind}: FALSE ALARM on the twin: {item.alarm}")
    return found


def totals(scores: Sequence[Score]) -> list[str]:
    """A line for each aspect: right, of how many, and the bar if there is one."""
    lines: list[str] = []
    for aspect in _NAMES:
        asked = [value for item in scores if (value := getattr(item, aspect)) is not None]
        bar = f" (bar {BARS[aspect]:.0%})" if aspect in BARS else ""
        title = {"twin": "twin silent", "headline": "cause given first is right"}.get(aspect, aspect)
        lines.append(f"{title}: {sum(asked)} of {len(asked)}, {share(scores, aspect):.1%}{bar}")
    return lines


def markdown(scores: Sequence[Score]) -> str:
    """The page of the docs."""
    ran = [item for item in scores if not item.missing]
    broken = [item for item in ran if item.caught is not None]
    lines = [
        "# Kinds of skew, and what parity says of them",
        "",
        f"{len(broken)} broken handlers, one for each way in which people's offline and online answers came "
        f"apart, and {len(ran)} clean twins that do the same work rightly. Written by "
        "`python -m benchmarks.skew --docs`; the handlers are in "
        "[benchmarks/skew/kinds](../../benchmarks/skew/kinds).",
        "",
        "| | right | of | bar |",
        "| --- | ---: | ---: | ---: |",
    ]
    words = {
        "caught": "caught",
        "law": "by the right law",
        "stage": "right stage",
        "column": "right column",
        "rows": "right rows",
        "cause": "right cause",
        "twin": "twin silent",
    }
    for aspect, title in words.items():
        asked = [value for item in ran if (value := getattr(item, aspect)) is not None]
        bar = f"{BARS[aspect]:.0%}" if aspect in BARS else ""
        lines.append(f"| {title} | {sum(asked)} ({share(ran, aspect):.1%}) | {len(asked)} | {bar} |")
    lines += [
        "",
        "A kind is shown by a law that its handler breaks, or, where only two implementations together show "
        'it, by the golden answers of the other one ("golden"). Rows are right when the smallest '
        "counterexample, or the list of differing rows, holds exactly the rows that the kind can touch. "
        "Where the cause is *none*, no cause of the catalogue is true, and naming one would be wrong.",
        "",
        "| kind | what goes wrong | shown by | stage | column | rows | cause | twin |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [_line(item) for item in ran]
    lines += ["", *(f"Not run: {item.kind}, because {item.missing}." for item in scores if item.missing)]
    return "\n".join(lines).rstrip() + "\n"


def _cells(item: Score) -> tuple[str, ...]:
    if item.missing:
        return (item.kind, "NOT RUN", *[""] * 7)
    law = item.expected[0] or "golden"
    return (item.kind, law, *(_mark(getattr(item, aspect)) for aspect in (*ASPECTS, "twin")))


def _line(item: Score) -> str:
    law, stage, column, cause = item.expected
    if item.caught is None:
        cells = ["golden, laws", "", "", "", ""]
    else:
        cells = [
            _told(law, item.law, item.obtained[0]),
            _told(stage, item.stage, item.obtained[1]),
            _told(column, item.column, item.obtained[2]),
            _mark(item.rows),
            _told(cause, item.cause, item.obtained[3]),
        ]
    twin = "silent" if item.twin else "**false alarm**"
    return f"| {item.kind} | {item.sentence} | {' | '.join(cells)} | {twin} |"


def _told(expected: str, right: bool | None, obtained: str) -> str:
    if right is None:
        return ""
    return (expected or "*none*") if right else f"**{obtained or 'none'}** for {expected or '*none*'}"


def _mark(value: bool | None) -> str:
    return "-" if value is None else ("yes" if value else "NO")
