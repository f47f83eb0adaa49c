"""A check report, or one comparison, as plain text for a terminal: short when all is well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from parity.compare import ColumnComparison, Comparison
from parity.report.model import CheckReport, Entry, advice
from parity.report.words import clean, number, percent, remarks, value, worst, worst_of_column

if TYPE_CHECKING:
    from parity.laws.outcome import LawOutcome

MAX_ENTRIES = 8
MAX_LAWS = 5
MAX_FAILURES = 3

_COLOURS = {"good": "32", "note": "33", "bad": "31"}
_TONES = {
    "identical": "good",
    "within": "good",
    "agrees": "good",
    "holds": "good",
    "noise": "note",
    "nothing": "note",
    "skipped": "note",
    "ignored": "note",
    "nothing compared": "note",
}


def render(report: CheckReport, *, colour: bool = False) -> str:
    """The report in about 20 lines; with findings, worst rows and what to do next when answers diverge.

    `colour` adds ANSI colours. Control characters of names and values are escaped.
    """
    lines = [clean(f"{report.handler} {report.version} · profile {report.profile}"), ""]
    lines += _entries(report, colour)
    lines += _laws(report.laws, colour)
    failures = list(report.failures())
    for entry in failures[:MAX_FAILURES]:
        if entry.comparison is not None:
            lines += ["", *_differences(entry.comparison, f"{entry.name}, case {entry.case}")]
    if len(failures) > MAX_FAILURES:
        lines.append(f"... and {len(failures) - MAX_FAILURES} more; the HTML report has them all")
    for law in report.laws:
        if law.verdict == "broken":
            lines += ["", *_counterexample(law)]
    lines += ["", _verdict_line(report, colour)]
    lines += [clean(f"  note: {note}") for note in report.notes[:2]]
    lines += [clean(f"  next: {step}") for step in advice(report)]
    return "\n".join(lines) + "\n"


def render_comparison(comparison: Comparison, title: str, *, colour: bool = False) -> str:
    """One comparison column by column, with findings and worst rows: what updating a golden would change."""
    lines = [f"{clean(title)}: {_toned(comparison.verdict, colour)}, {clean(comparison.summary())}"]
    rows = [_column_cells(column) for column in comparison.columns]
    header = ["column", "rule", "identical", "within", "worst", "verdict"]
    lines += _table([header, *rows], colour, indent="  ", right=(2, 3, 4))
    lines += _differences(comparison, "", everything=True)
    return "\n".join(lines) + "\n"


def _entries(report: CheckReport, colour: bool) -> list[str]:
    header = ["runner", "case", "rows", "identical", "worst", "verdict"]
    if len(report.entries) <= MAX_ENTRIES or any(report.failures()):
        rows = [_entry_cells(entry) for entry in report.entries]
    else:
        rows = [
            _runner_cells(name, [e for e in report.entries if e.name == name]) for name in report.runners()
        ]
    return _table([header, *rows], colour, right=(2, 3, 4)) if rows else ["no golden case was run"]


def _entry_cells(entry: Entry) -> list[str]:
    if entry.comparison is None:
        return [entry.name, entry.case, str(entry.rows), "-", "-", "crashed"]
    found = entry.comparison
    share = percent(found.identical_rows, found.rows)
    return [entry.name, entry.case, str(entry.rows), share, worst(found), found.verdict]


def _runner_cells(name: str, entries: Sequence[Entry]) -> list[str]:
    found = [entry.comparison for entry in entries if entry.comparison is not None]
    rows = sum(comparison.rows for comparison in found)
    distances = [comparison.worst_ulp for comparison in found if comparison.worst_ulp is not None]
    verdicts = {comparison.verdict for comparison in found}
    verdict = next(verdict for verdict in ("within", "identical", "nothing") if verdict in verdicts)
    share = percent(sum(comparison.identical_rows for comparison in found), rows)
    far = f"{number(max(distances))} ulp" if distances else "-"
    return [name, f"{len(entries)} cases", str(rows), share, far, verdict]


def _laws(laws: Sequence[LawOutcome], colour: bool) -> list[str]:
    if not laws:
        return []
    quiet = [law for law in laws if law.verdict != "broken"]
    rows = [[law.law, f"{law.pairs} pairs", law.verdict, law.detail] for law in laws]
    if len(laws) > MAX_LAWS and len(quiet) == len(laws):
        counts = {
            verdict: sum(law.verdict == verdict for law in laws) for verdict in ("holds", "noise", "nothing")
        }
        told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
        return ["", f"{len(laws)} laws: {told}"]
    return ["", *_table([["law", "compared", "verdict", ""], *rows], colour)]


def _counterexample(law: LawOutcome) -> Iterator[str]:
    yield clean(f"law {law.law} is broken: {law.sentence}")
    if law.detail:
        yield clean(f"  {law.detail}")
    if law.counterexample is not None:
        yield clean(f"  {law.counterexample.summary()}")


def _verdict_line(report: CheckReport, colour: bool) -> str:
    distances = [
        e.comparison.worst_ulp
        for e in report.entries
        if e.comparison is not None and e.comparison.worst_ulp is not None
    ]
    far = f", worst {number(max(distances))} ulp" if distances else ""
    broken = sum(law.verdict == "broken" for law in report.laws)
    laws = f", {broken} of {len(report.laws)} laws broken" if broken else ""
    done = (
        f"{report.rows_compared} rows in {len(report.entries)} comparisons{far}{laws}, {report.seconds:.1f} s"
    )
    return f"{_toned(report.verdict.upper(), colour, report.verdict)}: {done}"


def _column_cells(column: ColumnComparison) -> list[str]:
    shares = percent(column.identical, column.rows), percent(column.within, column.rows)
    return [column.name, str(column.rule), *shares, worst_of_column(column), column.verdict]


def _differences(comparison: Comparison, title: str, *, everything: bool = False) -> Iterator[str]:
    """Findings, then for each divergent column (or each that differs) its numbers and worst rows."""
    if title:
        yield clean(title)
    for finding in comparison.findings:
        if finding.fails or everything:
            yield clean(f"  {'' if finding.fails else 'note: '}{finding.message}")
    for column in comparison.columns:
        if column.verdict == "divergent" or (everything and column.worst):
            yield from _column(column)


def _column(column: ColumnComparison) -> Iterator[str]:
    share = f"{column.failing} of {column.rows} rows outside {column.rule}"
    if column.verdict != "divergent":
        share = f"{column.rows - column.identical} of {column.rows} rows changed, all within {column.rule}"
    yield clean(f"  {column.name} ({column.dtype}): {share}")
    if column.distances is not None and column.distances.differing:
        ulp, size = column.distances.ulp, column.distances.abs
        needs = (
            "no ulp would pass"
            if column.distances.needed_ulp is None
            else f"needs {column.distances.needed_ulp}"
        )
        yield (
            f"    ulp 50% {number(ulp.q50)}  90% {number(ulp.q90)}  99% {number(ulp.q99)}  "
            f"max {number(ulp.largest)} ({needs}); abs mean {number(size.mean)}  max {number(size.largest)}"
        )
    for remark in remarks(column):
        yield clean(f"    {remark}")
    for row in column.worst:
        name = f"row {row.row}" if row.key is None else f"row {row.row} (key {value(row.key)})"
        place = f" {row.where}" if row.where != column.name else ""
        far = f" ({number(row.ulp)} ulp)" if row.ulp is not None else f" ({clean(row.reason)})"
        sides = f"expected {value(row.expected)}, obtained {value(row.obtained)}"
        given = f"  input {_input(row.input)}" if row.input is not None else ""
        yield clean(f"    {name}{place}: {sides}{far}{given}")


def _input(row: Mapping[str, object]) -> str:
    """The first fields of an input row, each cut short."""
    told = [f"{name}={value(item, 24)}" for name, item in list(row.items())[:4]]
    return " ".join([*told, "..."] if len(row) > 4 else told)


def _table(
    rows: Sequence[Sequence[str]], colour: bool, *, indent: str = "", right: tuple[int, ...] = ()
) -> list[str]:
    rows = [[clean(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines: list[str] = []
    for number_of_row, row in enumerate(rows):
        cells = [cell.rjust(widths[i]) if i in right else cell.ljust(widths[i]) for i, cell in enumerate(row)]
        if number_of_row:
            cells = [_toned(cell, colour, cell.strip()) if cell.strip() in _WORDS else cell for cell in cells]
        lines.append((indent + "  ".join(cells)).rstrip())
    return lines


_WORDS = {*_TONES, "divergent", "crashed", "broken"}


def _toned(text: str, colour: bool, word: str = "") -> str:
    tone = _COLOURS[_TONES.get(word or text, "bad")]
    return f"\x1b[{tone}m{text}\x1b[0m" if colour else text
