"""What a job did, as data."""

from __future__ import annotations

import resource
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from parity.errors import counted
from parity.memory import peak_bytes
from parity.sizing import Sizing
from parity_batch.progress import size

_STEPS = {
    "read": ("reading the inputs", "fewer --columns, or storage that reads faster, would help"),
    "decode": ("decoding values", "columns that already have the fields' types decode without a copy"),
    "preprocess": ("preprocess", "work on whole columns there, or overlap it with more --preprocess-workers"),
    "inference": ("inference, the model itself", "another device, precision or --batch-rows would help"),
    "postprocess": ("postprocess", "give arrays, not lists of Python values, from there"),
    "write": ("writing the parts", "fewer --columns, or a disk that writes faster, would help"),
}
"""How each step is called in a sentence, and what may make it shorter."""

_TELLING_S = 2.0
"""The workers' time from which on its shares tell where more rows would spend theirs.

Of a shorter job much is what happens once: files opened first, code that is loaded when it is first called.
"""


@dataclass(frozen=True)
class Summary:
    """What a job did.

    Attributes:
        output: the output folder.
        handler: name and version, "films@1.0.0".
        files: the input files, those that were left out included.
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
        batch_rows: rows in a micro-batch.
        sizing: how these were decided, where they were to be measured.
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
    batch_rows: int = 0
    sizing: Sizing | None = None

    @property
    def failed_rows(self) -> int:
        """The rows that have an error in place of an answer."""
        return sum(self.row_errors.values())

    @property
    def shares(self) -> dict[str, float]:
        """The share of each step in the workers' time, the largest first."""
        whole = sum(self.step_seconds.values())
        if whole <= 0:
            return {}
        ordered = sorted(self.step_seconds.items(), key=lambda item: -item[1])
        return {step: spent / whole for step, spent in ordered}

    @property
    def bottleneck(self) -> str:
        """What takes most of the workers' time, and what may help; empty of a job too short to tell."""
        if sum(self.step_seconds.values()) < _TELLING_S:
            return ""
        for step, share in self.shares.items():
            return f"{share:.0%} of the workers' time went to {_STEPS.get(step, (step, ''))[0]}" + (
                f"; {advice}" if (advice := _STEPS.get(step, ("", ""))[1]) else ""
            )
        return ""

    def to_dict(self) -> dict[str, Any]:
        """The summary as JSON has it."""
        sizing = None if self.sizing is None else self.sizing.to_json()
        return {**asdict(self), "sizing": sizing, "bottleneck": self.bottleneck}

    def describe(self) -> str:
        """The summary in a few lines for people."""
        of_files = files_told(self.files, len(self.skipped_files))
        lines = [f"{counted(self.rows, 'row')} of {of_files} scored by {self.handler} into {self.output}"]
        resumed = f", {self.resumed_parts:,} of them from an earlier run" if self.resumed_parts else ""
        idle = "nothing was left to do" if self.resumed_parts else "there were no rows"
        speed = f"{self.rows_per_s:,.0f} rows/s" if self.scored_rows else idle
        lines.append(f"{counted(self.parts, 'part')}{resumed}; {speed}, {self.seconds:.1f} s in all")
        if self.step_seconds:
            memory = f"at most {size(self.peak_rss_bytes)} in use"
            lines.append("; ".join(filter(None, (self.bottleneck, memory))))
        if self.failed_rows:
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in self.row_errors.items())
            lines.append(f"{counted(self.failed_rows, 'row')} failed ({kinds}); see {self.output}/_errors")
        if self.sizing is not None:
            lines.append(f"--batch-rows {self.sizing}")
        lines += [f"skipped: {problem}" for problem in self.skipped_files.values()]
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)


def files_told(files: int, skipped: int) -> str:
    """How many files, for a headline, which must not call a job done that left some of them out."""
    left_out = f" ({skipped:,} of them left out, whole or in part, see below)" if skipped else ""
    return counted(files, "file") + left_out


def peak_rss_bytes() -> int:
    """The most memory that this process has had in use.

    From /proc where there is one: `getrusage` also counts what the parent had in use when it forked.
    """
    return peak_bytes() or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
