"""What a suspected cause is examined on, and what may come of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa

from parity.result import ERROR_COLUMN
from parity.stages import Traces, Value
from parity.triage.checks import ORDER, Comparisons
from parity.triage.dependence import Dependence, batchmates, fewer
from parity.triage.model import Divergence, Side, Stage
from parity.triage.trials import Run, Trials
from parity.triage.values import Pair, alike, places_of

Group = Literal["company", "path", "process", "contract"]
"""What a law varies: whom and what a row is asked with; the way it takes; the process; what is declared."""

_GROUPS: Final[Mapping[str, Group]] = {
    **dict.fromkeys(("repeatable", "batch-size", "neighbours", "order", "history", "concurrency"), "company"),
    **dict.fromkeys(("single-row", "empty-batch", "failing-rows", "eval-mode"), "company"),
    **dict.fromkeys(("process", "clock"), "process"),
    **dict.fromkeys(("inputs-untouched", "declared-access", "declared-outputs"), "contract"),
}

Values = Sequence[Value | None]
Change = Callable[[Value], Value | None]

_SIDES: Final = ("expected", "obtained")

MAX_ROWS: Final = 64
MAX_ELEMENTS: Final = 4_000_000


@dataclass(frozen=True)
class Explained:
    """The evidence explains the difference.

    Attributes:
        evidence: what was tried, and what came of it.
        sentence: what to say in place of the catalogue's sentence.
        stage: the stage to blame, where the evidence shows that an earlier one is than the values do.
    """

    evidence: str
    sentence: str = ""
    stage: Stage | None = None


@dataclass(frozen=True)
class Refuted:
    """The cause was tried and does not explain the difference."""

    why: str


Finding = Explained | Refuted | None
"""What comes of examining a cause; None where it cannot be meant, such as channels where no image is."""


@dataclass(frozen=True)
class Suspect:
    """A cause in the catalogue.

    Attributes:
        name: how reports call it.
        sentence: what it is, in words for the user.
        gathers: the evidence that is gathered.
        remedy: what to do about it.
        examine: looks for the evidence.
        groups: the kinds of law that it can break.
    """

    name: str
    sentence: str
    gathers: str
    remedy: str
    examine: Callable[[Case], Finding]
    groups: tuple[Group, ...] = ("path",)


@dataclass(frozen=True)
class Removed:
    """A change to one side's values that makes them the other side's.

    Attributes:
        pair: the place.
        rows: how many rows it was seen on.
        changed: the side that was changed.
    """

    pair: Pair
    rows: int
    changed: Literal["expected", "obtained"]

    @property
    def words(self) -> str:
        """Where and on how many rows."""
        other = "obtained" if self.changed == "expected" else "expected"
        row = "row" if self.rows == 1 else "rows"
        return (
            f"of {self.pair.place} on the {self.changed} side equal the {other} side on {self.rows} of "
            f"{self.rows} differing {row}"
        )


class Case:
    """A divergence with its stages compared.

    Args:
        divergence: the rows, and what either way gave.
        compared: the stages compared.
        trials: what asks the handler again; None without an engine.
    """

    def __init__(self, divergence: Divergence, compared: Comparisons, trials: Trials | None) -> None:
        self.divergence = divergence
        self.compared = compared
        self.trials = trials

    @property
    def law(self) -> str:
        """The law that is broken."""
        return self.divergence.law

    @property
    def group(self) -> Group:
        """What the law varies."""
        return _GROUPS.get(self.law, "path")

    @property
    def stage(self) -> Stage | None:
        """The first stage that diverges."""
        first = self.compared.first
        return None if first is None else first.check.stage

    @property
    def sides(self) -> tuple[Side, Side]:
        """Expected and obtained."""
        return self.divergence.expected, self.divergence.obtained

    @property
    def traces(self) -> tuple[Traces | None, Traces | None]:
        """The traces of expected and obtained, aligned with the rows."""
        return self.compared.expected, self.compared.obtained

    @cached_property
    def pairs(self) -> list[Pair]:
        """The places of the first stage that diverge, worst first; of the answers where no stage is known."""
        first = self.compared.first
        found = self.compared.answers if first is None else first.pairs
        failing = [item for item in found if item.failing]
        return failing or [item for item in found if item.differing]

    @cached_property
    def failing(self) -> tuple[int, ...]:
        """The rows that diverge in the first stage that does."""
        return tuple(sorted({row for item in self.pairs for row in item.failing or item.differing}))

    @cached_property
    def values(self) -> list[Pair]:
        """The diverging places whose rows have values on both sides, errors left out; at most four."""
        return [item for item in self.pairs if item.place != ERROR_COLUMN and item.both][:4]

    @cached_property
    def inputs(self) -> Mapping[str, Values]:
        """The rows by place."""
        return places_of(self.divergence.rows)

    @cached_property
    def error_rows(self) -> tuple[set[int], set[int]]:
        """The rows that failed on the expected, and on the obtained side."""
        found: list[set[int]] = []
        for side in self.sides:
            answers = side.answers
            errors: list[Any] = (
                answers.column(ERROR_COLUMN).to_pylist() if ERROR_COLUMN in answers.column_names else []
            )
            found.append({row for row, error in enumerate(errors) if error is not None})
        return found[0], found[1]

    def rows_of(self, item: Pair) -> list[int]:
        """The failing rows of a pair with values on both sides, as many as can be looked at in no time."""
        both = set(item.both)
        rows = [row for row in item.failing or item.differing if row in both]
        size = max((_size(item.expected[row]) for row in rows), default=1)
        return rows[: max(1, min(MAX_ROWS, MAX_ELEMENTS // max(1, size)))]

    def covers(self, item: Pair) -> bool:
        """Whether every row that diverges in this stage diverges at this place, with values on both sides."""
        both = set(item.both)
        return set(self.failing) <= {row for row in item.failing or item.differing if row in both}

    def removed_by(self, change: Change) -> Removed | None:
        """The side on which the change removes the difference on every row, if it does; see `Removed`."""
        for item in self.values:
            if not self.covers(item):
                continue
            rows = self.rows_of(item)
            for side in ("expected", "obtained"):
                one, other = (
                    (item.expected, item.obtained) if side == "expected" else (item.obtained, item.expected)
                )
                if rows and all(_becomes(change, one[row], other[row]) for row in rows):
                    return Removed(item, len(rows), side)
        return None

    def sources(self, item: Pair) -> dict[str, tuple[Values, Values]]:
        """What the stage may have made the place's values of: earlier places by name, on both sides."""
        found: dict[str, tuple[Values, Values]] = {}
        one, other = self.traces
        if one is not None and other is not None:
            for stage in ("inference", "preprocess"):
                if self.stage is not None and ORDER.index(stage) >= ORDER.index(self.stage):
                    continue
                theirs = other.stage(stage)
                found |= {
                    f"{stage}'s {place}": (values, theirs[place])
                    for place, values in one.stage(stage).items()
                    if place in theirs
                }
        if self.stage != "decode":
            found |= {f"input {name!r}": (values, values) for name, values in self.inputs.items()}
        del item
        return found

    @cached_property
    def dependence(self) -> Dependence | None:
        """The first diverging row under other company; None without an engine or a batch."""
        if self.trials is None or not self.failing:
            return None
        row = self.failing[0]
        place = next((item.place for item in self.pairs if row in (item.failing or item.differing)), "")
        stage = self.stage
        if place == ERROR_COLUMN:
            stage, columns = None, self.sides[0].answers.column_names
            place = next((name for name in columns if name != ERROR_COLUMN), place)
        whole = batchmates(self.divergence, row)
        small = [few for mates in whole for few in fewer(mates)]
        found = [Dependence(self.trials, mates, stage, place) for mates in [*small, *whole]]
        return next((item for item in found if item.depends), found[len(small)] if whole else None)

    @property
    def company(self) -> Dependence | None:
        """The first diverging row, where its value does depend on its batch when asked again."""
        found = self.dependence
        return found if found is not None and found.depends else None

    @cached_property
    def side_of_engine(self) -> Literal["expected", "obtained"] | None:
        """The side whose answers the engine gives, asked as one batch; None for neither and for both."""
        if self.trials is None:
            return None
        run = self.trials.run(self.divergence.rows)
        return None if run is None else self.side_like(run, range(self.divergence.rows.num_rows))

    def side_like(
        self, run: Run, rows: Sequence[int], *, answers: bool = False
    ) -> Literal["expected", "obtained"] | None:
        """The side whose values a run of `rows` gives where they diverge; None for neither and for both.

        The values of the first stage that diverges and the answers count; with `answers` these alone.
        """
        at = {row: position for position, row in enumerate(rows)}
        told = [item for item in self.compared.answers if item.place != ERROR_COLUMN or answers]

        def is_side(side: str, stage: Stage | None, pairs: Sequence[Pair]) -> bool:
            return all(
                self._same_at(stage, item, side, row, run, at[row])
                for item in pairs
                for row in (item.failing or item.differing)[:MAX_ROWS]
                if row in at
            )

        early = [] if answers else self.pairs
        agree = [is_side(side, None, told) and is_side(side, self.stage, early) for side in _SIDES]
        if agree[0] == agree[1]:
            return None
        return "expected" if agree[0] else "obtained"

    def given(
        self, change: Callable[[pa.Table], pa.Table | None], rows: Sequence[int] | None = None
    ) -> int | None:
        """Ask the engine the diverging rows with their inputs changed.

        Returns:
            The number of rows, where with changed inputs the engine gives the side that it does not give
            otherwise, on all of them; None where it does not, and where there is no engine.
        """
        which = list(self.failing[:MAX_ROWS] if rows is None else rows)
        side = self._side_given(change, which)
        return len(which) if side is not None and side != self.side_of_engine else None

    def indifferent(self, change: Callable[[pa.Table], pa.Table | None]) -> int | None:
        """Ask the engine the diverging rows with their inputs changed.

        Returns:
            The number of rows, where the engine gives the same values with changed inputs: it does not tell
            what the change changes, while the other side does. None where it does, and without an engine.
        """
        which = list(self.failing[:MAX_ROWS])
        side = self._side_given(change, which)
        return len(which) if side is not None and side == self.side_of_engine else None

    def _side_given(
        self, change: Callable[[pa.Table], pa.Table | None], which: Sequence[int]
    ) -> Literal["expected", "obtained"] | None:
        """The side whose values the engine gives to rows with changed inputs; None for neither."""
        if self.side_of_engine is None or self.trials is None or not which:
            return None
        picked = self.divergence.rows.take(pa.array(list(which)))
        changed = change(picked)
        if changed is None or changed.equals(picked):
            return None
        run = self.trials.run(changed)
        return None if run is None else self.side_like(run, which)

    def _same_at(self, stage: Stage | None, item: Pair, side: str, row: int, run: Run, position: int) -> bool:
        values = run.at(stage, item.place)
        target = (item.expected if side == "expected" else item.obtained)[row]
        found = values[position] if position < len(values) else None
        if found is None or target is None:
            return found is target
        return alike(found, target)


