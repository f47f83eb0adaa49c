"""One divergence as an HTML article: what differs, the cause, the stages, the rows, how to see it again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from parity.errors import counted
from parity.report import charts, evidence
from parity.report.advice import reference
from parity.report.diagnosed import cause, rows_told, ruled_out, stages
from parity.report.markup import folded, snippet, text, verdict
from parity.report.matrix import ENGINE
from parity.report.model import CheckReport, Entry
from parity.report.words import differ, number, ulps

if TYPE_CHECKING:
    from parity.compare import ColumnComparison
    from parity.laws import Counterexample, LawOutcome
    from parity.report.imagery import Pictured
    from parity.report.samples import Samples
    from parity.triage import Diagnosis

MAX_COLUMNS = 40
OPENED_COLUMNS = 2
"""Divergent columns that are shown unfolded."""


def entry_article(group: Sequence[Entry], report: CheckReport, place: str, *, brief: bool = False) -> str:
    """Runners that differ from a golden case in the same way, or that crashed; `brief` leaves out images."""
    first = group[0]
    names = ", ".join(entry.name for entry in group)
    title = f"Case {first.case} in {names if len(group) <= 3 else f'{len(group)} runners'}"
    listed = f'<p class="says">The same in {text(names)}.</p>' if len(group) > 3 else ""
    again = snippet(_command(first, report), "See it again")
    if first.comparison is None:
        body = f"<p><code>{text(first.error or 'no reason was given')}</code></p>"
        return _card(place, title, first.verdict, listed + body + again)
    body = [listed, evidence.findings(first.comparison), cause(first.diagnosis)]
    body.append(_facts(first.diagnosis, rows_told(first.diagnosis.rows) if first.diagnosis else ""))
    body.append(stages(first.diagnosis))
    if brief:
        body.append(evidence.columns(first.comparison.divergent()))
    else:
        body += _columns(list(first.comparison.divergent())[:MAX_COLUMNS], first.samples)
        rest = [column for column in first.comparison.columns if column.verdict != "divergent"]
        body.append(folded(counted(len(rest), "column agrees", "columns agree"), evidence.columns(rest)))
    body += [ruled_out(first.diagnosis), again]
    return _card(place, title, first.verdict, "".join(body))


def law_article(law: LawOutcome, report: CheckReport, place: str, *, brief: bool = False) -> str:
    """A law that is broken or could not be tried; `brief` leaves the counterexample's rows out."""
    found, example = law.diagnosis, law.counterexample
    differing = differ(law.differing, law.pairs, "pair of answers", "pairs of answers") if law.pairs else ""
    body = [
        f'<p class="says">{_sentence(law.sentence)}.</p>',
        f"<p>{text(law.detail)}</p>" if law.detail else "",
        f"<p>Law <b>{text(law.follows)}</b> is broken, too, and may be all there is to this.</p>"
        if law.follows
        else "",
        cause(found),
        _facts(found, _asked(example), {"Compared": differing} if differing else {}),
        stages(found),
    ]
    if example is not None:
        body.append(f"<p>{text(example.summary(), 600)}</p>" if brief else evidence.counterexample(example))
    body.append(ruled_out(found))
    if example is not None and example.snippet:
        body.append(snippet(example.snippet, "Run this in a notebook to see it"))
    else:
        if example is not None and example.why_no_snippet:
            body.append(f'<p class="small quiet">No snippet: {text(example.why_no_snippet)}</p>')
        again = f"parity check {reference(report)} --law {shlex.quote(law.law)}"
        body.append(snippet(again, "Try this law again"))
    return _card(place, f"Law: {law.law}", law.verdict, "".join(body))


def _asked(example: Counterexample | None) -> str:
    return "" if example is None else example.labels[example.row]


def _columns(divergent: Sequence[ColumnComparison], kept: Samples | None) -> Iterator[str]:
    """The divergent columns, the first ones unfolded; each row's images and the batch sizes shown once."""
    pictures: dict[int, list[Pictured]] = {}
    for item in kept.pictures if kept is not None else ():
        pictures.setdefault(item.row, []).append(item)
    sizes = charts.by_bucket(kept.buckets) if kept is not None else ""
    for place, column in enumerate(divergent):
        drawn = evidence.plots(column, kept)
        if drawn or place == len(divergent) - 1:
            drawn, sizes = evidence.chart_row(drawn + sizes), ""
        shown = evidence.column(column, kept, drawn, pictures)
        if place < OPENED_COLUMNS:
            yield shown
        else:
            yield folded(f"<b>{text(column.name)}</b>: {evidence.failing(column)}", shown)


def _card(place: str, title: str, word: str, body: str) -> str:
    return (
        f'<article class="card" id="{place}"><header><h3>{text(title)}</h3>{verdict(word)}</header>'
        f"{body}</article>"
    )


def _facts(found: Diagnosis | None, rows: str, more: Mapping[str, str] | None = None) -> str:
    """Column, rows and figures; `rows` says which rows in words."""
    facts = dict(more or {})
    if found is not None:
        figures = dict(found.figures)
        facts |= {"Column": found.column, "Rows": rows}
        whole = figures.pop("rows", None)
        for name in [name for name in figures if name.startswith("rows ")]:
            of = "" if whole is None else f" of {number(whole)}"
            facts[name[:1].upper() + name[1:]] = f"{number(figures.pop(name))}{of}"
        facts |= {name[:1].upper() + name[1:]: _figure(name, size) for name, size in figures.items()}
    told = "".join(
        f"<div><dt>{text(name)}</dt><dd>{text(item)}</dd></div>" for name, item in facts.items() if item
    )
    return f'<dl class="facts">{told}</dl>' if told else ""


def _figure(name: str, size: float) -> str:
    return ulps(size) if name.endswith("ulp") else number(size)


def _command(entry: Entry, report: CheckReport) -> str:
    case = shlex.quote(entry.case)
    if entry.runner == ENGINE:
        return f"parity golden check {reference(report)} --case {case}"
    return f"parity check {reference(report)} --runner {shlex.quote(entry.runner)} --case {case} --no-laws"


def _sentence(words: str) -> str:
    return text(words[:1].upper() + words[1:].rstrip("."))
