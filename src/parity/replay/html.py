"""A drift report as the data part of an HTML page; the page around it is `parity.report.page`'s."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from parity.replay.model import DriftReport, LabelDrift, ScoreDrift, Slice, WorstRow
from parity.report.page import document
from parity.report.words import clean, number, percent, value

_SENTENCES = {
    "agrees": "Recorded traffic is answered as it was",
    "drifts": "Answers have drifted",
    "nothing compared": "Nothing was compared, so nothing is proven",
}
_TONES = {"agrees": "good", "drifts": "bad", "nothing compared": "note"}
_VERDICTS = {"identical": "good", "within": "good", "divergent": "bad"}


def render(report: DriftReport) -> str:
    """The report as a self-contained HTML document."""
    title = f"{report.handler} {report.version}: {report.verdict}"
    return document(clean(title), "\n".join(part for part in _parts(report) if part))


def _parts(report: DriftReport) -> Iterable[str]:
    yield _banner(report)
    yield _columns(report)
    for title, slices in (
        ("By hour (UTC)", report.hours),
        ("By recorded version", report.versions),
        ("By recorded profile", report.profiles),
    ):
        yield _slices(title, slices)
    yield "".join(_label(label) for label in report.labels if label.flips)
    yield "".join(_score(score) for score in report.scores if score.moved)
    yield _failures(report)
    yield _worst(report.worst)


def _banner(report: DriftReport) -> str:
    traffic = report.traffic
    of = ", ".join(f"{name} ({rows} rows)" for name, rows in traffic.handlers.items())
    done = (
        f"{report.rows} of {traffic.rows} recorded rows compared, {report.failing_rows} drift beyond the "
        f"tolerance, {report.rows - report.differing_rows} are bit-identical"
    )
    lines = [f"not replayable: {item.rows} rows: {item.reason}" for item in report.not_replayable]
    lines += [*report.findings, *report.notes]
    items = "".join(f"<li>{_text(line)}</li>" for line in lines)
    return (
        f"<h1>{_text(report.handler)} {_text(report.version)}</h1>"
        f'<p class="quiet">parity replay through {_text(report.runner)} ({_text(report.wire)}) of '
        f"{_text(traffic.folder)}: {_text(of)}, {_text(traffic.first)} to {_text(traffic.last)}</p>"
        f'<div class="verdict {_TONES[report.verdict]}"><strong>{_SENTENCES[report.verdict]}</strong>'
        f"<p>{done}</p>{f'<ul>{items}</ul>' if items else ''}</div>"
    )


def _columns(report: DriftReport) -> str:
    rows = [
        [
            column.name,
            str(column.rule),
            str(column.rows),
            percent(column.identical, column.rows),
            str(column.failing),
            "-" if column.largest_abs is None else number(column.largest_abs),
            "-" if column.largest_ulp is None else f"{number(column.largest_ulp)} ulp",
            column.verdict,
        ]
        for column in report.columns
    ]
    head = ["column", "rule", "rows", "identical", "outside", "largest", "", "verdict"]
    tones = [_VERDICTS.get(column.verdict, "note") for column in report.columns]
    return f"<h2>Answers</h2>{_table(head, rows, tones)}" if rows else ""


def _slices(title: str, slices: Sequence[Slice]) -> str:
    rows = [
        [
            item.name,
            str(item.rows),
            str(item.differing),
            f"{item.failing} ({percent(item.failing, item.rows)})",
            str(item.flips),
            str(item.one_sided),
        ]
        for item in slices
    ]
    tones = ["bad" if item.failing else "" for item in slices]
    head = ["", "rows", "differ", "drift", "label flips", "fail on one side"]
    return f"<h2>{title}</h2>{_table(head, rows, tones)}" if rows else ""


def _label(label: LabelDrift) -> str:
    what = "largest score" if label.of_scores else "label"
    rows = [[recorded, replayed, str(count)] for recorded, replayed, count in label.pairs]
    if label.other:
        rows.append(["other changes", "", str(label.other)])
    return (
        f"<h2>Labels: {_text(label.column)}</h2>"
        f"<p>The {what} flips in {label.flips} of {label.rows} rows.</p>"
        f"{_table(['recorded', 'replayed', 'rows'], rows)}"
    )


def _score(score: ScoreDrift) -> str:
    rows = [
        ["rows that moved up", str(score.up)],
        ["rows that moved down", str(score.down)],
        ["mean as recorded", number(score.mean_recorded)],
        ["mean now", number(score.mean_replayed)],
        ["mean shift", number(score.mean_shift)],
        ["median shift", number(score.median_shift)],
        *([f"{share:.0%} quantile of the shift", number(shift)] for share, shift in score.quantiles),
        ["farthest shift", number(score.largest_shift)],
        ["Spearman's rank correlation", _rank(score.spearman)],
        ["Kendall's tau", _rank(score.kendall)],
        *([f"of the top {count} still there", f"{share:.0%}"] for count, share in score.top),
    ]
    over = (
        "" if score.sampled == score.rows else f", quantiles and ranks over {score.sampled} drawn at random"
    )
    return (
        f"<h2>Score: {_text(score.column)}</h2><p>Replayed - recorded, over {score.rows} rows{over}.</p>"
        f"{_table(['', ''], rows)}"
    )


def _failures(report: DriftReport) -> str:
    found = report.failures
    if not (found.only_recorded or found.only_replayed or found.other_kind):
        return ""
    rows = [
        ["fail now only", str(found.only_replayed)],
        ["failed when recorded only", str(found.only_recorded)],
        ["fail in another way", str(found.other_kind)],
        *([f"now: {message}", str(count)] for message, count in found.messages),
    ]
    return f"<h2>Failures</h2>{_table(['', 'rows'], rows)}"


def _worst(rows: Sequence[WorstRow]) -> str:
    shown = [row for row in rows if row.fails]
    parts = [
        f'<div class="row"><p class="small quiet">request {_text(row.request_id)}, row {row.row}, '
        f"{_text(row.time)}, version {_text(row.version)}: {_text(row.where or row.column)}, "
        f"{_text(row.reason)}</p>"
        f'<div class="sides"><div><span class="small quiet">recorded</span><br>'
        f"<code>{_text(value(row.recorded, 400))}</code></div>"
        f'<div><span class="small quiet">replayed</span><br>'
        f"<code>{_text(value(row.replayed, 400))}</code></div></div>"
        f"<details><summary>input</summary><dl>{_pairs(row)}</dl></details></div>"
        for row in shown
    ]
    return f"<h2>The rows that drifted most</h2>{''.join(parts)}" if parts else ""


def _pairs(row: WorstRow) -> str:
    return "".join(
        f"<dt>{_text(name)}</dt><dd><code>{_text(value(item, 400))}</code></dd>"
        for name, item in row.input.items()
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], tones: Sequence[str] = ()) -> str:
    titles = "".join(f"<th>{_text(title)}</th>" for title in head)
    lines: list[str] = []
    for place, row in enumerate(rows):
        tone = tones[place] if place < len(tones) else ""
        cells = [f"<td>{_text(cell)}</td>" for cell in row[:-1]]
        cells.append(f'<td class="{tone}">{_text(row[-1])}</td>' if tone else f"<td>{_text(row[-1])}</td>")
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f'<div class="scroll"><table><tr>{titles}</tr>{"".join(lines)}</table></div>'


def _rank(correlation: float | None) -> str:
    return "-" if correlation is None else f"{correlation:.4f}"


def _text(text: str) -> str:
    """Text as markup: escaped, and with nothing in it that reorders or hides the text around it."""
    return escape(clean(text))
