"""The rows that the laws are tried on, the answers that they get, and the two ways of asking compared.

A row's reference answer is the one it gets in a batch of all golden rows; an edge row's, the one it gets
alone, so that a row full of NaN cannot spoil the reference of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import pyarrow as pa

from parity.batch import Batch
from parity.codec import arrow
from parity.compare import Comparison, Tolerances, compare
from parity.engine import Engine
from parity.errors import InputMutatedError
from parity.examples import EDGE_KINDS, edge_batch, edge_row, example_batch
from parity.golden import GoldenCase
from parity.handler import LoadedHandler
from parity.laws.outcome import Counterexample, worst_row
from parity.laws.shrink import shrink
from parity.registry import Runner
from parity.result import ERROR_COLUMN

MAX_ROWS = 64
"""Golden rows that the laws are tried on; facts about batch shapes show at 64 rows and seldom at three."""

MAX_EDGES = 64

Answers = tuple[pa.Table, pa.Table]
"""The answers of the same rows asked in two ways."""


def law_rows(loaded: LoadedHandler, cases: Sequence[GoldenCase]) -> tuple[Batch, list[str]]:
    """The rows for the laws, at most `MAX_ROWS`, spread over all cases, with a label for each.

    Without cases they are example rows made from the schema.
    """
    if not cases:
        return example_batch(loaded.inputs, MAX_ROWS), [f"example row {row}" for row in range(MAX_ROWS)]
    batch = Batch.concat([arrow.decode_table(loaded.inputs, case.inputs).batch for case in cases])
    labels = [f"{case.name} row {row}" for case in cases for row in range(case.inputs.num_rows)]
    chosen = spread(range(len(labels)), MAX_ROWS)
    return batch.take(chosen), [labels[row] for row in chosen]


class Bench:
    """Rows under test, and an engine to ask.

    Rows are named by their position in `pool`: the golden rows, then the edge rows, then the hostile
    neighbours, whose own answers are not judged.

    Args:
        engine: an entered engine.
        rows: rows of the handler's input schema, at least one.
        labels: a name for each of them, for counterexamples.
        tolerances: the rules that tell noise from a difference; handler.toml's when not given.
        runners: runners to send rows through in each of their wire forms; none leaves that part out.
    """

    def __init__(
        self,
        engine: Engine,
        rows: Batch,
        *,
        labels: Sequence[str] | None = None,
        tolerances: Tolerances | None = None,
        runners: Sequence[Runner] = (),
    ) -> None:
        self.engine = engine
        self.loaded = engine.loaded
        self.tolerances = tolerances or Tolerances.from_mapping(self.loaded.manifest.tolerance)
        self.runners = tuple(runners)
        edges = edge_batch(rows.schema, overflow=False)
        edges = edges.take(spread(range(edges.num_rows), MAX_EDGES))
        hostile = {kind: row for kind in EDGE_KINDS if (row := edge_row(rows.schema, kind)) is not None}
        self.golden = list(range(rows.num_rows))
        self.judged = list(range(rows.num_rows + edges.num_rows))
        self.hostile = [len(self.judged) + offset for offset in range(len(hostile))]
        self.pool = Batch.concat([rows, edges, *hostile.values()])
        self.labels = [
            *(labels or [f"row {row}" for row in self.golden]),
            *(f"edge row {row}" for row in range(edges.num_rows)),
            *(f"neighbour: {kind}" for kind in hostile),
        ]

    def run(self, positions: Sequence[int]) -> pa.Table:
        """The answers of the rows at `positions`, asked as one batch, in that order."""
        return self.ask(self.batch(positions))

    def ask(self, batch: Batch) -> pa.Table:
        """The answers of a batch, asked at once."""
        return self.engine.run(batch).to_table()

    def run_overlapped(self, positions: Sequence[int]) -> pa.Table:
        """The answers of the rows at `positions`, each asked alone while all the others are under way.

        A stage runs for every row before the next stage begins, which is what a pipeline comes to.
        """
        works = [self.engine.preprocess(self.batch([position])) for position in positions]
        works = [self.engine.infer(work) for work in works]
        return pa.concat_tables([self.engine.postprocess(work).to_table() for work in works])

    def check_unwritten(self, positions: Sequence[int]) -> None:
        """Raise InputMutatedError when asking the rows at `positions` changes them.

        numpy guards the columns; torch.from_numpy and others write through its views all the same.
        """
        batch = self.batch(positions)
        self.ask(batch)
        compared = compare(self.batch(positions).to_table(), batch.to_table())
        written = [column.name for column in compared.columns if column.verdict != "identical"]
        if written:
            raise InputMutatedError(
                f"handler {self.loaded.name}: a stage wrote into input {written[0]!r} through a view that "
                "is not guarded, such as torch.from_numpy's; copy first: batch['name'].torch(), which is a "
                "copy, or .numpy().copy()"
            )

    def batch(self, positions: Sequence[int]) -> Batch:
        """The rows at `positions`, in that order, in memory of their own."""
        return self.pool.take(np.asarray(positions, np.int64))

    @cached_property
    def expected(self) -> pa.Table:
        """The reference answers of the judged rows."""
        edges = self.judged[len(self.golden) :]
        return pa.concat_tables([self.run(self.golden), *(self.run([position]) for position in edges)])

    @cached_property
    def troublesome(self) -> list[int]:
        """A judged row that the handler rejects and one that fails, where there are such."""
        kinds = [None if error is None else error["kind"] for error in self.errors]
        return [kinds.index(kind) for kind in ("rejected", "failed") if kind in kinds]

    @property
    def errors(self) -> list[dict[str, Any] | None]:
        """The error of each judged row's reference answer."""
        return cast("list[dict[str, Any] | None]", self.expected.column(ERROR_COLUMN).to_pylist())

    def compare(self, positions: Sequence[int], answers: Answers) -> Comparison:
        """The answers of the rows at `positions` asked in two ways.

        At the scale of the golden rows' answers, unless only edge rows fail at it: theirs may be many orders
        of magnitude larger, and are judged at the scale of their own.
        """
        golden = self.expected.slice(0, len(self.golden))
        found = compare(*answers, self.tolerances, scale_from=golden)
        golden_fails = any(positions[row] < len(self.golden) for row in found.failing_rows)
        if golden_fails or found.verdict != "divergent":
            return found
        return compare(*answers, self.tolerances, scale_from=self.expected.slice(len(self.golden)))

    def smallest(
        self, positions: Sequence[int], ask: Callable[[list[int]], Answers], how: str
    ) -> Counterexample | None:
        """The fewest of the rows at `positions` of which one's answer differs when asked in two ways.

        Args:
            positions: the rows, in order.
            ask: asks some of them in the two ways.
            how: the two ways, in words; `{n}` stands for the number of rows.

        Returns:
            None when the answers of all rows asked again in the two ways do not differ.
        """

        def differs(rows: list[int]) -> bool:
            return self.compare(rows, ask(rows)).verdict == "divergent"

        if not differs(list(positions)):
            return None
        rows = shrink(positions, differs)
        return self.counterexample(rows, self.compare(rows, ask(rows)), how.format(n=len(rows)))

    def smallest_company(self, company: Sequence[int], place: int) -> Counterexample | None:
        """The fewest rows of a batch beside which the row at `place` gets another answer than alone.

        Returns:
            None when the row gets the answer that it gets alone.
        """

        def ask(others: list[int]) -> Answers:
            places = sorted([*others, place])
            together = self.run([company[other] for other in places])
            return self.run([company[place]]), together.slice(places.index(place), 1)

        def compared(others: list[int]) -> Comparison:
            return self.compare([company[place]], ask(others))

        def differs(others: list[int]) -> bool:
            return compared(others).verdict == "divergent"

        others = [other for other in range(len(company)) if other != place]
        if not others or not differs(others):
            return None
        others = shrink(others, differs)
        places = sorted([*others, place])
        how = f"alone, and in this batch of {len(places)}"
        example = self.counterexample([company[other] for other in places], compared(others), how)
        return None if example is None else replace(example, row=places.index(place))

    def counterexample(
        self, positions: Sequence[int], comparison: Comparison, how: str
    ) -> Counterexample | None:
        """The counterexample that a divergent comparison of the rows at `positions` shows; else None."""
        worst = worst_row(comparison)
        if worst is None:
            return None
        column, row = worst
        return Counterexample(
            rows=self.batch(positions).to_table(),
            labels=tuple(self.labels[position] for position in positions),
            row=row.row,
            column=column,
            expected=row.expected,
            obtained=row.obtained,
            how=how,
        )


def spread(positions: Sequence[int], most: int) -> list[int]:
    """At most `most` of the positions, evenly spread."""
    places = np.linspace(0, len(positions) - 1, min(len(positions), most)).round().astype(np.int64)
    return [positions[place] for place in places]
