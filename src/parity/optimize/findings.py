"""What came of one candidate profile, and of all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from parity.optimize.pacing import Pace
from parity.profile import Profile

Verdict = Literal["accepted", "diverges", "slower", "unclear", "too slow", "off", "failed"]
"""accepted: proved and faster; diverges: its answers are others; slower: by the interval it misses the wanted
speed-up; unclear: time was over before that was clear; too slow: the 99th percentile is above the limit;
off: it cannot run here; failed: it could not be loaded, or a law could not be tried."""


@dataclass(frozen=True)
class Tried:
    """A candidate, and what came of it.

    Attributes:
        name: the backend, and what else it changes.
        settings: `KEY=VALUE` texts over the profile that was to be replaced.
        profile: the profile.
        verdict: see `Verdict`.
        reason: why it was not accepted.
        pace: its speed, where its answers were proved.
        worst_ulp: the largest distance of a golden answer, in units in the last place.
        flips: golden rows of which an answer that is no float differs, such as a label.
        rows: golden rows that were compared.
        memory_mb: the peak memory of a process that loads it and scores the golden rows.
        proof: the check's report, as JSON-ready data.
    """

    name: str
    settings: tuple[str, ...]
    profile: Profile
    verdict: Verdict
    reason: str = ""
    pace: Pace | None = None
    worst_ulp: float | None = None
    flips: int = 0
    rows: int = 0
    memory_mb: float | None = None
    proof: Mapping[str, object] | None = None

    def to_dict(self) -> dict[str, object]:
        """The candidate as JSON-ready data, without its proof."""
        return {
            "name": self.name,
            "settings": list(self.settings),
            "verdict": self.verdict,
            "reason": self.reason,
            "pace": None if self.pace is None else self.pace.to_dict(),
            "worst_ulp": self.worst_ulp,
            "flips": self.flips,
            "rows": self.rows,
            "memory_mb": self.memory_mb,
        }


@dataclass(frozen=True)
class Optimization:
    """What came of all candidates.

    Attributes:
        handler: the handler's name.
        version: its version.
        base: the profile that was to be replaced.
        target: "latency" or "throughput".
        batch_rows: the rows of the batches that were measured.
        goal: the speed-up that was wanted.
        base_memory_mb: the peak memory of a process with the base profile.
        tried: the candidates, in the order in which they were tried.
    """

    handler: str
    version: str
    base: Profile
    target: str
    batch_rows: int
    goal: float
    base_memory_mb: float | None
    tried: tuple[Tried, ...]

    @property
    def winner(self) -> Tried | None:
        """The accepted candidate that is faster than the others by the lower end of its interval."""
        accepted = [(item.pace.low, item) for item in self.tried if item.verdict == "accepted" and item.pace]
        return max(accepted, key=lambda pair: pair[0])[1] if accepted else None

    @property
    def exit_code(self) -> int:
        """0 where a candidate was accepted, 1 where none was, 5 where none could be tried."""
        if self.winner is not None:
            return 0
        return 1 if any(item.verdict not in ("off", "failed") for item in self.tried) else 5

    def to_dict(self) -> dict[str, object]:
        """All of it as JSON-ready data."""
        winner = self.winner
        return {
            "handler": self.handler,
            "version": self.version,
            "profile": self.base.name,
            "target": self.target,
            "batch_rows": self.batch_rows,
            "goal": self.goal,
            "memory_mb": self.base_memory_mb,
            "tried": [item.to_dict() for item in self.tried],
            "winner": None if winner is None else winner.name,
            "exit_code": self.exit_code,
        }
