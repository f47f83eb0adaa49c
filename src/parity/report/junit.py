"""A check report as JUnit XML: a suite for each runner, a test for each golden case, and one for each law.

Valid under the schema of Ant's JUnit report, the strictest of those in use; see its copy at
github.com/windyroad/JUnit-Schema. A suite "check" has one test, which fails where nothing was compared: a
report that proves nothing is never green.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal
from xml.etree import ElementTree

from parity.report.advice import advice
from parity.report.model import CheckReport, Entry
from parity.report.terminal import entry_lines, law_lines
from parity.report.words import clean

if TYPE_CHECKING:
    from parity.laws.outcome import LawOutcome

MAX_TEXT = 20_000

Outcome = Literal["failure", "error", "skipped", ""]

_ENTRIES: dict[str, Outcome] = {
    "divergent": "failure",
    "crashed": "error",
    "refused": "error",
    "nothing": "failure",
}
_LAWS: dict[str, Outcome] = {
    "broken": "failure",
    "unable": "error",
    "nothing": "skipped",
    "skipped": "skipped",
}


@dataclass(frozen=True)
class _Test:
    name: str
    seconds: float
    outcome: Outcome = ""
    word: str = ""
    message: str = ""
    lines: tuple[str, ...] = ()


def render(report: CheckReport, when: datetime | None = None) -> str:
    """The report as JUnit XML; `when` the check was made, now by default."""
    moment = (when or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%S")
    root = ElementTree.Element("testsuites")
    suites: list[tuple[str, list[_Test]]] = [
        (runner, [_entry(entry) for entry in report.entries if entry.name == runner])
        for runner in report.runners()
    ]
    if report.laws:
        suites.append(("laws", [_law(law) for law in report.laws]))
    suites.append(("check", [_whole(report)]))
    for place, (name, tests) in enumerate(suites):
        _suite(root, report, place, name, tests, moment)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _suite(
    root: ElementTree.Element, report: CheckReport, place: int, name: str, tests: Sequence[_Test], moment: str
) -> None:
    counts = {kind: sum(test.outcome == kind for test in tests) for kind in ("failure", "error", "skipped")}
    attributes = {
        "package": _token(f"parity.{report.handler}"),
        "id": str(place),
        "name": _token(name),
        "timestamp": moment,
        "hostname": "localhost",
        "tests": str(len(tests)),
        "failures": str(counts["failure"]),
        "errors": str(counts["error"]),
        "skipped": str(counts["skipped"]),
        "time": f"{sum(test.seconds for test in tests):.3f}",
    }
    suite = ElementTree.SubElement(root, "testsuite", attributes)
    properties = ElementTree.SubElement(suite, "properties")
    for key, value in {"version": report.version, "profile": report.profile, **report.fingerprint}.items():
        ElementTree.SubElement(properties, "property", {"name": _token(key), "value": clean(value)})
    for test in tests:
        classname = _token(f"parity.{report.handler}.{name}")
        case = ElementTree.SubElement(
            suite,
            "testcase",
            {"name": _token(test.name), "classname": classname, "time": f"{test.seconds:.3f}"},
        )
        if test.outcome == "skipped":
            ElementTree.SubElement(case, "skipped", {"message": _short(test.message)})
        elif test.outcome:
            told = ElementTree.SubElement(
                case, test.outcome, {"message": _short(test.message), "type": test.word}
            )
            told.text = "\n".join(clean(line) for line in test.lines)[:MAX_TEXT]
    ElementTree.SubElement(suite, "system-out")
    ElementTree.SubElement(suite, "system-err")


def _entry(entry: Entry) -> _Test:
    outcome = _ENTRIES.get(entry.verdict, "")
    message = entry.error if entry.comparison is None else entry.comparison.summary()
    return _Test(
        entry.case, entry.seconds, outcome, entry.verdict, message, _told(outcome, entry_lines([entry]))
    )


def _law(law: LawOutcome) -> _Test:
    outcome = _LAWS.get(law.verdict, "")
    return _Test(
        law.law, 0.0, outcome, law.verdict, law.detail or law.sentence, _told(outcome, law_lines(law))
    )


def _whole(report: CheckReport) -> _Test:
    steps = tuple(advice(report))
    if report.verdict != "nothing compared":
        return _Test("something was compared", 0.0)
    return _Test("something was compared", 0.0, "failure", report.verdict, "nothing was compared", steps)


def _told(outcome: Outcome, lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(lines) if outcome in ("failure", "error") else ()


def _token(name: str) -> str:
    """The name without spaces at its ends or double ones inside, and never empty."""
    return " ".join(clean(name).split()) or "-"


def _short(message: str) -> str:
    return clean(message)[:1000]
