"""What `parity check` found, as frozen data: every runner on every golden case, and every law.

The verdict and the exit code follow from the data and from nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from parity.compare import Comparison

if TYPE_CHECKING:
    from parity.laws.outcome import LawOutcome

EntryVerdict = Literal["identical", "within", "divergent", "nothing", "crashed"]
CheckVerdict = Literal["agrees", "diverges", "nothing compared", "runner crashed", "nondeterministic"]

EXIT_CODES: Mapping[CheckVerdict, int] = MappingProxyType(
    {"agrees": 0, "diverges": 1, "nothing compared": 5, "runner crashed": 6, "nondeterministic": 7}
)

REPEATABLE = "repeatable"
"""The law whose breach means that the handler differs from itself under identical conditions."""

LARGEST_NOISE = 1e-3
"""The relative distance up to which rounding may explain a difference: ten bits of significand."""


def _nothing() -> Mapping[str, str]:
    return MappingProxyType({})


@dataclass(frozen=True)
class Entry:
    """One runner on one golden case, through one wire form where the runner has several.

    `comparison` is None where the runner failed to start or crashed, and then `error` says how. `recorded`
    is the fingerprint that the case was recorded with.
    """

    runner: str
    case: str
    wire: str | None
    rows: int
    comparison: Comparison | None
    seconds: float
    error: str = ""
    recorded: Mapping[str, str] = field(default_factory=_nothing)

    @property
    def verdict(self) -> EntryVerdict:
        """The comparison's verdict, or "crashed"."""
        return "crashed" if self.comparison is None else self.comparison.verdict

    @property
    def name(self) -> str:
        """The runner and its wire form, such as "online json"."""
        return f"{self.runner} {self.wire}" if self.wire else self.runner

    @property
    def ok(self) -> bool:
        """Whether nothing diverged or crashed; no rows on both sides is fine here."""
        return self.verdict in ("identical", "within", "nothing")

    def to_dict(self) -> dict[str, object]:
        """The entry as JSON-ready data."""
        return {
            "runner": self.runner,
            "case": self.case,
            "wire": self.wire,
            "rows": self.rows,
            "seconds": self.seconds,
            "verdict": self.verdict,
            "error": self.error,
            "comparison": None if self.comparison is None else self.comparison.to_dict(),
            "recorded": dict(self.recorded),
        }


@dataclass(frozen=True)
class CheckReport:
    """All that one check found. `reference` is the handler as the user named it, for commands to repeat."""

    handler: str
    version: str
    profile: str
    fingerprint: Mapping[str, str]
    entries: tuple[Entry, ...]
    laws: tuple[LawOutcome, ...] = ()
    reference: str = ""
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> CheckVerdict:
        """The gravest thing found: nondeterminism, a crash, a divergence, nothing compared."""
        broken = [law for law in self.laws if law.verdict == "broken"]
        if any(law.law == REPEATABLE for law in broken):
            return "nondeterministic"
        if any(entry.verdict == "crashed" for entry in self.entries):
            return "runner crashed"
        if broken or any(entry.verdict == "divergent" for entry in self.entries):
            return "diverges"
        return "agrees" if self.rows_compared else "nothing compared"

    @property
    def exit_code(self) -> int:
        """The exit code of the verdict, see `EXIT_CODES`."""
        return EXIT_CODES[self.verdict]

    @property
    def rows_compared(self) -> int:
        """Rows compared over all entries, of those where any column was."""
        found = (entry.comparison for entry in self.entries)
        return sum(
            comparison.rows
            for comparison in found
            if comparison is not None and comparison.verdict != "nothing"
        )

    @property
    def seconds(self) -> float:
        """The time that the runners took together."""
        return sum(entry.seconds for entry in self.entries)

    def runners(self) -> list[str]:
        """Runner names with wire forms, in the order of the entries."""
        return list(dict.fromkeys(entry.name for entry in self.entries))

    def cases(self) -> list[str]:
        """Case names, in the order of the entries."""
        return list(dict.fromkeys(entry.case for entry in self.entries))

    def failures(self) -> Iterator[Entry]:
        """The entries that diverged or crashed."""
        return (entry for entry in self.entries if not entry.ok)

    def fingerprint_changes(self) -> dict[str, tuple[str, str]]:
        """What differs between the recording of any case and this run: name to (recorded, now)."""
        changes: dict[str, tuple[str, str]] = {}
        for entry in self.entries:
            for name in [*entry.recorded, *(self.fingerprint if entry.recorded else ())]:
                sides = entry.recorded.get(name, "absent"), self.fingerprint.get(name, "absent")
                if sides[0] != sides[1]:
                    changes.setdefault(name, sides)
        return changes

    def to_dict(self) -> dict[str, object]:
        """The report as JSON-ready data."""
        return {
            "handler": self.handler,
            "version": self.version,
            "profile": self.profile,
            "verdict": self.verdict,
            "exit_code": self.exit_code,
            "rows_compared": self.rows_compared,
            "seconds": self.seconds,
            "entries": [entry.to_dict() for entry in self.entries],
            "laws": [law.to_dict() for law in self.laws],
            "fingerprint": dict(self.fingerprint),
            "fingerprint_changes": {name: list(sides) for name, sides in self.fingerprint_changes().items()},
            "next": advice(self),
            "notes": list(self.notes),
        }


