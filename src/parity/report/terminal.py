"""A check report, or one comparison, as plain text for a terminal: short when all is well."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from parity.compare import ColumnComparison, Comparison
from parity.errors import counted
from parity.report.advice import advice
from parity.report.diagnosed import rows_told
from parity.report.matrix import divergences
from parity.report.model import CheckReport, Entry
from parity.report.words import clean, differ, number, percent, remarks, value, worst, worst_of_column

if TYPE_CHECKING:
    from parity.laws.outcome import LawOutcome
    from parity.triage import Diagnosis

MAX_ENTRIES = 8
MAX_LAWS = 5
MAX_DETAILED = 2
"""Broken laws, and divergent cases, that are told in detail."""
MAX_COLUMNS = 3
MAX_ROWS = 2
MAX_ADVICE = 6
MAX_LINE = 240

_COLOURS = {"good": "32", "note": "33", "bad": "31"}
_TONES = {
    "identical": "good",
    "within": "good",
    "agrees": "good",
    "holds": "good",
    "noise": "good",
    "nothing": "note",
    "skipped": "note",
    "ignored": "note",
    "refused": "note",
    "nothing compared": "note",
    "law without rows": "note",
}


def render(report: CheckReport, *, colour: bool = False) -> str:
    """The report in about 20 lines; with causes, counterexamples, worst rows and what to do next.

    `colour` adds ANSI colours. Control characters of names and values are escaped.
    """
    lines = [*_plain([f"{report.handler} {report.version} · profile {report.profile}"]), ""]
    lines += _entries(report, colour)
    lines += _laws(report.laws, colour)
    broken = sorted(report.broken(), key=lambda law: bool(law.follows))
    for law in broken[:MAX_DETAILED]:
        lines += ["", *_plain(law_lines(law))]
    groups = [group for group in divergences(report) if group[0].comparison is not None]
    for group in groups[:MAX_DETAILED]:
        lines += ["", *_plain(entry_lines(group))]
    left = max(0, len(broken) - MAX_DETAILED) + max(0, len(groups) - MAX_DETAILED)
    if left:
        lines += ["", f"... and {left} more; the HTML report (--html FILE) has them all"]
    lines += ["", _verdict_line(report, colour)]
    lines += _plain(f"  note: {note}" for note in report.notes[:2])
    lines += _plain(f"  next: {step}" for step in advice(report)[:MAX_ADVICE])
    return "\n".join(lines) + "\n"


def render_comparison(comparison: Comparison, title: str, *, colour: bool = False) -> str:
    """One comparison column by column, with findings and worst rows: what updating a golden would change."""
    lines = [f"{clean(title)}: {_toned(comparison.verdict, colour)}, {clean(comparison.summary())}"]
    rows = [_column_cells(column) for column in comparison.columns]
    header = ["column", "rule", "identical", "within", "worst", "verdict"]
    lines += _table([header, *rows], colour, indent="  ", right=(2, 3, 4))
    lines += _plain(f"  {'' if item.fails else 'note: '}{item.message}" for item in comparison.findings)
    for column in comparison.columns:
        if column.verdict == "divergent" or column.worst:
            lines += _plain(_column(column, len(column.worst)))
    return "\n".join(lines) + "\n"


def _entries(report: CheckReport, colour: bool) -> list[str]:
    header = ["runner", "case", "rows", "identical", "worst", "verdict"]
    failed = list(report.failures())
    more: list[str] = []
    if len(report.entries) <= MAX_ENTRIES:
        rows = [_entry_cells(entry) for entry in report.entries]
    elif not failed:
        rows = [
            _runner_cells(name, [e for e in report.entries if e.name == name]) for name in report.runners()
        ]
    else:
        rows = [_entry_cells(entry) for entry in failed[:MAX_ENTRIES]]
        left = len(failed) - len(rows)
        agree = len(report.entries) - len(failed)
        told = [counted(left, "more fails", "more fail")] * (left > 0)
        told += [counted(agree, "agrees", "agree")] * (agree > 0)
        more = [f"... and {', '.join(told)}"] if told else []
    return [*_table([header, *rows], colour, right=(2, 3, 4)), *more] if rows else ["no golden case was run"]


def _entry_cells(entry: Entry) -> list[str]:
    if entry.comparison is None:
        return [entry.name, entry.case, str(entry.rows), "-", "-", entry.verdict]
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
    return [name, counted(len(entries), "case"), str(rows), share, far, verdict]


def _laws(laws: Sequence[LawOutcome], colour: bool) -> list[str]:
    """All laws in a table while they are few; else counts, with those named that do not hold."""
    if not laws:
        return []
    if len(laws) <= MAX_LAWS:
        rows = [[law.law, counted(law.pairs, "pair"), law.verdict, law.detail] for law in laws]
        return ["", *_table([["law", "compared", "verdict", ""], *rows], colour)]
    verdicts = dict.fromkeys(("holds", "noise", "broken", "unable", "nothing", "skipped"), "")
    verdicts |= {law.verdict: "" for law in laws}
    told: list[str] = []
    for verdict in verdicts:
        names = [clean(law.law) for law in laws if law.verdict == verdict]
        if names:
            listed = "" if verdict in ("holds", "noise") else f" ({', '.join(names)})"
            told.append(f"{len(names)} {_toned(verdict, colour)}{listed}")
    return ["", f"{counted(len(laws), 'law')}: {', '.join(told)}"]


def law_lines(law: LawOutcome) -> Iterator[str]:
    """A law that does not hold: what was found, the counterexample, where and why. Not cleaned."""
    differing = f", {differ(law.differing, law.pairs, 'pair')}" if law.differing else ""
    yield f"law {law.law} is {law.verdict}{differing}: {law.sentence}"
    if law.detail:
        yield f"  {law.detail}"
    if law.follows:
        yield f"  law {law.follows} is broken, too, and may be all there is to this"
    if law.counterexample is not None:
        yield f"  counterexample: {law.counterexample.summary()}"
    yield from _diagnosis(law.diagnosis, positions=False)
    if law.counterexample is not None and law.counterexample.snippet:
        yield "  snippet to see it in a notebook: in the HTML report (--html FILE), and in --json"


def entry_lines(group: Sequence[Entry]) -> Iterator[str]:
    """What several entries show alike: findings, where and why, columns with worst rows. Not cleaned."""
    first = group[0]
    found = first.comparison
    names = ", ".join(entry.name for entry in group[:4])
    yield f"{names}{f' and {len(group) - 4} more' if len(group) > 4 else ''}, case {first.case}"
    if found is None:
        yield f"  {first.verdict}: {first.error}"
        return
    yield from (f"  {finding.message}" for finding in found.findings if finding.fails)
    yield from _diagnosis(first.diagnosis)
    columns = list(found.divergent())
    for place, column in enumerate(columns[:MAX_COLUMNS]):
        yield from _column(column, MAX_ROWS if place == 0 else 1)
    if len(columns) > MAX_COLUMNS:
        yield f"  ... and {counted(len(columns) - MAX_COLUMNS, 'more column')}"


def _diagnosis(found: Diagnosis | None, *, positions: bool = True) -> Iterator[str]:
    """Stage, column, rows and figures on a line; the cause with its evidence, or how many were ruled out."""
    if found is None:
        return
    parts = [f"first differs in {found.stage}" if found.stage else "the first differing stage is unknown"]
    if found.place:
        parts[0] += f" at {found.place}"
    if found.column:
        parts.append(f"column {found.column}")
    if found.rows and positions:
        parts.append(f"rows {rows_told(found.rows, 6)}")
    figures = sorted(found.figures.items(), key=lambda item: not item[0].startswith("max"))
    parts += [f"{name} {number(size)}" for name, size in figures[:3]]
    yield f"  {'; '.join(parts)}"
    if found.cause is not None:
        yield f"  cause: {found.cause.name}: {found.cause.sentence} ({found.cause.evidence})"
    elif found.ruled_out:
        tried = counted(len(found.ruled_out), "that was tried", "that were tried")
        yield f"  cause: none of the {tried} explains it"


def _verdict_line(report: CheckReport, colour: bool) -> str:
    far = f", worst {number(report.worst_ulp)} ulp" if report.worst_ulp is not None else ""
    broken = sum(law.verdict == "broken" for law in report.laws)
    laws = f", {broken} of {counted(len(report.laws), 'law')} broken" if broken else ""
    unable = sum(law.verdict == "unable" for law in report.laws)
    laws += f", {unable} could not be tried" if unable else ""
    rows, compared = counted(report.rows_compared, "row"), counted(len(report.entries), "comparison")
    done = f"{rows} in {compared}{far}{laws}, {report.seconds:.1f} s"
    return f"{_toned(report.verdict.upper(), colour, report.verdict)}: {done}"


def _column_cells(column: ColumnComparison) -> list[str]:
    shares = percent(column.identical, column.rows), percent(column.within, column.rows)
    return [column.name, str(column.rule), *shares, worst_of_column(column), column.verdict]


def _column(column: ColumnComparison, most: int) -> Iterator[str]:
    rows = counted(column.rows, "row")
    share = f"{column.failing} of {rows} outside {column.rule}"
    if column.verdict != "divergent":
        share = f"{column.rows - column.identical} of {rows} changed, all within {column.rule}"
    yield f"  {column.name} ({column.dtype}): {share}"
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
    yield from (f"    {remark}" for remark in remarks(column))
    for row in column.worst[:most]:
        name = f"row {row.row}" if row.key is None else f"row {row.row} (key {value(row.key)})"
        place = f" {row.where}" if row.where != column.name else ""
        far = f" ({number(row.ulp)} ulp)" if row.ulp is not None else f" ({row.reason})"
        sides = f"expected {value(row.expected)}, obtained {value(row.obtained)}"
        given = f"  input {_input(row.input)}" if row.input is not None else ""
        yield f"    {name}{place}: {sides}{far}{given}"


def _input(row: Mapping[str, object]) -> str:
    """The first fields of an input row, each cut short."""
    told = [f"{name}={value(item, 24)}" for name, item in list(row.items())[:4]]
    return " ".join([*told, "..."] if len(row) > 4 else told)


def _table(
    rows: Iterable[Sequence[str]], colour: bool, *, indent: str = "", right: tuple[int, ...] = ()
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


_WORDS = {*_TONES, "divergent", "crashed", "broken", "unable"}


def _toned(text: str, colour: bool, word: str = "") -> str:
    tone = _COLOURS[_TONES.get(word or text, "bad")]
    return f"\x1b[{tone}m{text}\x1b[0m" if colour else text


def _plain(lines: Iterable[str]) -> Iterator[str]:
    """The lines without characters that would move a cursor, cut where they would never end."""
    for line in lines:
        told = clean(line)
        yield told if len(told) <= MAX_LINE else f"{told[: MAX_LINE - 1]}…"
