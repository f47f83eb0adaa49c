"""The head of a check's page: the verdict, what to do next, and the matrix of runners and checks."""

from __future__ import annotations

from collections.abc import Mapping

from parity.errors import counted
from parity.report.advice import advice
from parity.report.markup import hero, mark, text, tone, verdict
from parity.report.matrix import Cell, Matrix, matrix
from parity.report.model import CheckReport
from parity.report.words import ulps

MAX_CHECKS = 60
MAX_RUNNERS = 40
MAX_STEPS = 20

_SENTENCES = {
    "agrees": "Every runner gives the recorded answers",
    "diverges": "Answers differ",
    "refused": "A runner refused to answer",
    "nothing compared": "Nothing was compared, so nothing is proven",
    "runner crashed": "A runner failed to start or crashed",
    "law unable": "A law could not be tried",
    "law without rows": "A law compared no answers, so it proves nothing",
    "nondeterministic": "The handler differs from itself under identical conditions",
}


def headline(report: CheckReport) -> str:
    """The verdict with the figures that matter, and what to do next."""
    figures = {
        "rows compared": f"{report.rows_compared}",
        "pairs compared by laws": f"{report.pairs_compared}" if report.laws else "",
        "laws hold": _holding(report) if report.laws else "",
        "largest distance": "" if report.worst_ulp is None else ulps(report.worst_ulp),
        "time in runners": f"{report.seconds:.1f} s",
        "exit code": str(report.exit_code),
    }
    steps = "".join(f"<li>{text(step)}</li>" for step in advice(report)[:MAX_STEPS])
    notes = "".join(f"<li>{text(note)}</li>" for note in report.notes[:MAX_STEPS])
    following = f"<h2>What to do next</h2><ol>{steps}</ol>" if steps else ""
    following += f'<h2>Notes</h2><ul class="small">{notes}</ul>' if notes else ""
    subject = f"<b>{text(report.handler)}</b> {text(report.version)}, profile {text(report.profile)}"
    sentence = _SENTENCES[report.verdict]
    if report.verdict == "agrees" and not report.entries:
        sentence = "No law is broken"
    return hero(report.verdict, subject, sentence, _lead(report), figures, following)


def _lead(report: CheckReport) -> str:
    failed = len(list(report.failures()))
    broken = sum(law.verdict == "broken" for law in report.laws)
    unable = sum(law.verdict == "unable" for law in report.laws)
    parts: list[str] = []
    if report.entries:
        parts.append(_compared(failed, len(report.entries)))
    if report.laws:
        good = f"no law of the {len(report.laws)} tried is broken"
        many = f"{broken} of {counted(len(report.laws), 'law')} {'is' if broken == 1 else 'are'} broken"
        parts.append(many if broken else good)
    if unable:
        parts.append(f"{unable} could not be tried")
    told = ", and ".join(parts) or "no golden case was run, and no law was tried"
    return f"{told[:1].upper()}{told[1:]}."


def _compared(failed: int, whole: int) -> str:
    """How many comparisons with golden cases agree, or how many fail."""
    if whole == 1:
        return f"the comparison with a golden case {'fails' if failed else 'agrees'}"
    if not failed:
        return f"all {whole} comparisons with golden cases agree"
    return f"{failed} of {whole} comparisons with golden cases {'fails' if failed == 1 else 'fail'}"


def _holding(report: CheckReport) -> str:
    holding = sum(law.verdict in ("holds", "noise") for law in report.laws)
    applying = sum(law.verdict != "skipped" for law in report.laws)
    return f"{holding} of {applying}"


def overview(report: CheckReport, anchors: Mapping[tuple[str, ...], str]) -> str:
    """The matrix; `anchors` says which article a cell of (runner, kind, name) leads to."""
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
    unseen = counted(left, "more row or column is", "more rows and columns are")
    more = f'<p class="small quiet">{unseen} not shown.</p>' if left else ""
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


def _cell(found: Matrix, runner: str, check: tuple[str, str], anchors: Mapping[tuple[str, ...], str]) -> str:
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
        return {"crashed": "crash", "skipped": "skip"}.get(cell.verdict, cell.verdict)
    beyond = cell.outside if cell.outside is not None else cell.differing
    if cell.verdict in ("divergent", "broken") and beyond:
        return f"{_short(beyond)}/{_short(cell.compared)}"
    return _short(cell.compared)


def _short(count: int) -> str:
    for size, unit in ((1_000_000, "M"), (10_000, "k")):
        if count >= size:
            return f"{count / (1000 if unit == 'k' else size):.3g}{unit}"
    return str(count)