def advice(report: CheckReport) -> list[str]:
    """What to do next, one sentence each, the most telling first; empty when all agrees."""
    if report.verdict == "agrees":
        return []
    if report.verdict == "nothing compared":
        command = f"parity golden record {_ref(report)} ROWS --case NAME"
        return [f"Record a golden case with at least one row: {command}"]
    found: list[str] = []
    if report.verdict == "nondeterministic":
        found.append(
            "Make the handler repeatable first (seeds, eval mode, state, clock): the rest may follow."
        )
    found += [
        f"Runner {e.name} failed on case {e.case}: {e.error}"
        for e in report.entries
        if e.verdict == "crashed"
    ]
    found += _who_differs(report)
    found += _what_would_pass(report)
    broken = [law.law for law in report.laws if law.verdict == "broken" and law.law != REPEATABLE]
    if broken:
        found.append(f"Look at the counterexample of law {broken[0]!r}: the fewest rows that break it.")
    if report.fingerprint_changes() and any(report.failures()):
        names = list(report.fingerprint_changes())
        found.append(f"Since the recording these changed, which may be the cause: {', '.join(names[:6])}.")
    return found


def _who_differs(report: CheckReport) -> Iterator[str]:
    for case in report.cases():
        entries = [entry for entry in report.entries if entry.case == case and entry.comparison is not None]
        wrong = [entry.name for entry in entries if entry.verdict == "divergent"]
        if wrong and len(wrong) == len(entries) and len(entries) > 1:
            yield (
                f"Every runner differs from case {case!r}: the handler, its artifacts or a library changed "
                f"since it was recorded. If that is intended: parity golden update {_ref(report)}"
            )
        elif wrong:
            right = [entry.name for entry in entries if entry.name not in wrong]
            agree = f"; {', '.join(right)} agree{'s' if len(right) == 1 else ''}" if right else ""
            yield f"Case {case!r} differs in {', '.join(wrong)}{agree}: compare the worst rows' inputs there."


def _what_would_pass(report: CheckReport) -> Iterator[str]:
    """The ulp each divergent column needs, or that its distance is beyond what rounding explains."""
    needed: dict[str, int] = {}
    far: dict[str, float] = {}
    for entry in report.failures():
        for column in entry.comparison.divergent() if entry.comparison is not None else ():
            if column.distances is not None and column.distances.needed_ulp and not column.structure_fails:
                needed[column.name] = max(needed.get(column.name, 0), column.distances.needed_ulp)
                far[column.name] = max(far.get(column.name, 0.0), column.distances.rel.largest)
    for name, ulp in list(needed.items())[:3]:
        if far[name] <= LARGEST_NOISE:
            yield (
                f"Column {name!r} would pass with ulp = {ulp}. Only if you know why the bits differ, "
                f'declare it in handler.toml: [tolerance.{name}] kind = "close", ulp = {ulp}'
            )
        else:
            yield (
                f"Column {name!r} is off by {far[name]:.1%} of its scale: no float noise, "
                "so look for a cause, not for a tolerance."
            )


def _ref(report: CheckReport) -> str:
    return report.reference or report.handler
