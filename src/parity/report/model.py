"""What `parity check` found, as frozen data: every runner on every golden case, and every law.

The verdict and the exit code follow from the data and from nothing else; what to do next is in `advice`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from parity.compare import Comparison
from parity.numerics import tells_change

if TYPE_CHECKING:
    from parity.laws.outcome import LawOutcome
    from parity.report.samples import Samples
    from parity.triage import Diagnosis

EntryVerdict = Literal["identical", "within", "divergent", "nothing", "crashed", "refused"]
CheckVerdict = Literal[
    "agrees",
    "diverges",
    "refused",
    "nothing compared",
    "law without rows",
    "runner crashed",
    "law unable",
    "nondeterministic",
]

EXIT_CODES: Mapping[CheckVerdict, int] = MappingProxyType(
    {
        "agrees": 0,
        "diverges": 1,
        "refused": 4,
        "nothing compared": 5,
        "law without rows": 5,
        "runner crashed": 6,
        "law unable": 6,
        "nondeterministic": 7,
    }
)

REPEATABLE = "repeatable"
"""The law whose breach means that the handler differs from itself under identical conditions."""


def _nothing() -> Mapping[str, str]:
    return MappingProxyType({})


@dataclass(frozen=True)
class Entry:
    """One runner on one golden case, through one wire form where the runner has several.

    Attributes:
        runner: the runner's name, or "engine".
        case: the golden case's name.
        wire: the wire form, where the runner has several.
        rows: the case's rows.
        comparison: what was found; None where the runner crashed or refused, and then `error` says how.
        seconds: the time that it took.
        error: why there is no comparison.
        recorded: the fingerprint that the case was recorded with.
        diagnosis: the first stage that differs, and why, where it was looked for.
        samples: values for plots and pictures, where they were kept.
        refused: whether the runner refused to answer, for its fingerprint or certificate.
    """

    runner: str
    case: str
    wire: str | None
    rows: int
    comparison: Comparison | None
    seconds: float
    error: str = ""
    recorded: Mapping[str, str] = field(default_factory=_nothing)
    diagnosis: Diagnosis | None = None
    samples: Samples | None = field(default=None, repr=False, compare=False)
    refused: bool = False

    @property
    def verdict(self) -> EntryVerdict:
        """The comparison's verdict; "crashed" or "refused" without one."""
        if self.comparison is None:
            return "refused" if self.refused else "crashed"
        return self.comparison.verdict

    @property
    def name(self) -> str:
        """The runner and its wire form, such as "online json"."""
        return f"{self.runner} {self.wire}" if self.wire else self.runner

    @property
    def ok(self) -> bool:
        """Whether nothing diverged, crashed or refused; no rows on both sides is fine here."""
        return self.verdict in ("identical", "within", "nothing")

    def to_dict(self) -> dict[str, object]:
        """The entry as JSON-ready data; the pictures of its samples by size only."""
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
            "diagnosis": None if self.diagnosis is None else self.diagnosis.to_dict(),
            "samples": None if self.samples is None else self.samples.to_dict(),
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
        """The gravest thing found.

        In this order: the handler differs from itself, a runner crashed, a law could not be tried, answers
        differ, a runner refused, nothing was compared, a law compared nothing. Laws alone can agree; where
        there are golden cases, at least one of their rows must have an answer that was compared.
        """
        broken = [law for law in self.laws if law.verdict == "broken"]
        verdicts = {entry.verdict for entry in self.entries}
        if any(law.law == REPEATABLE for law in broken):
            return "nondeterministic"
        if "crashed" in verdicts:
            return "runner crashed"
        if any(law.verdict == "unable" for law in self.laws):
            return "law unable"
        if broken or "divergent" in verdicts:
            return "diverges"
        if "refused" in verdicts:
            return "refused"
        tried = self.answers_compared if self.entries else self.pairs_compared
        if not tried:
            return "nothing compared"
        return "law without rows" if any(law.verdict == "nothing" for law in self.laws) else "agrees"

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
    def answers_compared(self) -> int:
        """Those of `rows_compared` that have an answer; the others are expected to fail."""
        found = (entry.comparison for entry in self.entries)
        return sum(
            comparison.rows - comparison.errors_expected
            for comparison in found
            if comparison is not None and comparison.verdict != "nothing"
        )

    @property
    def pairs_compared(self) -> int:
        """Pairs of answers compared over all laws that came to a verdict."""
        return sum(law.pairs for law in self.laws if law.verdict in ("holds", "noise", "broken"))

    @property
    def worst_ulp(self) -> float | None:
        """The largest distance in ulp over all entries; None where no floats were compared."""
        found = (entry.comparison.worst_ulp for entry in self.entries if entry.comparison is not None)
        return max((distance for distance in found if distance is not None), default=None)

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
        """The entries that diverged, crashed or refused."""
        return (entry for entry in self.entries if not entry.ok)

    def broken(self) -> Iterator[LawOutcome]:
        """The laws that are broken or could not be tried, the former first."""
        for verdict in ("broken", "unable"):
            yield from (law for law in self.laws if law.verdict == verdict)

    def fingerprint_changes(self) -> dict[str, tuple[str, str]]:
        """What differs between the recording of any case and this run: name to (recorded, now).

        What counts is what `numerics.tells_change` says.
        """
        changes: dict[str, tuple[str, str]] = {}
        for entry in self.entries:
            for name in [*entry.recorded, *(self.fingerprint if entry.recorded else ())]:
                then, now = entry.recorded.get(name), self.fingerprint.get(name)
                if tells_change(name, then, now):
                    changes.setdefault(name, (then or "absent", now or "absent"))
        return changes

    def to_dict(self) -> dict[str, object]:
        """The report as JSON-ready data."""
        return {
            "handler": self.handler,
            "version": self.version,
            "profile": self.profile,
            "reference": self.reference,
            "verdict": self.verdict,
            "exit_code": self.exit_code,
            "rows_compared": self.rows_compared,
            "pairs_compared": self.pairs_compared,
            "seconds": self.seconds,
            "entries": [entry.to_dict() for entry in self.entries],
            "laws": [law.to_dict() for law in self.laws],
            "fingerprint": dict(self.fingerprint),
            "fingerprint_changes": {name: list(sides) for name, sides in self.fingerprint_changes().items()},
            "notes": list(self.notes),
        }
