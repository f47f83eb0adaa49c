"""A drift report as plain text for a terminal: the verdict, what drifted, when, and in whose request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from parity.compare import ERROR_COLUMN
from parity.replay.model import DriftReport, LabelDrift, ScoreDrift, Slice, WorstRow
from parity.report.words import clean, number, percent, value

MAX_SLICES = 12
MAX_PAIRS = 5
MAX_WORST = 6
MAX_WORST_OF_COLUMN = 2

_COLOURS = {"agrees": "32", "identical": "32", "within": "32", "drifts": "31", "divergent": "31"}


def render(report: DriftReport, *, colour: bool = False) -> str:
    """The report; short when the answers agree. Control characters of names and values are escaped."""
    lines = [clean(_title(report)), clean(_traffic(report)), ""]
    if report.columns:
        lines += _columns(report, colour)
    for title, slices in _slices(report):
        lines += ["", title, *_table(slices)]
    for label in report.labels:
        lines += [clean(line) for line in _label(label)]
    for score in report.scores:
        lines += [clean(line) for line in _score(score)]
    lines += [clean(line) for line in _failures(report)]
    lines += [clean(line) for line in _worst(report)]
    lines += ["", *(clean(line) for line in _verdict(report, colour))]
    return "\n".join(lines) + "\n"


def _title(report: DriftReport) -> str:
    return (
        f"{report.handler} {report.version} through {report.runner} ({report.wire}), {report.seconds:.1f} s"
    )


def _traffic(report: DriftReport) -> str:
    traffic = report.traffic
    of = ", ".join(f"{name}: {rows} rows" for name, rows in traffic.handlers.items()) or "no rows"
    when = f", {traffic.first} to {traffic.last}" if traffic.first else ""
    parts = f"{traffic.parts} part{'s' if traffic.parts != 1 else ''}"
    return f"recorded traffic {traffic.folder}, {parts}{when}: {of}"


def _columns(report: DriftReport, colour: bool) -> list[str]:
    rows = [["column", "rule", "rows", "identical", "outside", "worst", "verdict"]]
    rows += [
        [
            column.name,
            str(column.rule),
            str(column.rows),
            percent(column.identical, column.rows),
            str(column.failing),
            "-" if column.largest_ulp is None else f"{number(column.largest_ulp)} ulp",
            column.verdict,
        ]
        for column in report.columns
    ]
    return _aligned(rows, colour, right=(2, 3, 4, 5))


def _slices(report: DriftReport) -> Iterator[tuple[str, Sequence[Slice]]]:
    """The tables worth showing: those with more than one row, or with drift in them."""
    for title, slices in (
        ("by hour (UTC)", report.hours),
        ("by recorded version", report.versions),
        ("by recorded profile", report.profiles),
    ):
        if len(slices) > 1 or (title.startswith("by hour") and report.failing_rows):
            yield title, slices


def _table(slices: Sequence[Slice]) -> list[str]:
    shown = slices
    if len(slices) > MAX_SLICES:
        most = sorted(slices, key=lambda item: -item.failing)[:MAX_SLICES]
        shown = [item for item in slices if item in most]
    rows = [["", "rows", "differ", "drift", "label flips", "fail on one side"]]
    rows += [
        [
            item.name,
            str(item.rows),
            str(item.differing),
            f"{item.failing} ({percent(item.failing, item.rows)})",
            str(item.flips),
            str(item.one_sided),
        ]
        for item in shown
    ]
    lines = [f"  {line}" for line in _aligned(rows, False, right=(1, 2, 3, 4, 5))]
    if len(shown) < len(slices):
        lines.append(f"  and {len(slices) - len(shown)} more with less drift; --json has them all")
    return lines


def _label(label: LabelDrift) -> Iterator[str]:
    if not label.flips:
        return
    what = "largest score" if label.of_scores else "label"
    yield ""
    yield f"{label.column}: the {what} flips in {label.flips} of {label.rows} rows"
    for recorded, replayed, rows in label.pairs[:MAX_PAIRS]:
        yield f"  {recorded} -> {replayed}: {rows}"
    rest = label.flips - sum(rows for _, _, rows in label.pairs[:MAX_PAIRS])
    if rest:
        yield f"  other changes: {rest}"


def _score(score: ScoreDrift) -> Iterator[str]:
    if not score.moved:
        return
    far = dict(score.quantiles)
    yield ""
    yield (
        f"{score.column}: {score.up} rows up, {score.down} down; mean {_signed(score.mean_shift)} "
        f"({number(score.mean_recorded)} to {number(score.mean_replayed)}), median "
        f"{_signed(score.median_shift)}, 5 % {_signed(far[0.05])}, 95 % {_signed(far[0.95])}, farthest "
        f"{_signed(score.largest_shift)}"
    )
    top = ", ".join(f"{share:.0%} of the top {count}" for count, share in score.top)
    over = "" if score.sampled == score.rows else f" (over {score.sampled} rows)"
    yield f"  order: Spearman {_rank(score.spearman)}, Kendall {_rank(score.kendall)}{over}; {top} stay there"


def _failures(report: DriftReport) -> Iterator[str]:
    found = report.failures
    if not (found.only_recorded or found.only_replayed or found.other_kind):
        return
    yield ""
    yield (
        f"failures: {_rows(found.only_replayed)} now only, {_rows(found.only_recorded)} when recorded only, "
        f"{_rows(found.other_kind)} in another way"
    )
    for message, rows in found.messages:
        yield f"  now, {_rows(rows)}: {message}"
    if found.requests:
        yield f"  such as requests {', '.join(found.requests)}"


def _worst(report: DriftReport) -> Iterator[str]:
    rows: list[WorstRow] = []
    for row in report.worst:
        shown = sum(other.column == row.column for other in rows)
        if row.fails and row.column != ERROR_COLUMN and shown < MAX_WORST_OF_COLUMN and len(rows) < MAX_WORST:
            rows.append(row)
    if rows:
        yield ""
        yield "the rows that drifted most"
    for row in rows:
        far = f" ({number(row.ulp)} ulp)" if row.ulp is not None else ""
        sides = f"recorded {value(row.recorded)}, replayed {value(row.replayed)}"
        yield f"  {row.where or row.column}{far}: {sides}"
        yield f"    request {row.request_id} row {row.row}, {row.time}, version {row.version}"


def _verdict(report: DriftReport, colour: bool) -> Iterator[str]:
    done = f"{report.rows} of {report.traffic.rows} recorded rows compared"
    if report.rows:
        done += (
            f", {report.failing_rows} drift beyond the tolerance, "
            f"{report.rows - report.differing_rows} are bit-identical"
        )
    yield f"{_toned(report.verdict.upper(), colour, report.verdict)}: {done}"
    for item in report.not_replayable:
        yield f"  not replayable, {_rows(item.rows)}: {item.reason}"
    for finding in report.findings:
        yield f"  differs: {finding}"
    for note in report.notes:
        yield f"  note: {note}"


def _rows(count: int) -> str:
    return f"{count} row{'s' if count != 1 else ''}"


def _signed(shift: float) -> str:
    return f"{'+' if shift > 0 else ''}{number(shift)}"


def _rank(correlation: float | None) -> str:
    return "-" if correlation is None else f"{correlation:.4f}"


def _aligned(rows: Sequence[Sequence[str]], colour: bool, right: Sequence[int] = ()) -> list[str]:
    cells = [[clean(cell) for cell in row] for row in rows]
    widths = [max(len(row[place]) for row in cells) for place in range(len(cells[0]))]
    lines: list[str] = []
    for row in cells:
        padded = [
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        padded[-1] = padded[-1].rstrip()
        if colour:
            padded[-1] = _toned(padded[-1], colour, padded[-1])
        lines.append("  ".join(padded).rstrip())
    return lines


def _toned(word: str, colour: bool, tone: str) -> str:
    code = _COLOURS.get(tone, "33")
    return f"\x1b[{code}m{word}\x1b[0m" if colour else word
