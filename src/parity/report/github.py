"""A check report for GitHub Actions: a summary in Markdown for the job's page, and annotations for the log.

The escaping of workflow commands is that of actions/toolkit, packages/core/src/command.ts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from parity.errors import counted
from parity.report.advice import advice
from parity.report.diagnosed import rows_told
from parity.report.matrix import Cell, divergences, matrix
from parity.report.model import CheckReport, Entry
from parity.report.words import clean, number, percent, worst

if TYPE_CHECKING:
    from parity.laws.outcome import LawOutcome
    from parity.triage import Diagnosis

SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"

MAX_BYTES = 200_000
"""GitHub drops a step's summary beyond 1 MiB; several steps may write one."""

MAX_ANNOTATIONS = 10
"""GitHub shows no more errors than this of one step."""

MAX_DETAILED = 12
MAX_CODE = 20_000

_SIGNS = {
    "identical": "✅",
    "within": "✅",
    "agrees": "✅",
    "holds": "✅",
    "noise": "✅",
    "nothing": "⚠️",
    "nothing compared": "⚠️",
    "law without rows": "⚠️",
    "refused": "⛔",
    "skipped": "⏭️",
}


_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;", "#": "&#35;", **{c: f"\\{c}" for c in "\\`*_[]|~"}}
)


def summary(report: CheckReport) -> str:
    """The report as Markdown: verdict, matrix, each difference with its cause, what to do next."""
    far = f", worst {number(report.worst_ulp)} ulp" if report.worst_ulp is not None else ""
    lines = [
        f"## {_sign(report.verdict)} {_text(report.handler)} {_text(report.version)} {report.verdict}",
        "",
        f"Profile {_text(report.profile)}; {counted(report.rows_compared, 'row')} in "
        f"{counted(len(report.entries), 'comparison')}{far}; "
        f"{counted(report.pairs_compared, 'pair')} of answers over {counted(len(report.laws), 'law')}.",
        "",
        *_matrix(report),
    ]
    sections = [_law(law) for law in list(report.broken())[:MAX_DETAILED]]
    sections += [_entries(group) for group in divergences(report)[:MAX_DETAILED]]
    steps = [f"1. {_text(step)}" for step in advice(report)]
    ending = ["### What to do next", "", *steps, ""] if steps else []
    ending += [f"> {_text(note)}" for note in report.notes]
    room = MAX_BYTES - len("\n".join([*lines, *ending]).encode())
    for section in sections:
        room -= len("\n".join(section).encode())
        lines += section if room > 0 else []
    return "\n".join([*lines, *ending]) + "\n"


def commands(report: CheckReport, root: Path | None = None) -> list[str]:
    """Workflow commands that put errors beside the handler's file, at most `MAX_ANNOTATIONS`.

    `root` is the repository's folder, the working folder by default.
    """
    file = handler_file(report.reference, root or Path.cwd())
    found = [
        command("error", _law_message(law), file=file, title=f"law {law.law} {law.verdict}")
        for law in report.broken()
    ]
    for group in divergences(report):
        first = group[0]
        names = ", ".join(entry.name for entry in group)
        title = f"{names} {first.verdict} on case {first.case}"
        found.append(command("error", _entry_message(first), file=file, title=title))
    if report.exit_code and not found:
        found.append(command("error", " ".join(advice(report)), file=file, title=report.verdict))
    return found[:MAX_ANNOTATIONS]


def write_summary(report: CheckReport, path: str | Path) -> None:
    """Append the summary to the file that `GITHUB_STEP_SUMMARY` names."""
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(summary(report))


def command(kind: str, message: str, **properties: str) -> str:
    """One workflow command, such as `::error file=a.py,title=b::message`, without empty properties."""
    told = ",".join(f"{name}={_property(value)}" for name, value in properties.items() if value)
    return f"::{kind}{' ' if told else ''}{told}::{_data(message)}"


def handler_file(reference: str, root: Path) -> str:
    """The file of a handler's reference as annotations name it, below `root`; empty where there is none."""
    target = reference.partition(":")[0]
    if not target:
        return ""
    path = root / target
    if path.is_dir():
        path = path / "handler.py"
    if not path.is_file():
        return ""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


