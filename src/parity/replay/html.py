"""A drift report as one HTML file, in the look of the check's report; see `parity.report.page`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from parity.replay.model import ColumnDrift, DriftReport, LabelDrift, ScoreDrift, Slice, WorstRow
from parity.report import charts, evidence
from parity.report.charts import Bar
from parity.report.markup import folded, hero, table, text, verdict
from parity.report.page import document
from parity.report.words import clean, number, percent, ulps

MAX_BARS = 48
"""The latest hours that are drawn; the table has more."""

MAX_SLICES = 400
MAX_LINES = 30

_SENTENCES = {
    "agrees": "Recorded traffic is answered as it was",
    "drifts": "Answers have drifted",
    "nothing compared": "Nothing was compared, so nothing is proven",
}


def render(report: DriftReport) -> str:
    """The report as a self-contained HTML document."""
    parts = {
        "": _hero(report),
        "answers": _columns(report.columns),
        "time": _times(report),
        "labels": "".join(_label(label) for label in report.labels if label.flips),
        "scores": "".join(_score(score) for score in report.scores if score.moved),
        "failures": _failures(report),
        "rows": _worst(report.worst),
    }
    names = {
        "answers": "Answers",
        "time": "When, and which version",
        "labels": "Labels",
        "scores": "Scores",
        "failures": "Failures",
        "rows": "Rows",
    }
    body = [
        f'<section id="{place}">{part}</section>' if place else part for place, part in parts.items() if part
    ]
    links = [(place, names[place]) for place, part in parts.items() if place and part]
    title = f"{report.handler} {report.version}: {report.verdict}"
    return document(clean(title), "\n".join(body), links)


def _hero(report: DriftReport) -> str:
    traffic = report.traffic
    of = ", ".join(f"{name} ({rows} rows)" for name, rows in traffic.handlers.items())
    lead = (
        f"{report.failing_rows} of {report.rows} rows drift beyond the tolerance, "
        f"{report.rows - report.differing_rows} are bit-identical."
    )
    subject = (
        f"<b>{text(report.handler)}</b> {text(report.version)} through {text(report.runner)} "
        f"({text(report.wire)}), on traffic of {text(of)} in <code>{text(traffic.folder)}</code>"
    )
    figures = {
        "recorded rows": str(traffic.rows),
        "compared": str(report.rows),
        "drifted": percent(report.failing_rows, report.rows),
        "label flips": str(sum(label.flips for label in report.labels)) if report.labels else "",
        "from (UTC)": traffic.first[:16].replace("T", " "),
        "to": traffic.last[:16].replace("T", " "),
    }
    lines = [f"not replayable: {item.rows} rows: {item.reason}" for item in report.not_replayable]
    lines += [*report.findings, *report.notes]
    items = "".join(f"<li>{text(line)}</li>" for line in lines[:MAX_LINES])
    notes = f'<h2>Notes</h2><ul class="small">{items}</ul>' if items else ""
    return hero(report.verdict, subject, _SENTENCES[report.verdict], lead, figures, notes)


def _columns(columns: Sequence[ColumnDrift]) -> str:
    rows = [
        [
            f'<b class="name">{text(column.name)}</b>',
            verdict(column.verdict),
            str(column.rows),
            percent(column.identical, column.rows),
            str(column.failing),
            "-" if column.largest_abs is None else number(column.largest_abs),
            ulps(column.largest_ulp),
            f'<span class="wrap">{text(str(column.rule))}</span>',
        ]
        for column in columns
    ]
    head = ["column", "verdict", "#rows", "#identical", "#outside", "#largest", "#in ulp", "rule"]
    return f"<h2>Answers</h2>{table(head, rows)}" if rows else ""


def _times(report: DriftReport) -> str:
    latest = report.hours[-MAX_BARS:]
    hours = [Bar(part.name[-5:], part.name, part.rows, part.differing, part.failing) for part in latest]
    versions = [Bar(v.name, f"version {v.name}", v.rows, v.differing, v.failing) for v in report.versions]
    drawn = charts.shares_of_rows("hours", "Drift by hour", "hour (UTC)", hours)
    drawn += charts.shares_of_rows("versions", "Drift by recorded version", "version", versions[:MAX_BARS])
    tables = "".join(
        _slices(title, slices)
        for title, slices in (
            ("By hour (UTC)", report.hours),
            ("By recorded version", report.versions),
            ("By recorded profile", report.profiles),
        )
    )
    return f"<h2>When, and which version</h2>{evidence.chart_row(drawn)}{tables}" if tables else ""


def _slices(title: str, slices: Sequence[Slice]) -> str:
    rows = [
        [
            f'<span class="name">{text(part.name)}</span>',
            str(part.rows),
            str(part.differing),
            f'<span class="{"bad" if part.failing else ""}">{part.failing}</span>',
            percent(part.failing, part.rows),
            str(part.flips),
            str(part.one_sided),
        ]
        for part in slices[-MAX_SLICES:]
    ]
    head = ["", "#rows", "#differ", "#drift", "#share", "#label flips", "#fail on one side"]
    return f"<h4>{title}</h4>{table(head, rows)}" if rows else ""


def _label(label: LabelDrift) -> str:
    what = "largest score" if label.of_scores else "label"
    rows = [
        [f"<code>{text(old)}</code>", f"<code>{text(new)}</code>", str(count)]
        for old, new, count in label.pairs
    ]
    if label.other:
        rows.append(["other changes", "", str(label.other)])
    return (
        f"<h2>Labels: {text(label.column)}</h2>"
        f"<p>The {what} flips in <b>{label.flips}</b> of {label.rows} rows.</p>"
        f"{table(['recorded', 'replayed', '#rows'], rows)}"
    )


def _score(score: ScoreDrift) -> str:
    facts = {
        "Rows that moved up": str(score.up),
        "Rows that moved down": str(score.down),
        "Mean as recorded": number(score.mean_recorded),
        "Mean now": number(score.mean_replayed),
        "Mean shift": number(score.mean_shift),
        "Median shift": number(score.median_shift),
        "Farthest shift": number(score.largest_shift),
        "Spearman's rank correlation": _rank(score.spearman),
        "Kendall's tau": _rank(score.kendall),
    }
    told = "".join(f"<div><dt>{name}</dt><dd>{item}</dd></div>" for name, item in facts.items())
    more = [[f"{share:.0%} quantile of the shift", number(shift)] for share, shift in score.quantiles]
    more += [[f"of the top {count} still there", f"{share:.0%}"] for count, share in score.top]
    over = (
        "" if score.sampled == score.rows else f", quantiles and ranks over {score.sampled} drawn at random"
    )
    return (
        f"<h2>Score: {text(score.column)}</h2>"
        f'<p class="quiet">Replayed - recorded, over {score.rows} rows{over}.</p>'
        f'<dl class="facts">{told}</dl>'
        f"{folded('Quantiles of the shift, and the top', table(['', '#'], more))}"
    )


def _failures(report: DriftReport) -> str:
    found = report.failures
    if not (found.only_recorded or found.only_replayed or found.other_kind):
        return ""
    rows = [
        ["fail now only", str(found.only_replayed)],
        ["failed when recorded only", str(found.only_recorded)],
        ["fail in another way", str(found.other_kind)],
        *(
            [f'<span class="wrap">now: {text(message)}</span>', str(count)]
            for message, count in found.messages
        ),
    ]
    return f"<h2>Failures</h2>{table(['', '#rows'], rows)}"


def _worst(rows: Sequence[WorstRow]) -> str:
    parts = list(_rows(row for row in rows if row.fails))
    return f"<h2>The rows that drifted most</h2>{''.join(parts)}" if parts else ""


def _rows(rows: Iterator[WorstRow]) -> Iterator[str]:
    for row in rows:
        far = "" if row.ulp is None else f"<span>{ulps(row.ulp)} apart</span>"
        yield (
            f'<div class="pair"><div class="head"><b>request {text(row.request_id)}</b>'
            f"<span>row {row.row}, {text(row.time)}, version {text(row.version)}</span>"
            f"<code>{text(row.where or row.column)}</code>"
            f'{far}<span class="bad">{text(row.reason)}</span></div>'
            f"{evidence.side_by_side(row.recorded, row.replayed, 'recorded', 'replayed')}"
            f"{evidence.given(row.input)}</div>"
        )


def _rank(correlation: float | None) -> str:
    return "-" if correlation is None else f"{correlation:.4f}"
