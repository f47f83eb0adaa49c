"""A row asked alone, in its batch, among copies of itself and beside changed neighbours.

What a row's value depends on shows in which of these agree. Each is asked once and remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa

from parity.engine import Engine
from parity.examples import example_batch
from parity.stages import Value, row_digests
from parity.triage.model import Divergence, Stage
from parity.triage.trials import Run, Trials
from parity.triage.values import alike

Values = Sequence[Value | None]

_FEW: Final = 8
"""Rows of a batch that is looked at row by row, where so few show the dependence."""

_ALONE: Final = 96
"""Rows that are each asked alone, at most."""


@dataclass(frozen=True)
class Batchmates:
    """A batch and the row in it that is looked at.

    Attributes:
        rows: the batch.
        place: the row's place in it.
    """

    rows: pa.Table
    place: int

    @property
    def row(self) -> pa.Table:
        """The row, alone."""
        return self.rows.slice(self.place, 1)

    @property
    def others(self) -> list[int]:
        """The places of its neighbours."""
        return [place for place in range(self.rows.num_rows) if place != self.place]


def batchmates(divergence: Divergence, row: int) -> list[Batchmates]:
    """The batches in which a row of a divergence was asked on the two sides, the larger one first."""
    batches: list[Batchmates] = []
    sides = sorted(
        (divergence.obtained, divergence.expected),
        key=lambda side: 0 if side.company is None else side.company.num_rows,
        reverse=True,
    )
    for side in sides:
        if side.company is None:
            continue
        if row < len(side.places):
            batches.append(Batchmates(side.company, side.places[row]))
            continue
        digest = row_digests(divergence.rows.slice(row, 1))[0]
        found = [place for place, other in enumerate(row_digests(side.company)) if other == digest]
        if found:
            batches.append(Batchmates(side.company, found[-1] if side is divergence.obtained else found[0]))
    if not batches and divergence.rows.num_rows > 1:
        batches.append(Batchmates(divergence.rows, row))
    return batches


def fewer(mates: Batchmates) -> Iterator[Batchmates]:
    """The row with some of its neighbours, in their order, of a batch too large to look at each of them."""
    rows, place = mates.rows.num_rows, mates.place
    if rows <= _FEW:
        return
    step = max(1, rows // (_FEW - 1))
    for picked in (
        range(max(0, place - _FEW // 2), min(rows, place + _FEW // 2)),
        range(_FEW - 1),
        range(0, rows, step),
    ):
        places = sorted({*picked, place})[: _FEW + 1]
        if place in places:
            yield Batchmates(mates.rows.take(pa.array(places)), places.index(place))


class Dependence:
    """One row's value at one place of one stage, under other company.

    Args:
        trials: what asks the handler.
        mates: the batch, and the row in it.
        stage: the stage to look at; None for the answers.
        place: the place in its value.
    """

    def __init__(self, trials: Trials, mates: Batchmates, stage: Stage | None, place: str) -> None:
        self.trials = trials
        self.mates = mates
        self.stage: Stage | None = stage
        self.place = place

    def values(self, rows: pa.Table, engine: Engine | None = None) -> Values | None:
        """Each row's value in a batch; None where the batch cannot be asked."""
        run = self.trials.run(rows, engine)
        return None if run is None else self.of(run)

    def of(self, run: Run) -> Values:
        """Each row's value in a run; where it has none, that it has none, by the kind of its error."""
        values = list(run.at(self.stage, self.place))
        for row, error in enumerate(run.errors):
            if error is not None:
                values[row] = np.asarray(f"fails: {error['stage']}")
        return values

    @cached_property
    def alone(self) -> Value | None:
        """The row's value alone."""
        found = self.values(self.mates.row)
        return None if found is None else found[0]

    @cached_property
    def together_run(self) -> Run | None:
        """The whole batch asked."""
        return self.trials.run(self.mates.rows)

    @cached_property
    def together(self) -> Value | None:
        """The row's value in its batch."""
        run = self.together_run
        return None if run is None else self.of(run)[self.mates.place]

    @cached_property
    def differs(self) -> bool:
        """Whether the batch makes a difference to the row, as it did when it was found."""
        return not equal(self.alone, self.together)

    @cached_property
    def steady(self) -> bool:
        """Whether the row gets the same value again, alone and in its batch."""
        for _ in range(2):
            alone, together = self.values(self.mates.row), self.values(self.mates.rows)
            if alone is None or together is None:
                return False
            if not equal(alone[0], self.alone) or not equal(together[self.mates.place], self.together):
                return False
        return True

    @cached_property
    def depends(self) -> bool:
        """Whether the row's value depends on its batch, and on nothing that changes by itself."""
        return self.differs and self.steady

    def copies(self, count: int) -> Values | None:
        """The values in a batch of copies of the row."""
        if count not in self._copies:
            rows = self.mates.row.take(pa.array([0] * count))
            self._copies[count] = self.values(rows)
        return self._copies[count]

    @cached_property
    def _copies(self) -> dict[int, Values | None]:
        return {}

    @property
    def size(self) -> int:
        """The rows of the batch."""
        return self.mates.rows.num_rows

    @cached_property
    def copies_are_alone(self) -> bool:
        """Whether among as many copies of itself the row gets its value alone, at every place."""
        values = self.copies(self.size)
        return values is not None and all(equal(value, self.alone) for value in values)

    @cached_property
    def copies_are_together(self) -> bool:
        """Whether among as many copies of itself the row gets the value that it gets in its batch."""
        values = self.copies(self.size)
        return values is not None and equal(values[self.mates.place], self.together)

    @cached_property
    def copies_are_equal(self) -> bool:
        """Whether copies of the row get one value, whatever their place."""
        values = self.copies(max(self.size, 3))
        return values is not None and all(equal(value, values[0]) for value in values)

    def beside(self, change: Callable[[pa.Table], pa.Table | None]) -> Value | None:
        """The row's value in its batch with its neighbours changed; the row itself stays."""
        changed = change(self.mates.rows)
        if changed is None:
            return None
        rows = _put_back(changed, self.mates)
        found = self.values(rows)
        return None if found is None else found[self.mates.place]

    @cached_property
    def beside_strangers(self) -> Value | None:
        """The row's value beside as many example rows in place of its neighbours."""
        strangers = self.strangers.cast(self.mates.rows.schema)
        return self.beside(lambda rows: strangers.take(pa.array([at % 4 for at in range(rows.num_rows)])))

    def value_of(self, rows: pa.Table, place: int) -> Value | None:
        """The value of the row at a place of another batch."""
        values = self.values(rows)
        return None if values is None else values[place]

    def at(self, order: Sequence[int]) -> Value | None:
        """The row's value with its batch in another order, or only in part; the row must be in it once."""
        found = self.values(self.mates.rows.take(pa.array(list(order))))
        return None if found is None else found[list(order).index(self.mates.place)]

    @cached_property
    def strangers(self) -> pa.Table:
        """Example rows of the schema, unlike those of the batch."""
        return example_batch(self.trials.loaded.inputs, 4, seed=11).to_table()

    @cached_property
    def wide(self) -> Batchmates:
        """The batch, with example rows behind it where it is too small to show an order."""
        if self.size >= 5:
            return self.mates
        rows = pa.concat_tables([self.mates.rows, self.strangers.cast(self.mates.rows.schema)])
        return Batchmates(rows, self.mates.place)

    @cached_property
    def wide_values(self) -> tuple[Values, Values] | None:
        """Each row of the wide batch alone, and in it."""
        return self.values_of_wide(range(self.wide.rows.num_rows))

    def values_of_wide(self, order: Sequence[int]) -> tuple[Values, Values] | None:
        """Each row of the wide batch in another order: alone, and in the batch."""
        rows = self.wide.rows.take(pa.array(list(order)))
        together = self.values(rows)
        alone = [self.values(rows.slice(row, 1)) for row in range(min(rows.num_rows, _ALONE))]
        if together is None or any(value is None for value in alone):
            return None
        return [value[0] for value in alone if value is not None], together[: len(alone)]

    @cached_property
    def columns(self) -> list[str]:
        """The columns that are responsible: with the row's own values for its neighbours', all is well.

        The fewest of them where a single one suffices, and all that differ otherwise.
        """
        names = self.mates.rows.column_names
        single = [name for name in names if self._without(name)]
        return single or names

    def _without(self, name: str) -> bool:
        return equal(self.beside(lambda rows: with_own(rows, [name], self.mates.place)), self.alone)