def _matrix(report: CheckReport) -> list[str]:
    found = matrix(report)
    if not found.checks:
        return []
    kinds = [f"law {_text(name)}" if kind == "law" else _text(name) for kind, name in found.checks]
    lines = [f"| | {' | '.join(_text(runner) for runner in found.runners)} |"]
    lines.append("|---" * (len(found.runners) + 1) + "|")
    for place, kind in enumerate(kinds):
        cells = [_cell(found.row(runner)[place]) for runner in found.runners]
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    return [*lines, ""]


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return ""
    beyond = cell.outside if cell.outside is not None else cell.differing
    counts = f"{beyond} of {cell.compared}" if cell.verdict in ("divergent", "broken") else str(cell.compared)
    return f"{_sign(cell.verdict)} {cell.verdict} {counts}"


def _law(law: LawOutcome) -> list[str]:
    lines = [f"### {_sign(law.verdict)} Law {_text(law.law)}: {law.verdict}", "", _text(law.sentence), ""]
    if law.detail:
        lines += [_text(law.detail), ""]
    lines += _diagnosis(law.diagnosis)
    if law.counterexample is None:
        return lines
    lines += [f"**Counterexample**: {_text(law.counterexample.summary()[:1500])}", ""]
    code = law.counterexample.snippet
    return lines + (_block(code, "python") if 0 < len(code) <= MAX_CODE else [])


def _entries(group: Sequence[Entry]) -> list[str]:
    first = group[0]
    names = ", ".join(entry.name for entry in group)
    lines = [f"### {_sign(first.verdict)} Case {_text(first.case)}: {_text(names)} {first.verdict}", ""]
    found = first.comparison
    if found is None:
        return [*lines, _text(first.error[:1500]), ""]
    lines += [f"- {_text(finding.message)}" for finding in found.findings if finding.fails]
    lines += _diagnosis(first.diagnosis)
    lines += ["| column | rule | identical | within | row | expected | obtained |", "|---" * 7 + "|"]
    for column in list(found.divergent())[:20]:
        shares = f"{percent(column.identical, column.rows)} | {percent(column.within, column.rows)}"
        row = next((row for row in column.worst if row.fails), None)
        sides = "| |" if row is None else f"{row.row} | {_code(row.expected)} | {_code(row.obtained)}"
        lines.append(f"| {_text(column.name)} | {_text(str(column.rule))} | {shares} | {sides} |")
    return [*lines, ""]


def _diagnosis(found: Diagnosis | None) -> list[str]:
    if found is None:
        return []
    where = f"First difference: **{found.stage}**" if found.stage else "First differing stage unknown"
    facts = [where + (f" at {_code(found.place)}" if found.place else "")]
    facts += [f"column {_code(found.column)}"] if found.column else []
    facts += [f"rows {rows_told(found.rows, 6)}"] if found.rows else []
    facts += [f"{_text(name)} {number(size)}" for name, size in found.figures.items()]
    lines = [f"{'; '.join(facts)}.", ""]
    if found.cause is not None:
        cause = found.cause
        lines += [f"**Cause, {_text(cause.name)}**: {_text(cause.sentence)} ({_text(cause.evidence)})", ""]
    return lines


def _law_message(law: LawOutcome) -> str:
    parts = [law.detail or law.sentence]
    if law.counterexample is not None:
        parts.append(law.counterexample.summary()[:600])
    return "\n".join([*parts, law.diagnosis.summary()] if law.diagnosis is not None else parts)


def _entry_message(entry: Entry) -> str:
    if entry.comparison is None:
        return entry.error
    parts = [f"{entry.comparison.summary()}; worst {worst(entry.comparison)}"]
    return "\n".join([*parts, entry.diagnosis.summary()] if entry.diagnosis is not None else parts)


def _sign(verdict: str) -> str:
    return _SIGNS.get(verdict, "❌")


def _text(item: str) -> str:
    """Text that Markdown and HTML leave alone, on one line; `@` and `#` start no mention."""
    return clean(item).translate(_ESCAPES)


def _code(item: object) -> str:
    return f"<code>{_text(str(item)[:80])}</code>"


def _block(code: str, language: str) -> list[str]:
    """A block of code in a fence that is longer than any inside it."""
    longest = max((len(run) for run in _runs(code)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language}", *(clean(line) for line in code.rstrip("\n").split("\n")), fence, ""]


def _runs(code: str) -> Iterable[str]:
    run = ""
    for char in code:
        run = run + char if char == "`" else ""
        yield run


def _data(message: str) -> str:
    lines = "\n".join(clean(line) for line in message.split("\n"))
    return lines.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _data(value).replace(":", "%3A").replace(",", "%2C")
