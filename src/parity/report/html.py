"""A check report as one HTML file: the verdict first, then runners by checks, then every difference.

Every value is escaped where it enters the markup; nothing is loaded from anywhere. What does not fit into
`page.MAX_BYTES` is told in short.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from parity.compare import Comparison
from parity.laws import LawOutcome
from parity.report import evidence
from parity.report.advice import advice, reference
from parity.report.articles import entry_article, law_article
from parity.report.markup import folded, hero, mark, pairs, table, text, tone, verdict
from parity.report.matrix import Cell, Matrix, divergences, matrix
from parity.report.model import CheckReport, Entry
from parity.report.page import MAX_BYTES, Room, document
from parity.report.words import clean, number, percent, ulps, worst

MAX_CHECKS = 60
MAX_RUNNERS = 40
MAX_ARTICLES = 40
MAX_PASSED = 60
MAX_STEPS = 20
MAX_FACTS = 200

_SENTENCES = {
    "agrees": "Every runner gives the recorded answers",
    "diverges": "Answers differ",
    "refused": "A runner refused to answer",
    "nothing compared": "Nothing was compared, so nothing is proven",
    "runner crashed": "A runner failed to start or crashed",
    "law unable": "A law could not be tried",
    "nondeterministic": "The handler differs from itself under identical conditions",
}

Article = Callable[[str, bool], str]


def render(report: CheckReport, *, max_bytes: int = MAX_BYTES) -> str:
    """The report as a self-contained HTML document, readable on a phone, in light and dark.

    Articles that would make it larger than about `max_bytes` are put in shorter, or left out and told.
    """
    anchors: dict[tuple[str, ...], str] = {}
    articles = _articles(report, anchors)
    around = {
        "hero": _hero(report),
        "matrix": _matrix_section(report, anchors),
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
        "differences": f"{_count(report)} difference{'s' if _count(report) != 1 else ''}",
        "laws": f"{len(report.laws)} laws",
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
    more = f'<p class="quiet">{hidden} more are in <code>parity check --json</code>.</p>' if hidden else ""
    return f'<section><h2 id="{place}">{title}</h2>{"".join(parts)}{more}</section>'


def _hero(report: CheckReport) -> str:
    figures = {
        "rows compared": f"{report.rows_compared}",
        "pairs compared by laws": f"{report.pairs_compared}" if report.laws else "",
        "laws that hold": _holding(report) if report.laws else "",
        "largest distance": "" if report.worst_ulp is None else ulps(report.worst_ulp),
        "time in runners": f"{report.seconds:.1f} s",
        "exit code": str(report.exit_code),
    }
    steps = "".join(f"<li>{text(step)}</li>" for step in advice(report)[:MAX_STEPS])
    notes = "".join(f"<li>{text(note)}</li>" for note in report.notes[:MAX_STEPS])
    following = f"<h2>What to do next</h2><ol>{steps}</ol>" if steps else ""
    following += f'<h2>Notes</h2><ul class="small">{notes}</ul>' if notes else ""
    subject = f"<b>{text(report.handler)}</b> {text(report.version)}, profile {text(report.profile)}"
    return hero(report.verdict, subject, _SENTENCES[report.verdict], _lead(report), figures, following)


def _lead(report: CheckReport) -> str:
    failed = len(list(report.failures()))
    broken = sum(law.verdict == "broken" for law in report.laws)
    unable = sum(law.verdict == "unable" for law in report.laws)
    parts: list[str] = []
    if report.entries:
        good = f"all {len(report.entries)} comparisons with golden cases agree"
        parts.append(
            f"{failed} of {len(report.entries)} comparisons with golden cases fail" if failed else good
        )
    if report.laws:
        good = f"no law of the {len(report.laws)} tried is broken"
        parts.append(f"{broken} of {len(report.laws)} laws are broken" if broken else good)
    if unable:
        parts.append(f"{unable} could not be tried")
    told = ", and ".join(parts) or "no golden case was run, and no law was tried"
    return f"{told[:1].upper()}{told[1:]}."


def _holding(report: CheckReport) -> str:
    holding = sum(law.verdict in ("holds", "noise") for law in report.laws)
    return f"{holding} of {len(report.laws)}"


def _matrix_section(report: CheckReport, anchors: dict[tuple[str, ...], str]) -> str:
    found = matrix(report)
    if not found.checks:
        return ""
    checks = found.checks[:MAX_CHECKS]
    cases = sum(kind == "case" for kind, _ in checks)
    laws = len(checks) - cases
    gap = '<th class="gap"></th>' if cases and laws else ""
    spans = [("golden", cases), ("laws", laws)]
    kinds = gap.join(f'<th colspan="{count}">{name}</th>' for name, count in spans if count)
    heads = [
        f'<th scope="col" title="{text(name)}"><span class="turned">{text(name)}</span></th>'
        for _, name in checks
    ]
    if gap:
        heads.insert(cases, gap)
    lines: list[str] = []
    for runner in found.runners[:MAX_RUNNERS]:
        cells = [_cell(found, runner, check, anchors) for check in checks]
        if gap:
            cells.insert(cases, '<td class="gap"></td>')
        lines.append(f'<tr><th scope="row" title="{text(runner)}">{text(runner)}</th>{"".join(cells)}</tr>')
    left = len(found.checks) - len(checks) + max(0, len(found.runners) - MAX_RUNNERS)
    more = f'<p class="small quiet">{left} more rows and columns are not shown.</p>' if left else ""
    words = dict.fromkeys(cell.verdict for cell in found.cells.values())
    legend = "".join(verdict(word) for word in words)
    return (
        '<section><h2 id="matrix">Runners by golden cases and laws</h2><div class="scroll" tabindex="0" '
        'role="region" aria-label="runners by golden cases and laws">'
        '<table class="matrix"><thead><tr class="kinds"><th class="corner"></th>'
        f'{kinds}</tr><tr><th class="corner"></th>'
        f"{''.join(heads)}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
        f'<div class="legend">{legend}<span class="quiet">Numbers are rows, or pairs of answers, compared; '
        f"with a stroke, those beyond tolerance of all.</span></div>{more}</section>"
    )


def _cell(found: Matrix, runner: str, check: tuple[str, str], anchors: dict[tuple[str, ...], str]) -> str:
    kind, name = check
    cell = found.cells.get((runner, "law" if kind == "law" else "case", name))
    if cell is None:
        return '<td class="none"><span class="unseen">not run</span></td>'
    inside = (
        f'{mark(cell.verdict)}<span class="count">{_counts(cell)}</span>'
        f'<span class="unseen">{text(cell.verdict)}</span>'
    )
    told = f"{runner}, {name}: {cell.verdict}, {cell.compared} compared, {cell.differing} with other bits"
    place = anchors.get((runner, kind, name))
    body = f'<a href="#{place}">{inside}</a>' if place else inside
    return f'<td class="{tone(cell.verdict)}" title="{text(told)}">{body}</td>'


def _counts(cell: Cell) -> str:
    if cell.verdict in ("crashed", "unable", "refused", "skipped"):
        return {"crashed": "crash"}.get(cell.verdict, cell.verdict)
    beyond = cell.outside if cell.outside is not None else cell.differing
    if cell.verdict in ("divergent", "broken") and beyond:
        return f"{_short(beyond)}/{_short(cell.compared)}"
    return _short(cell.compared)


def _short(count: int) -> str:
    for size, unit in ((1_000_000, "M"), (10_000, "k")):
        if count >= size:
            return f"{count / (1000 if unit == 'k' else size):.3g}{unit}"
    return str(count)


def _laws(report: CheckReport, anchors: dict[tuple[str, ...], str]) -> str:
    if not report.laws:
        return ""
    rows: list[list[str]] = []
    for law in report.laws[:MAX_CHECKS]:
        place = anchors.get(("engine", "law", law.law))
        name = f'<a href="#{place}">{text(law.law)}</a>' if place else text(law.law)
        ways = "".join(f"<li>{text(way, 200)}</li>" for way in law.executed[:MAX_STEPS])
        tried = folded(f"{len(law.executed)} ways", f'<ul class="small">{ways}</ul>') if ways else ""
        told = f'<span class="wrap">{text(law.sentence)}</span>'
        detail = f'<div class="wrap quiet">{text(law.detail, 300)}{tried}</div>'
        rows.append([f'<b class="name">{name}</b>', verdict(law.verdict), str(law.pairs), told, detail])
    head = ["law", "verdict", "#compared", "what it says", "what was found"]
    return f'<section><h2 id="laws">Laws</h2>{table(head, rows)}{_noise(report)}</section>'


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
