"""What a probe found out about one bucket, as frozen data."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal

DEFAULT_BUCKETS: Final = (1, 2, 4, 8, 16, 32, 64, 96, 128)
"""What is tried when nothing else is asked for: one row, vector widths, and multiples of 16 and 32."""

Verdict = Literal["holds", "position", "length", "neighbours", "nondeterministic", "process", "failed"]

_WORDS: Mapping[Verdict, str] = {
    "holds": "every row got the same bits at every position and beside every neighbour",
    "position": "a row's bits depend on its position within one shape",
    "length": "a row's bits depend on the longest row of its batch, which decides the shape",
    "neighbours": "a row's bits depend on the other rows of its batch, or on how many they are",
    "nondeterministic": "the same batch asked again got other bits",
    "process": "a second process gave other bits",
    "failed": "no row has an answer at this bucket",
}

NEIGHBOUR: Final = "neighbour "
"""How the names of the tests with hostile neighbours begin; the kind of neighbour follows."""

ROUNDING_ULP: Final = 1024.0
"""Differences up to this size, at column scale, are called rounding; larger ones are a mistake's."""


@dataclass(frozen=True)
class BucketFinding:
    """One bucket tried.

    Attributes:
        bucket: the number of rows that inference saw at once.
        verdict: whether rows keep their bits, or the first thing that they depend on.
        rows: the rows that were compared.
        comparisons: how often a row's bits were compared with those of its first run.
        rows_differing: the rows that got other bits at least once.
        positions_differing: the positions at which a copy of a row got other bits than at the first, in a
            batch of nothing but copies.
        ulp: the largest difference of the first ones found, in units in the last place at column scale;
            infinite where no float differs, or a NaN on one side only.
        stage: the first stage that differs, "" where none does.
        tests: for each test that found differences, how many comparisons differed.
        lengths: where inference was given several trailing shapes, those that gave the same bits, grouped.
        ms_per_batch: milliseconds that a full batch takes, all stages, at best; also what a lone row costs.
        reason: why rows failed, for the verdict "failed".
    """

    bucket: int
    verdict: Verdict
    rows: int
    comparisons: int = 0
    rows_differing: int = 0
    positions_differing: int = 0
    ulp: float = 0.0
    stage: str = ""
    tests: Mapping[str, int] = field(default_factory=dict[str, int])
    lengths: tuple[tuple[str, ...], ...] = ()
    ms_per_batch: float = 0.0
    reason: str = ""

    @property
    def holds(self) -> bool:
        """Whether every comparison found the same bits."""
        return self.verdict == "holds"

    @property
    def is_beyond_rounding(self) -> bool:
        """Whether floats differ by far more than another order of additions explains."""
        return not self.holds and math.isfinite(self.ulp) and self.ulp > ROUNDING_ULP

    @property
    def ms_per_row(self) -> float:
        """Milliseconds a row, in a full batch."""
        return self.ms_per_batch / self.bucket

    def sentence(self) -> str:
        """What was found, with its figures."""
        if self.verdict == "failed":
            return f"bucket {self.bucket}: {_WORDS['failed']}: {self.reason}"
        if self.holds:
            return f"bucket {self.bucket}: {_WORDS['holds']}, {self.comparisons} comparisons"
        return f"bucket {self.bucket}: {_WORDS[self.verdict]}: {self._figures()}"

    def _figures(self) -> str:
        parts = [f"{self.rows_differing} of {self.rows} rows differ"]
        if self.positions_differing:
            parts.append(f"copies of a row differ at {self.positions_differing} of {self.bucket} positions")
        if self.ulp and math.isfinite(self.ulp):
            size = f"by up to {self.ulp:.3g} ulp"
            parts.append(f"{size}, far more than rounding" if self.is_beyond_rounding else size)
        if self.stage:
            parts.append(f"first in {self.stage}")
        seen: Counter[str] = Counter()
        for name, count in self.tests.items():
            seen["hostile neighbours" if name.startswith(NEIGHBOUR) else name] += count
        told = ", ".join(f"{name} {count}" for name, count in seen.items())
        return f"{', '.join(parts)} (by test: {told})" if told else ", ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """The finding as JSON-ready data; an infinite ulp is null."""
        found = {item.name: getattr(self, item.name) for item in fields(self)}
        found["tests"] = dict(self.tests)
        found["lengths"] = [list(group) for group in self.lengths]
        found["ulp"] = self.ulp if math.isfinite(self.ulp) else None
        return found

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> BucketFinding:
        """The finding that `to_dict` gave; raises KeyError or TypeError where it is none."""
        found = dict(data)
        found["lengths"] = tuple(tuple(group) for group in data["lengths"])
        found["ulp"] = math.inf if data["ulp"] is None else float(data["ulp"])
        return BucketFinding(**found)
