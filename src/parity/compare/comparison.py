"""What a comparison found, as frozen data that serialises to JSON.

Nothing here compares; `compare` in `tables` builds these. Row numbers are positions in the expected table,
from 0, unless a name says `obtained_row`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Literal, cast

import numpy as np
import numpy.typing as npt

from parity.compare.rules import Rule
from parity.compare.tolerances import ERROR_COLUMN
from parity.errors import did_you_mean

Verdict = Literal["identical", "within", "divergent", "nothing"]
"""identical: the same bits everywhere; within: the rules allow what differs; nothing: no row was compared."""

ColumnVerdict = Literal["identical", "within", "divergent", "ignored"]

FindingKind = Literal[
    "missing_column",
    "extra_column",
    "column_order",
    "dtype",
    "shape",
    "timezone",
    "nullability",
    "metadata",
    "row_count",
    "missing_rows",
    "extra_rows",
    "duplicate_keys",
    "row_order",
    "error_text",
    "left_out",
]

Rows = npt.NDArray[np.int64]

MAX_ROWS = 100_000
"""How many row numbers a comparison of files keeps of each column; counts are always those of all rows."""


def _no_rows() -> Rows:
    return np.empty(0, np.int64)


@dataclass(frozen=True)
class Finding:
    """A difference of structure: in names, types or row counts, found before any value is looked at.

    A finding with `fails=False` is a note: worth seeing, no divergence.
    """

    kind: FindingKind
    message: str
    column: str = ""
    expected: str = ""
    obtained: str = ""
    fails: bool = True


@dataclass(frozen=True)
class Spread:
    """One measure of error over all compared elements, equal ones included.

    Quantiles are values that occur, never interpolated. The mean is over finite distances.
    """

    largest: float = 0.0
    mean: float = 0.0
    q50: float = 0.0
    q90: float = 0.0
    q99: float = 0.0


@dataclass(frozen=True)
class Distances:
    """How far the floats of a column lie apart, over the elements that are finite on both sides.

    `ulp` counts units in the last place of the narrower of the two dtypes at the element's scale, and `rel`
    divides by that scale; see `Close`. `histogram` holds (k, count) for distances in [2**k, 2**(k+1)) ulp;
    elements that differ by nothing are not in it. `needed_ulp` is the smallest whole `ulp` that would pass,
    None when none would, as when a value is null, NaN or infinite on one side only. `exact` is False where so
    many elements differ that quantiles are those of buckets, each at most 1/128 too small.
    """

    elements: int
    differing: int
    abs: Spread
    rel: Spread
    ulp: Spread
    needed_ulp: int | None
    histogram: tuple[tuple[int, int], ...]
    exact: bool = True


@dataclass(frozen=True)
class WorstRow:
    """One of the rows that differ most, with the values of both sides where they differ most.

    `where` is the place inside the row's value, such as `scores[3]`; `input` the input row when inputs were
    given. Long values are cut for display.
    """

    row: int
    obtained_row: int
    where: str
    expected: object
    obtained: object
    reason: str
    fails: bool
    ulp: float | None = None
    key: object = None
    input: Mapping[str, object] | None = None


@dataclass(frozen=True)
class ColumnComparison:
    """The verdict on one column: rows bit-identical, rows within the rule, and the rest.

    `float_dtypes` are those its floats are measured in, at any depth.
    `failing` rows are outside the rule; `allowed` of them the rule's row budget forgives. `comparable` is
    False when the types are too different for the values to be compared, and then every row fails. The row
    numbers of failing and of differing rows are ascending; a comparison of files keeps the first `MAX_ROWS`.
    """

    name: str
    dtype: str
    rule: Rule
    rows: int
    identical: int
    within: int
    failing: int
    allowed: int = 0
    comparable: bool = True
    structure_fails: bool = False
    null_mismatches: int = 0
    length_mismatches: int = 0
    non_finite_mismatches: int = 0
    negative_zeros: int = 0
    nan_payloads: int = 0
    ties: int = 0
    float_dtypes: tuple[str, ...] = ()
    distances: Distances | None = None
    worst: tuple[WorstRow, ...] = ()
    failing_rows: Rows = field(default_factory=_no_rows, repr=False, compare=False)
    differing_rows: Rows = field(default_factory=_no_rows, repr=False, compare=False)

    @property
    def verdict(self) -> ColumnVerdict:
        """Divergent when the structure fails or more rows fail than the budget allows."""
        if self.structure_fails or self.failing > self.allowed:
            return "divergent"
        if self.rule.kind == "ignore":
            return "ignored"
        return "identical" if self.identical == self.rows else "within"

    @property
    def worst_ulp(self) -> float | None:
        """The largest distance in ulp; None without floats, inf for NaN or infinity on one side."""
        if self.distances is None:
            return None
        return math.inf if self.non_finite_mismatches else self.distances.ulp.largest


@dataclass(frozen=True)
class Comparison:
    """Everything that comparing two tables found; true when they agree and at least one row was compared.

    `rows` is the number of row pairs compared, `failing` of which fail in any column, whatever the budgets,
    and `differing` are not bit-identical. `failing_rows` and `differing_rows` are their row numbers; a
    comparison of files keeps the first `MAX_ROWS` of them.
    """

    expected_rows: int
    obtained_rows: int
    rows: int
    columns: tuple[ColumnComparison, ...]
    findings: tuple[Finding, ...] = ()
    errors_expected: int = 0
    errors_obtained: int = 0
    failing_rows: Rows = field(default_factory=_no_rows, repr=False, compare=False)
    differing_rows: Rows = field(default_factory=_no_rows, repr=False, compare=False)
    failing: int = -1
    differing: int = -1

    def __post_init__(self) -> None:
        if self.failing < 0:
            object.__setattr__(self, "failing", len(self.failing_rows))
        if self.differing < 0:
            object.__setattr__(self, "differing", len(self.differing_rows))

    def __bool__(self) -> bool:
        return self.verdict in ("identical", "within")

    @property
    def verdict(self) -> Verdict:
        """Divergent when a finding or column fails; nothing when no row or no column was compared.

        That no row failed is no comparison where every column of answers is ignored.
        """
        if any(finding.fails for finding in self.findings):
            return "divergent"
        verdicts = {column.verdict for column in self.columns}
        if "divergent" in verdicts:
            return "divergent"
        values = {column.verdict for column in self.columns if column.name != ERROR_COLUMN} or verdicts
        if self.rows == 0 or not values - {"ignored"}:
            return "nothing"
        return "within" if "within" in verdicts else "identical"

    @property
    def identical_rows(self) -> int:
        """Row pairs whose compared columns all have the same bits."""
        return self.rows - self.differing

    @property
    def within_rows(self) -> int:
        """Row pairs that every column's rule accepts."""
        return self.rows - self.failing

    @property
    def worst_ulp(self) -> float | None:
        """The largest distance in ulp over all columns, None when none holds floats."""
        distances = [column.worst_ulp for column in self.columns if column.worst_ulp is not None]
        return max(distances, default=None)

    def column(self, name: str) -> ColumnComparison:
        """The verdict on column `name`; raises KeyError with near names."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(
            f"no column {name!r} was compared; {did_you_mean(name, [c.name for c in self.columns])}"
        )

    def divergent(self) -> Iterator[ColumnComparison]:
        """The columns that diverge, in table order."""
        return (column for column in self.columns if column.verdict == "divergent")

    def summary(self) -> str:
        """The verdict in one line."""
        if self.verdict == "nothing":
            return "nothing compared"
        ignored = ", ".join(column.name for column in self.columns if column.verdict == "ignored")
        unread = f"; not compared: {ignored}" if ignored else ""
        if self.verdict == "identical":
            return f"{self.rows} rows bit-identical{unread}"
        if self.verdict == "within":
            return f"{self.rows} rows within tolerance, {self.identical_rows} of them bit-identical{unread}"
        parts = [finding.message for finding in self.findings if finding.fails]
        parts += [
            f"{column.name}: {column.failing} of {column.rows} rows differ" for column in self.divergent()
        ]
        return "; ".join(parts[:3]) + (f"; and {len(parts) - 3} more" if len(parts) > 3 else "")

    def to_dict(self) -> dict[str, object]:
        """The comparison as JSON-ready data, with the row numbers of failing rows cut to the first 100."""
        return {
            "verdict": self.verdict,
            "rows": self.rows,
            "expected_rows": self.expected_rows,
            "obtained_rows": self.obtained_rows,
            "identical_rows": self.identical_rows,
            "within_rows": self.within_rows,
            "failing": self.failing,
            "errors_expected": self.errors_expected,
            "errors_obtained": self.errors_obtained,
            "findings": [_plain(finding) for finding in self.findings],
            "columns": [
                {**cast("dict[str, object]", _plain(column)), "verdict": column.verdict}
                for column in self.columns
            ],
            "failing_rows": self.failing_rows[:100].tolist(),
        }


def _plain(value: object) -> object:
    """Frozen data as dicts and lists; a non-finite float as its name, since JSON has no number for it."""
    if isinstance(value, Rule):
        return value.to_dict()
    if isinstance(value, np.ndarray):
        return cast("Rows", value)[:100].tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, Finding | Spread | Distances | WorstRow | ColumnComparison):
        return {option.name: _plain(getattr(value, option.name)) for option in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast("list[object]", value)]
    return value
