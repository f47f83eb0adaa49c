"""What a job did, as data."""

from __future__ import annotations

import resource
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Summary:
    """What a job did.

    Attributes:
        output: the output folder.
        handler: name and version, "films@1.0.0".
        files: the input files.
        rows: the rows of the output, one for each input row.
        row_errors: the rows that failed, by kind; they are in the output with null outputs, and in `_errors`.
        parts: the part files.
        resumed_parts: the parts that an earlier run had finished.
        scored_rows: the rows that this run scored.
        seconds: how long this run took, loading included.
        rows_per_s: scored rows for each second of scoring, loading excluded.
        step_seconds: time spent in each step of scoring, summed over workers.
        peak_rss_bytes: the most memory that a process of the job had in use.
        engine: what spread the units.
        notes: what differed between files and was made one by rule.
        skipped_files: the files that could not be read and were left out, whole or in part, with the reason.
    """

    output: str
    handler: str
    files: int
    rows: int
    row_errors: Mapping[str, int]
    parts: int
    resumed_parts: int
    scored_rows: int
    seconds: float
    rows_per_s: float
    step_seconds: Mapping[str, float]
    peak_rss_bytes: int
    engine: str = "local"
    notes: Sequence[str] = ()
    skipped_files: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def failed_rows(self) -> int:
        """The rows that have an error in place of an answer."""
        return sum(self.row_errors.values())

    def to_dict(self) -> dict[str, Any]:
        """The summary as JSON has it."""
        return asdict(self)

    def describe(self) -> str:
        """The summary in a few lines for people."""
        lines = [f"{self.rows:,} rows of {self.files:,} files scored by {self.handler} into {self.output}"]
        resumed = f", {self.resumed_parts:,} of them from an earlier run" if self.resumed_parts else ""
        speed = f"{self.rows_per_s:,.0f} rows/s" if self.scored_rows else "nothing was left to do"
        lines.append(f"{self.parts:,} parts{resumed}; {speed}, {self.seconds:.1f} s in all")
        if self.failed_rows:
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in self.row_errors.items())
            lines.append(f"{self.failed_rows:,} rows failed ({kinds}); see {self.output}/_errors")
        lines += [f"skipped: {problem}" for problem in self.skipped_files.values()]
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)


def peak_rss_bytes() -> int:
    """The most memory that this process has had in use.

    From /proc where there is one: `getrusage` also counts what the parent had in use when it forked.
    """
    try:
        for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
