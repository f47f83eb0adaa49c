"""A check report as one HTML file: the verdict first, then who was compared, then every difference.

Every value is escaped where it enters the markup; nothing is loaded from anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import TYPE_CHECKING, cast

from parity.compare import ColumnComparison, Comparison, Spread, WorstRow
from parity.report.charts import histogram
from parity.report.model import CheckReport, Entry, advice
from parity.report.page import document
from parity.report.words import clean, number, percent, remarks, value, worst, worst_of_column

if TYPE_CHECKING:
    from parity.laws.outcome import LawOutcome

_SIGNS = {"good": "✓", "note": "•", "bad": "✗"}
_GOOD = frozenset({"identical", "within", "agrees", "holds"})
_NOTE = frozenset({"noise", "nothing", "skipped", "ignored", "nothing compared"})
_SENTENCES = {
    "agrees": "Every runner gives the recorded answers",
    "diverges": "Answers differ",
    "nothing compared": "Nothing was compared, so nothing is proven",
    "runner crashed": "A runner failed to start or crashed",
    "nondeterministic": "The handler differs from itself under identical conditions",
}


def render(report: CheckReport) -> str:
    """The report as a self-contained HTML document, readable on a phone, in light and dark."""
    body = [_banner(report), _matrix(report), _laws(report.laws)]
    failures = list(report.failures())
    if failures:
        body.append("<h2>Differences</h2>")
        body += [_entry(entry) for entry in failures]
    passed = [entry for entry in report.entries if entry.ok and entry.comparison is not None]
    if passed:
        body.append("<h2>Columns of what agrees</h2>")
        body += [_passed(entry) for entry in passed]
    body.append(_fingerprint(report))
    title = clean(f"{report.handler} {report.version}: {report.verdict}")
    return document(title, "\n".join(part for part in body if part))


def _banner(report: CheckReport) -> str:
    distances = [
        e.comparison.worst_ulp
        for e in report.entries
        if e.comparison is not None and e.comparison.worst_ulp is not None
    ]
    far = f", worst difference {number(max(distances))} ulp" if distances else ""
    told = f"{report.rows_compared} rows in {len(report.entries)} comparisons{far}, {report.seconds:.1f} s"
    steps = "".join(f"<li>{_text(step)}</li>" for step in [*advice(report), *report.notes])
    tone = _tone(report.verdict)
    return (
        f"<h1>{_text(report.handler)} {_text(report.version)}</h1>"
        f'<p class="quiet">parity check, profile {_text(report.profile)}</p>'
        f'<div class="verdict {tone}"><strong>{_SIGNS[tone]} {_SENTENCES[report.verdict]}</strong>'
        f"<p>{told}</p>{f'<ul>{steps}</ul>' if steps else ''}</div>"
    )


def _matrix(report: CheckReport) -> str:
    if not report.entries:
        return ""
    cells = {(entry.name, entry.case): entry for entry in report.entries}
    rows: list[list[str]] = []
    for runner in report.runners():
        found = [cells.get((runner, case)) for case in report.cases()]
        rows.append([f"<th>{_text(runner)}</th>", *(_cell(entry) for entry in found)])
    head = "".join(f"<th>{_text(case)}</th>" for case in report.cases())
    lines = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    table = f'<div class="scroll"><table><tr><th>runner</th>{head}</tr>{lines}</table></div>'
    return f"<h2>Runners and cases</h2>{table}"


def _cell(entry: Entry | None) -> str:
    if entry is None:
        return '<td class="quiet">not run</td>'
    if entry.comparison is None:
        return f'<td>{_word("crashed")}<br><span class="small quiet">{entry.rows} rows</span></td>'
    found = entry.comparison
    told = f"{found.rows} rows, {percent(found.identical_rows, found.rows)} identical<br>worst {worst(found)}"
    return f'<td>{_word(found.verdict)}<br><span class="small quiet">{told}</span></td>'


def _laws(laws: Iterable[LawOutcome]) -> str:
    parts = [
        f'<div class="row"><h3>{_text(law.law)}: {_word(law.verdict)}</h3><p>{_text(law.sentence)}</p>'
        f'<p class="small quiet">{law.pairs} pairs compared{_detail(law)}</p>{_counterexample(law)}</div>'
        for law in laws
    ]
    return f"<h2>Laws</h2>{''.join(parts)}" if parts else ""


def _detail(law: LawOutcome) -> str:
    return f"; {_text(law.detail)}" if law.detail else ""


def _counterexample(law: LawOutcome) -> str:
    if law.counterexample is None:
        return ""
    found = law.counterexample.to_dict()
    rows = cast("list[Mapping[str, object]]", found["rows"])
    labels = cast("list[str]", found["labels"])
    listed = "".join(
        f"<h3>{_text(label)}</h3>{_pairs(row)}" for label, row in zip(labels, rows, strict=False)
    )
    return f"<details open><summary>{_text(law.counterexample.summary())}</summary>{listed}</details>"


def _entry(entry: Entry) -> str:
    title = f"<h2>{_text(entry.name)}, case {_text(entry.case)}: {_word(entry.verdict)}</h2>"
    if entry.comparison is None:
        return f'<section class="panel">{title}<p><code>{_text(entry.error)}</code></p></section>'
    parts = [title, _findings(entry.comparison)]
    parts += [_column(column) for column in entry.comparison.divergent()]
    rest = [column for column in entry.comparison.columns if column.verdict != "divergent"]
    if rest:
        parts.append(f"<details><summary>{len(rest)} more columns</summary>{_columns(rest)}</details>")
    return f'<section class="panel">{"".join(parts)}</section>'


def _passed(entry: Entry) -> str:
    found = cast("Comparison", entry.comparison)
    title = f"{_text(entry.name)}, case {_text(entry.case)}: {_text(found.summary())}"
    charts = [f"<h3>{_text(c.name)}</h3>{histogram(c)}" for c in found.columns if histogram(c)]
    inside = f"{_findings(found)}{_columns(found.columns)}{''.join(charts)}"
    return f"<details><summary>{title}</summary>{inside}</details>"


def _findings(comparison: Comparison) -> str:
    lines = [
        f'<li class="{"bad" if finding.fails else "quiet"}">{"" if finding.fails else "note: "}'
        f"{_text(finding.message)}</li>"
        for finding in comparison.findings
    ]
    return f"<ul>{''.join(lines)}</ul>" if lines else ""


def _columns(columns: Iterable[ColumnComparison]) -> str:
    head = ["column", "rule", "verdict", "identical", "within", "worst", ""]
    lines = [
        "<tr>"
        f'<td class="path">{_text(column.name)}</td><td>{_text(str(column.rule))}</td>'
        f"<td>{_word(column.verdict)}</td>"
        f'<td class="number">{percent(column.identical, column.rows)}</td>'
        f'<td class="number">{percent(column.within, column.rows)}</td>'
        f'<td class="number">{worst_of_column(column)}</td>'
        f'<td class="free small quiet">{_text("; ".join(remarks(column)))}</td></tr>'
        for column in columns
    ]
    titles = "".join(f"<th>{title}</th>" for title in head)
    return f'<div class="scroll"><table><tr>{titles}</tr>{"".join(lines)}</table></div>'


def _column(column: ColumnComparison) -> str:
    shares = (
        f"{percent(column.identical, column.rows)} of {column.rows} rows bit-identical, "
        f"{percent(column.within, column.rows)} within {_text(str(column.rule))}, "
        f'<span class="bad">{column.failing} outside</span>'
    )
    notes = "".join(f"<li>{_text(remark)}</li>" for remark in remarks(column))
    rows = "".join(_worst(row) for row in column.worst)
    return (
        f'<h3>{_text(column.name)} <span class="quiet">{_text(column.dtype)}</span></h3><p>{shares}</p>'
        f"{f'<ul>{notes}</ul>' if notes else ''}{_quantiles(column)}{histogram(column)}"
        f"{f'<h3>Worst rows</h3>{rows}' if rows else ''}"
    )


def _quantiles(column: ColumnComparison) -> str:
    if column.distances is None or not column.distances.differing:
        return ""
    found = column.distances
    spreads: list[tuple[str, Spread]] = [("ulp", found.ulp), ("absolute", found.abs), ("relative", found.rel)]
    head = "".join(f'<th class="number">{title}</th>' for title in ("50 %", "90 %", "99 %", "max", "mean"))
    lines = "".join(
        f"<tr><td>{name}</td>"
        + "".join(f'<td class="number">{number(v)}</td>' for v in (s.q50, s.q90, s.q99, s.largest, s.mean))
        + "</tr>"
        for name, s in spreads
    )
    needs = (
        "No ulp would pass."
        if found.needed_ulp is None
        else f"The smallest ulp that would pass: {found.needed_ulp}."
    )
    table = f"<table><tr><th>distance</th>{head}</tr>{lines}</table>"
    return f'<div class="scroll">{table}</div><p class="small">{needs}</p>'


def _worst(row: WorstRow) -> str:
    key = "" if row.key is None else f" · key {_text(value(row.key))}"
    far = "" if row.ulp is None else f" · {number(row.ulp)} ulp"
    title = f"row {row.row}{key} · {_text(row.where)}{far} · {_text(row.reason)}"
    given = "" if row.input is None else f"<details><summary>input</summary>{_pairs(row.input)}</details>"
    return (
        f'<div class="row"><p class="small quiet">{title}</p><div class="sides">'
        f'<div><span class="small quiet">expected</span><br><code>{_value(row.expected)}</code></div>'
        f'<div><span class="small quiet">obtained</span><br><code>{_value(row.obtained)}</code></div>'
        f"</div>{given}</div>"
    )


def _pairs(values: Mapping[str, object]) -> str:
    lines = (f"<dt>{_text(name)}</dt><dd><code>{_value(item)}</code></dd>" for name, item in values.items())
    return f"<dl>{''.join(lines)}</dl>"


def _fingerprint(report: CheckReport) -> str:
    changes = report.fingerprint_changes()
    changed = "".join(
        f'<tr><td>{_text(name)}</td><td class="free">{_text(then)}</td>'
        f'<td class="free">{_text(now)}</td></tr>'
        for name, (then, now) in changes.items()
    )
    head = "<tr><th></th><th>when recorded</th><th>now</th></tr>"
    table = f'<div class="scroll"><table>{head}{changed}</table></div>' if changes else ""
    same = "<p>Changed since the recording:</p>" if changes else "<p>The same as when recorded.</p>"
    known = any(entry.recorded for entry in report.entries)
    return f"<h2>Fingerprint</h2>{same if known else ''}{table}{_pairs(report.fingerprint)}"


def _text(text: str) -> str:
    """Text as markup: escaped, and with nothing in it that reorders or hides the text around it."""
    return escape(clean(text))


def _value(item: object) -> str:
    return _text(value(item, 400))


def _tone(word: str) -> str:
    return "good" if word in _GOOD else "note" if word in _NOTE else "bad"


def _word(word: str) -> str:
    tone = _tone(word)
    return f'<span class="word {tone}">{_SIGNS[tone]} {_text(word)}</span>'