def _becomes(change: Change, one: Value | None, other: Value | None) -> bool:
    """Whether the change takes one value to the other, and the two are not alike without it."""
    if one is None or other is None or alike(one, other):
        return False
    changed = change(one)
    return changed is not None and alike(changed, other)


def _size(value: Value | None) -> int:
    return 0 if value is None else value.size


def of_rows(count: int, what: str = "rows") -> str:
    """A count of rows in words, such as "all 3 rows"."""
    return "the one row" if count == 1 else f"all {count} {what}"


def numbers(values: Values, rows: Sequence[int]) -> Value | None:
    """The numbers of some rows in one array, rows first; None where they are no numbers of one shape."""
    picked = [values[row] for row in rows]
    kept = [value for value in picked if value is not None]
    if not kept or len(kept) != len(picked) or len({value.shape for value in kept}) > 1:
        return None
    if any(value.dtype.kind not in "biuf" for value in kept):
        return None
    return np.stack(kept).astype(np.float64)


def number_pairs(case: Case) -> list[Pair]:
    """The diverging places that hold numbers, and on which every diverging row differs."""
    return [item for item in case.values if _is_number(item) and case.covers(item)]


def is_float(item: Pair) -> bool:
    """Whether both sides of a place hold floats."""
    row = item.both[0]
    return all(
        value is not None and value.dtype.kind == "f" for value in (item.expected[row], item.obtained[row])
    )


def _is_number(item: Pair) -> bool:
    return all(
        value is not None and value.dtype.kind in "biuf"
        for row in item.both[:1]
        for value in (item.expected[row], item.obtained[row])
    )