def equal(one: Value | None, other: Value | None) -> bool:
    """Whether two values are the same but for float noise; nothing equals nothing."""
    if one is None or other is None:
        return one is other
    return alike(one, other)


def fails(value: Value | None) -> bool:
    """Whether a value of `Dependence.of` says that the row failed."""
    return (
        value is not None and value.ndim == 0 and value.dtype.kind == "U" and str(value).startswith("fails")
    )


def with_own(rows: pa.Table, names: Sequence[str], place: int) -> pa.Table:
    """The rows with the values of some columns all like those at `place`."""
    for name in names:
        index = rows.schema.get_field_index(name)
        column = rows.column(name).take(pa.array([place] * rows.num_rows))
        rows = rows.set_column(index, rows.schema.field(index), column)
    return rows


def with_values(rows: pa.Table, name: str, change: Callable[[Any], Any]) -> pa.Table | None:
    """The rows with each value of a column changed; None where what comes does not fit the column."""
    index = rows.schema.get_field_index(name)
    field = rows.schema.field(index)
    try:
        values = pa.array([change(value) for value in rows.column(name).to_pylist()], field.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
    return rows.set_column(index, field, cast("Any", values))


def _put_back(rows: pa.Table, mates: Batchmates) -> pa.Table:
    before, behind = rows.slice(0, mates.place), rows.slice(mates.place + 1)
    return pa.concat_tables([before, mates.row, behind])


def shows(dependence: Dependence, engine: Engine) -> bool:
    """Whether an engine gives the row other values again, in its batch or at another place than alone."""
    mates = dependence.mates
    asked = [
        (mates.row, [0]),
        (mates.row, [0]),
        (mates.rows, [mates.place]),
        (mates.row.take(pa.array([0] * 4)), [0, 1, 2, 3]),
        (mates.rows, [mates.place]),
    ]
    found: list[Value | None] = []
    for rows, places in asked:
        values = dependence.values(rows, engine)
        if values is None:
            return True
        found += [values[place] for place in places]
    return not all(equal(value, found[0]) for value in found)
