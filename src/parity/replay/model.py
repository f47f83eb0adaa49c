"""What a replay of recorded traffic found, as frozen data that serialises to JSON. Nothing here compares."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Literal, cast

from parity.compare import Rule
from parity.errors import DivergenceError, NothingComparedError

Verdict = Literal["agrees", "drifts", "nothing compared"]
ColumnVerdict = Literal["identical", "within", "divergent", "ignored", "nothing"]


@dataclass(frozen=True)
class Traffic:
    """The recorded rows that were asked for.

    Attributes:
        folder: the capture.
        parts: how many parts they lie in.
        rows: how many there are.
        lost_rows: rows that the server could not record, as its parts say.
        first: the time of the first row, ISO 8601 in UTC; empty without rows.
        last: of the last.
        handlers: `name version` of what answered, with the number of rows, in the order of their first rows.
        rates: the shares of requests that were recorded.
        keeps_errors: whether failed rows were recorded beside the sample, so that there are more than usual.
        hidden: columns that were dropped or hashed.
        refused_requests: recorded requests with rows that did not fit the schema; they are not asked again.
        refused_rows: how many such rows they had.
    """

    folder: str
    parts: int
    rows: int
    lost_rows: int = 0
    first: str = ""
    last: str = ""
    handlers: Mapping[str, int] = field(default_factory=dict[str, int])
    rates: tuple[float, ...] = ()
    keeps_errors: bool = False
    hidden: tuple[str, ...] = ()
    refused_requests: int = 0
    refused_rows: int = 0


@dataclass(frozen=True)
class NotReplayable:
    """Rows that could not be asked again, and why."""

    reason: str
    rows: int


@dataclass(frozen=True)
class Slice:
    """The rows of one hour, version or profile.

    Attributes:
        name: such as "2026-11-29 21:00" or "1.0.0".
        rows: compared.
        differing: not bit-identical.
        failing: outside the tolerance of some column, or failed on one side only.
        flips: with another label.
        one_sided: failed on one side only, or in another way.
    """

    name: str
    rows: int
    differing: int
    failing: int
    flips: int
    one_sided: int


@dataclass(frozen=True)
class ColumnDrift:
    """One answer column: how many rows kept their bits, how many the rule accepts, how many not.

    `allowed` failing rows the rule's budget forgives. `largest_abs` and `largest_ulp` are None without
    floats; `needed_ulp` is the smallest `ulp` that would pass, None where none would.
    """

    name: str
    dtype: str
    rule: Rule
    rows: int
    identical: int
    within: int
    failing: int
    allowed: int = 0
    null_mismatches: int = 0
    largest_abs: float | None = None
    largest_ulp: float | None = None
    needed_ulp: int | None = None
    structure_fails: bool = False

    @property
    def verdict(self) -> ColumnVerdict:
        """Divergent when the structure fails or more rows fail than the budget allows."""
        if self.structure_fails or self.failing > self.allowed:
            return "divergent"
        if self.rule.kind == "ignore":
            return "ignored"
        if not self.rows:
            return "nothing"
        return "identical" if self.identical == self.rows else "within"


@dataclass(frozen=True)
class LabelDrift:
    """A column of labels: how many rows have another one now, and which became which.

    Attributes:
        column: its name.
        of_scores: whether the label is the place of the largest score of a vector.
        rows: compared.
        flips: rows whose label changed.
        pairs: (recorded, replayed, rows) for the most frequent changes, most first.
        other: flipped rows that `pairs` leaves out.
    """

    column: str
    of_scores: bool
    rows: int
    flips: int
    pairs: tuple[tuple[str, str, int], ...] = ()
    other: int = 0


@dataclass(frozen=True)
class ScoreDrift:
    """A column of numbers: which way and how far it moved, and what that did to the order of the rows.

    Shifts are replayed - recorded, over rows that are finite on both sides. The median and the quantiles are
    over `sampled` of the rows, drawn at random, where that is fewer than `rows`; so are the correlations, of
    which Kendall's is over at most 2000.

    Attributes:
        column: its name.
        rows: compared.
        up: rows that moved up.
        down: rows that moved down.
        mean_recorded: the mean as recorded.
        mean_replayed: the mean now.
        mean_shift: the mean shift.
        median_shift: the median shift.
        quantiles: (share, shift), such as (0.05, -0.01).
        largest_shift: the shift that is farthest from 0.
        spearman: rank correlation; 1 when the order is the same, None where a side is constant.
        kendall: Kendall's tau-b, likewise.
        top: (k, share of the recorded top k that is still in it).
        sampled: see above.
    """

    column: str
    rows: int
    up: int
    down: int
    mean_recorded: float
    mean_replayed: float
    mean_shift: float
    median_shift: float
    quantiles: tuple[tuple[float, float], ...]
    largest_shift: float
    spearman: float | None
    kendall: float | None
    top: tuple[tuple[int, float], ...]
    sampled: int

    @property
    def moved(self) -> bool:
        """Whether any row moved at all."""
        return bool(self.up or self.down)


@dataclass(frozen=True)
class FailureDrift:
    """Rows that failed on one side only, or in another way.

    Attributes:
        only_recorded: failed when recorded, answered now.
        only_replayed: answered when recorded, fail now.
        other_kind: failed both times, for another kind of reason.
        messages: (message, rows) of what fails now only, most first.
        requests: ids of some requests that fail now only.
        both: failed both times.
    """

    only_recorded: int = 0
    only_replayed: int = 0
    other_kind: int = 0
    messages: tuple[tuple[str, int], ...] = ()
    requests: tuple[str, ...] = ()
    both: int = 0


@dataclass(frozen=True)
class WorstRow:
    """One of the rows that drifted most, with its request and both values where they differ most."""

    request_id: str
    row: int
    time: str
    version: str
    column: str
    where: str
    recorded: object
    replayed: object
    reason: str
    fails: bool
    ulp: float | None = None
    input: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True)
class DriftReport:
    """Everything a replay found; true when the answers agree and at least one row was compared.

    Attributes:
        handler: the handler that answered now.
        version: its version.
        reference: what it was loaded by.
        runner: the runner.
        wire: the wire form.
        traffic: the rows that were asked for.
        rows: the rows that were compared.
        not_replayable: the others, by reason.
        columns: the answers, column by column, `_error` among them.
        findings: differences of structure that fail: a column that is gone, or of another type.
        notes: what else is worth knowing.
        labels: columns of labels.
        scores: columns of numbers.
        failures: rows that failed on one side only.
        hours: by hour of the recording, in order.
        versions: by version that was recorded.
        profiles: by profile that was recorded.
        worst: the rows that drifted most, failing ones first.
        seconds: how long the replay took.
    """

    handler: str
    version: str
    reference: str
    runner: str
    wire: str
    traffic: Traffic
    rows: int
    not_replayable: tuple[NotReplayable, ...] = ()
    columns: tuple[ColumnDrift, ...] = ()
    findings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    labels: tuple[LabelDrift, ...] = ()
    scores: tuple[ScoreDrift, ...] = ()
    failures: FailureDrift = FailureDrift()
    hours: tuple[Slice, ...] = ()
    versions: tuple[Slice, ...] = ()
    profiles: tuple[Slice, ...] = ()
    worst: tuple[WorstRow, ...] = ()
    seconds: float = 0.0

    def __bool__(self) -> bool:
        return self.verdict == "agrees"

    @property
    def verdict(self) -> Verdict:
        """Nothing compared without answers: no rows, all failed both times, or no column was compared."""
        if self.findings or any(column.verdict == "divergent" for column in self.columns):
            return "drifts"
        values = {column.verdict for column in self.columns if column.name != "_error"}
        return (
            "agrees"
            if self.rows > self.failures.both and values - {"ignored", "nothing"}
            else "nothing compared"
        )

    @property
    def exit_code(self) -> int:
        """0, 1 or 5, as `parity.errors` has them."""
        codes = {"drifts": DivergenceError.exit_code, "nothing compared": NothingComparedError.exit_code}
        return codes.get(self.verdict, 0)

    @property
    def failing_rows(self) -> int:
        """Rows outside the tolerance of some column, or failed on one side only."""
        return sum(part.failing for part in self.hours)

    @property
    def differing_rows(self) -> int:
        """Rows that are not bit-identical."""
        return sum(part.differing for part in self.hours)

    @property
    def rows_not_replayed(self) -> int:
        """Rows that could not be asked again."""
        return sum(item.rows for item in self.not_replayable)

    def to_dict(self) -> dict[str, object]:
        """The report as JSON-ready data."""
        found = cast("dict[str, object]", _plain(self))
        columns = cast("list[dict[str, object]]", found["columns"])
        for plain, column in zip(columns, self.columns, strict=True):
            plain["verdict"] = column.verdict
        return {
            "verdict": self.verdict,
            "exit_code": self.exit_code,
            "failing_rows": self.failing_rows,
            "differing_rows": self.differing_rows,
            **found,
        }


def _plain(value: object) -> object:
    """Frozen data as dicts and lists; a non-finite float as its name, since JSON has no number for it."""
    if isinstance(value, Rule):
        return value.to_dict()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if is_dataclass(value):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast("list[object]", value)]
    return value
