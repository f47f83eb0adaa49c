"""A check report as one HTML file: the verdict first, then runners by checks, then every difference.

Every value is escaped where it enters the markup; nothing is loaded from anywhere. What does not fit into
`page.MAX_BYTES` is told in short.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from parity.compare import Comparison
from parity.errors import counted
from parity.laws import LawOutcome
from parity.report import evidence
from parity.report.advice import reference
from parity.report.articles import entry_article, law_article
from parity.report.markup import folded, pairs, table, text, verdict
from parity.report.matrix import divergences
from parity.report.model import CheckReport, Entry
from parity.report.overview import MAX_STEPS, headline, overview
from parity.report.page import MAX_BYTES, Room, document
from parity.report.words import clean, number, percent, ulps, worst

MAX_LAWS = 60
MAX_ARTICLES = 40
MAX_PASSED = 60
MAX_FACTS = 200

Article = Callable[[str, bool], str]


def render(report: CheckReport, *, max_bytes: int = MAX_BYTES) -> str:
    """The report as a self-contained HTML document, readable on a phone, in light and dark.

    Articles that would make it larger than about `max_bytes` are put in shorter, or left out and told.
    """
    anchors: dict[tuple[str, ...], str] = {}
    articles = _articles(report, anchors)
    around = {
        "hero": headline(report),
        "matrix": overview(report, anchors),
        "laws": _laws(report, anchors),
        "environment": _environment(report),
    }
    room = Room(max_bytes - len("".join(around.values()).encode()))
    whole = [room.take(make(name, False), make(name, True), _left_out(name)) for name, make in articles]
    hidden = _count(report) - len(articles)
    parts = [
        ("", around["hero"]),
        ("matrix", around["matrix"]),
        ("differences", _section("differences", "What differs", whole, hidden)),
        ("laws", around["laws"]),
        ("agreeing", _agreeing(report, room)),
        ("environment", around["environment"]),
        ("", _footer(report)),
    ]
    names = {
        "matrix": "Overview",
        "differences": counted(_count(report), "difference"),
        "laws": counted(len(report.laws), "law"),
        "agreeing": "What agrees",
        "environment": "Environment",
    }
    links = [(place, names[place]) for place, part in parts if place and part]
    title = clean(f"{report.handler} {report.version}: {report.verdict}")
    return document(title, "\n".join(part for _, part in parts if part), links)


def _count(report: CheckReport) -> int:
    return len(divergences(report)) + len(list(report.broken()))


def _articles(report: CheckReport, anchors: dict[tuple[str, ...], str]) -> list[tuple[str, Article]]:
    """The articles to write, laws first since they explain what runners show; where each cell leads."""
    found: list[tuple[str, Article]] = []
    for law in list(report.broken())[:MAX_ARTICLES]:
        name = f"difference-{len(found) + 1}"
        anchors["engine", "law", law.law] = name
        found.append((name, _law_article(law, report)))
    for group in divergences(report)[:MAX_ARTICLES]:
        name = f"difference-{len(found) + 1}"
        anchors.update({(entry.name, "case", entry.case): name for entry in group})
        found.append((name, _entry_article(group, report)))
    return found


def _law_article(law: LawOutcome, report: CheckReport) -> Article:
    return lambda name, brief: law_article(law, report, name, brief=brief)


def _entry_article(group: tuple[Entry, ...], report: CheckReport) -> Article:
    return lambda name, brief: entry_article(group, report, name, brief=brief)


def _left_out(name: str) -> str:
    told = "Left out to keep this file small; <code>parity check --json</code> has all of it."
    return f'<article class="card" id="{name}"><p class="quiet">{told}</p></article>'


def _section(place: str, title: str, parts: list[str], hidden: int = 0) -> str:
    if not parts:
        return ""
    left = counted(hidden, "more is", "more are")
    more = f'<p class="quiet">{left} in <code>parity check --json</code>.</p>' if hidden else ""
    return f'<section><h2 id="{place}">{title}</h2>{"".join(parts)}{more}</section>'


def _laws(report: CheckReport, anchors: dict[tuple[str, ...], str]) -> str:
    if not report.laws:
        return ""
    rows: list[list[str]] = []
    for law in report.laws[:MAX_LAWS]:
        place = anchors.get(("engine", "law", law.law))
        name = f'<a href="#{place}">{text(law.law)}</a>' if place else text(law.law)
        ways = "".join(f"<li>{text(way, 200)}</li>" for way in law.executed[:MAX_STEPS])
        asked = f"asked in {len(law.executed)} ways" if len(law.executed) > 1 else "how it was asked"
        tried = folded(asked, f"<ul>{ways}</ul>", kind="tried") if ways else ""
        told = f'<span class="wrap">{text(law.sentence)}</span>'
        detail = f'<div class="wrap quiet">{text(law.detail, 300)}{tried}</div>'
        rows.append([f'<b class="name">{name}</b>', verdict(law.verdict), str(law.pairs), told, detail])
    head = ["law", "verdict", "#compared", "what it says", "what was found"]
    return f'<section><h2 id="laws">Laws</h2>{table(head, rows, "stacked")}{_noise(report)}</section>'


def _noise(report: CheckReport) -> str:
    """How far answers lie apart that laws accept as float noise, for each law and column where any do."""
    rows = [
        [
            f'<b class="name">{text(law.law)}</b>',
            f'<span class="name">{text(item.column)}</span>',
            f"{item.differing} of {item.pairs}",
            ulps(item.ulp),
            number(item.rel),
            number(item.abs),
        ]
        for law in report.laws
        if law.verdict == "noise"
        for item in law.noise
        if item.differing
    ]
    head = ["law", "column", "#pairs with other bits", "#largest", "#of its scale", "#absolute"]
    return folded("Float noise, measured", table(head, rows[:MAX_FACTS]))


def _agreeing(report: CheckReport, room: Room) -> str:
    passed = [entry for entry in report.entries if entry.ok and entry.comparison is not None]
    parts = [room.take(_passed(entry, True), _passed(entry, False), "") for entry in passed[:MAX_PASSED]]
    return _section("agreeing", "What agrees, column by column", [part for part in parts if part])


def _passed(entry: Entry, plots: bool) -> str:
    found = cast("Comparison", entry.comparison)
    told = f"{percent(found.identical_rows, found.rows)} bit-identical, worst {worst(found)}"
    title = (
        f"{verdict(entry.verdict)} <b>{text(entry.name)}</b>, case {text(entry.case)}: "
        f'<span class="quiet">{told}</span>'
    )
    drawn = "".join(
        f"<h4>{text(column.name)}</h4>{evidence.chart_row(shown)}"
        for column in found.columns
        if plots and (shown := evidence.plots(column, entry.samples))
    )
    return folded(title, evidence.findings(found) + evidence.columns(found.columns) + drawn)


def _environment(report: CheckReport) -> str:
    changes = report.fingerprint_changes()
    rows = [
        [f'<b class="name">{text(name)}</b>', f"<code>{text(then)}</code>", f"<code>{text(now)}</code>"]
        for name, (then, now) in list(changes.items())[:MAX_FACTS]
    ]
    known = any(entry.recorded for entry in report.entries)
    told = (
        "<p>These differ from when the golden cases were recorded:</p>"
        if changes
        else "<p>The same as when the golden cases were recorded.</p>"
    )
    whole = folded(
        "The whole fingerprint",
        pairs(dict(list(report.fingerprint.items())[:MAX_FACTS]), "fields long"),
        opened=not known,
    )
    listed = table(["", "when recorded", "now"], rows)
    return f'<section><h2 id="environment">Environment</h2>{told if known else ""}{listed}{whole}</section>'


def _footer(report: CheckReport) -> str:
    return (
        f"<footer><p>Made by <code>parity check {text(reference(report))}</code>. Everything here, and the "
        "figures in full, are in its <code>--json</code> output.</p></footer>"
    )
