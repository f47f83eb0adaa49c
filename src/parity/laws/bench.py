"""The rows that the laws are tried on, the answers that they get, and how two answers are compared.

A row's reference answer is the one it gets in a batch of all golden rows; an edge row's, the one it gets
alone, so that a row full of NaN cannot spoil the reference of the others. What several laws need is asked
once and kept.
"""

from __future__ import annotations

import copy
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import numpy as np
import pyarrow as pa

from parity.batch import Batch
from parity.compare import Comparison, Tolerances, compare
from parity.engine import Engine
from parity.errors import ConfigError
from parity.examples import EDGE_KINDS, edge_batch, edge_row, example_batch
from parity.golden import GoldenCase
from parity.handler import LoadedHandler
from parity.laws.candidates import Candidate
from parity.laws.noise import NoiseFloor, column_noise
from parity.laws.shrink import Budget
from parity.laws.strategies import generated_batch
from parity.laws.workers import Workers
from parity.profile import Profile
from parity.registry import Runner
from parity.result import ERROR_COLUMN, Result
from parity.triage.memory import Outliving

MAX_ROWS = 64
"""Golden rows that the laws are tried on; facts about batch shapes show at 64 rows and seldom at three."""

MAX_EDGES = 64
GENERATED, GENERATED_THOROUGH = 16, 160
SIZES = (1, 2, 3, 7, 16, 33)
SIZES_THOROUGH = (1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 17, 31, 32, 33, 48, 63)
SHRINK_TRIALS, SHRINK_SECONDS = 600, 6.0

Answers = tuple[pa.Table, pa.Table]
"""The answers of the same rows asked in two ways."""


class OutOfTimeError(Exception):
    """The time that was given for all laws is over."""


def chosen_rows(count: int) -> list[int]:
    """Which of `count` golden rows the laws are tried on: at most `MAX_ROWS`, spread over all."""
    return spread(range(count), MAX_ROWS)


def law_rows(loaded: LoadedHandler, cases: Sequence[GoldenCase]) -> tuple[Batch, list[str]]:
    """The rows for the laws, with a label for each: the golden rows that `chosen_rows` says.

    Without cases they are example rows made from the schema.
    """
    if not cases:
        return example_batch(loaded.inputs, MAX_ROWS), [f"example row {row}" for row in range(MAX_ROWS)]
    decoded = [case.decoded(loaded) for case in cases]  # rows that do not fit the schema are left out
    batch = Batch.concat([item.batch for item in decoded])
    labels = [
        f"{case.name} row {row}"
        for case, item in zip(cases, decoded, strict=True)
        for row in item.index.tolist()
    ]
    chosen = chosen_rows(len(labels))
    return batch.take(chosen), [labels[row] for row in chosen]


class Bench:
    """Rows under test, and an engine to ask. Use it as a context manager where laws start processes.

    Rows are named by their position in `pool`: the golden rows, the edge rows, the generated rows, then the
    hostile neighbours, whose own answers are not judged.

    Args:
        engine: an entered engine.
        rows: rows of the handler's input schema, at least one.
        labels: a name for each of them, for counterexamples.
        tolerances: the rules that tell noise from a difference; handler.toml's when not given.
        runners: runners to send rows through in each of their wire forms.
        runner_answers: what runners gave already for `rows`, by runner and wire form, such as "online rows".
        profiles: profiles, or names of handler.toml's, to compare the engine's own with.
        thorough: more generated rows, batch sizes, repetitions and processes.
        deadline_s: seconds after which no further law is begun; None for any number.
        clock: what tells the seconds.

    Raises:
        ConfigError: there are no rows, or answers of a runner are not one for each row.
    """

    def __init__(
        self,
        engine: Engine,
        rows: Batch,
        *,
        labels: Sequence[str] | None = None,
        tolerances: Tolerances | None = None,
        runners: Sequence[Runner] = (),
        runner_answers: Mapping[str, Result | pa.Table] | None = None,
        profiles: Sequence[str | Profile] = (),
        thorough: bool = False,
        deadline_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.engine = engine
        self.loaded = engine.loaded
        if rows.num_rows == 0:
            raise ConfigError(f"handler {self.loaded.name}: no rows to try the laws on")
        self.tolerances = tolerances or Tolerances.from_mapping(self.loaded.manifest.tolerance)
        self.runners = tuple(runners)
        self.runner_answers = {
            name: _one_each(name, answers, rows.num_rows) for name, answers in (runner_answers or {}).items()
        }
        self.profiles = tuple(
            self.loaded.profile(profile) if isinstance(profile, str) else profile for profile in profiles
        )
        self.thorough = thorough
        self.outliving = Outliving(self.loaded.cls)
        self._clock = clock
        self._end = None if deadline_s is None else clock() + deadline_s
        self._open = ExitStack()
        self.workers = Workers(self.loaded, engine.profile)
        self._open.callback(self.workers.close)
        edges = edge_batch(rows.schema, overflow=False)
        edges = edges.take(spread(range(edges.num_rows), MAX_EDGES))
        generated = generated_batch(rows.schema, GENERATED_THOROUGH if thorough else GENERATED)
        hostile = {kind: row for kind in EDGE_KINDS if (row := edge_row(rows.schema, kind)) is not None}
        self.golden = list(range(rows.num_rows))
        self.judged = list(range(rows.num_rows + edges.num_rows + generated.num_rows))
        self.edges = self.judged[len(self.golden) :]
        self.hostile = [len(self.judged) + offset for offset in range(len(hostile))]
        self.pool = Batch.concat([rows, edges, generated, *hostile.values()])
        self.labels = [
            *(labels or [f"row {row}" for row in self.golden]),
            *(f"edge row {row}" for row in range(edges.num_rows)),
            *(f"generated row {row}" for row in range(generated.num_rows)),
            *(f"neighbour: {kind}" for kind in hostile),
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the processes that laws started."""
        self._open.close()

    @property
    def sizes(self) -> tuple[int, ...]:
        """The batch sizes to ask in, but for that of all judged rows together."""
        return SIZES_THOROUGH if self.thorough else SIZES

    def batch(self, positions: Sequence[int]) -> Batch:
        """The rows at `positions`, in that order, in memory of their own."""
        return self.pool.take(np.asarray(positions, np.int64))

    def candidate(self, positions: Sequence[int], judged: Sequence[int] | None = None) -> Candidate:
        """The rows at `positions` as a candidate for a counterexample.

        Args:
            positions: the rows.
            judged: places among them whose answers count; all when not given.
        """
        counts = range(len(positions)) if judged is None else set(judged)
        return Candidate(
            self.batch(positions),
            tuple(self.labels[position] for position in positions),
            tuple(positions),
            tuple(place in counts for place in range(len(positions))),
        )

    def run(self, positions: Sequence[int]) -> pa.Table:
        """The answers of the rows at `positions`, asked as one batch, in that order."""
        return self.ask(self.batch(positions))

    def ask(self, batch: Batch) -> pa.Table:
        """The answers of a batch, asked at once."""
        return self.engine.run(batch).to_table()

    @cached_property
    def reference(self) -> Result:
        """What the golden rows get, asked as one batch."""
        return self.engine.run(self.batch(self.golden))

    @cached_property
    def alone(self) -> pa.Table:
        """The answers of the judged rows, each asked alone."""
        return pa.concat_tables([self.run([position]) for position in self.judged])

    @cached_property
    def failing_alone(self) -> list[int]:
        """The golden rows that get an answer in company, or beside their own copy, and none alone."""
        errors = cast("list[Any]", self.alone.column(ERROR_COLUMN).to_pylist())
        company = cast("list[Any]", self.reference.to_table().column(ERROR_COLUMN).to_pylist())
        if len(self.golden) == 1 and errors[0] is not None:
            company = self.run([0, 0]).column(ERROR_COLUMN).to_pylist()
        return [row for row in self.golden if errors[row] is not None and company[row] is None]

    @cached_property
    def expected(self) -> pa.Table:
        """The reference answers of the judged rows."""
        if self.failing_alone:  # then being alone is what is wrong, and says nothing of an edge row's answer
            edges = [self.run([edge, edge]).slice(0, 1) for edge in self.edges]
            return pa.concat_tables([self.reference.to_table(), *edges])
        return pa.concat_tables([self.reference.to_table(), self.alone.slice(len(self.golden))])

    @cached_property
    def troublesome(self) -> list[int]:
        """A judged row that the handler rejects and one that fails, where there are such."""
        kinds = [None if error is None else error["kind"] for error in self.errors]
        return [kinds.index(kind) for kind in ("rejected", "failed") if kind in kinds]

    @property
    def errors(self) -> list[dict[str, Any] | None]:
        """The error of each judged row's reference answer."""
        return cast("list[dict[str, Any] | None]", self.expected.column(ERROR_COLUMN).to_pylist())

    @property
    def golden_scale(self) -> pa.Table:
        """Answers to take the scale of columns from."""
        return self.expected.slice(0, len(self.golden))

    def compare(
        self, origins: Sequence[int], answers: Answers, columns: Sequence[str] | None = None
    ) -> Comparison:
        """The answers of rows asked in two ways; `origins` are the positions that the rows come from.

        At the scale of the golden rows' answers, unless only edge rows fail at it: theirs may be many orders
        of magnitude larger, and are judged at the scale of their own. `columns` leaves out all others.
        """
        one, other = answers
        tolerances = self.tolerances
        if columns is not None:
            one, other = one.select(list(columns)), other.select(list(columns))
            tolerances = Tolerances()
        found = compare(one, other, tolerances, scale_from=self.golden_scale)
        golden_fails = any(origins[row] < len(self.golden) for row in found.failing_rows)
        if golden_fails or found.verdict != "divergent":
            return found
        return compare(one, other, tolerances, scale_from=self.expected.slice(len(self.golden)))

    @cached_property
    def noise_floor(self) -> NoiseFloor:
        """What the answers of the golden rows differ by that nothing but the shape of a batch tells apart.

        Measured: the identical call again, the rows in batches of other sizes, and batches of the same shape
        with other values beside each row.
        """
        golden, reference = self.golden, self.reference.to_table()
        again = [(reference, self.run(golden)) for _ in range(5 if self.thorough else 2)]
        shapes: list[Answers] = []
        for size in self.sizes:
            if size < len(golden):
                pieces = [golden[start : start + size] for start in range(0, len(golden), size)]
                answers = [self.run(piece) for piece in pieces] if size > 1 else [self.alone]
                shapes.append((reference, pa.concat_tables(answers).slice(0, len(golden))))
        beside: list[Answers] = []
        half = len(golden) // 2
        for others in (lambda row: (row + half) % len(golden), lambda _: (self.hostile or golden)[0]):
            for kept in (0, 1, 2) if len(golden) > 2 else ():
                places: Any = pa.array([row for row in golden if row % 8 == kept], pa.int64())
                batch = [row if row % 8 == kept else others(row) for row in golden]
                beside.append((reference.take(places), self.run(batch).take(places)))
        found = [
            column_noise(compare(one, other, self.tolerances, scale_from=reference) for one, other in answers)
            for answers in (shapes, again, beside)
        ]
        return NoiseFloor(found[0], found[1], found[2], 1 + len(again) + len(shapes) + len(beside))

    def judging_by(self, tolerances: Tolerances) -> Bench:
        """The same bench, its answers kept, with other rules."""
        other = copy.copy(self)
        other.tolerances = tolerances
        return other

    @cached_property
    def elsewhere(self) -> Path:
        """An empty folder, for processes to work in."""
        return Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="parity-elsewhere-")))

    def budget(self) -> Budget:
        """How much shrinking one broken law may cost."""
        left = self.seconds_left
        most = SHRINK_SECONDS * (4 if self.thorough else 1)
        seconds = most if left is None else max(0.5, min(most, left))
        return Budget(SHRINK_TRIALS * (4 if self.thorough else 1), seconds, self._clock)

    @property
    def seconds_left(self) -> float | None:
        """The seconds left for laws; None without a deadline."""
        return None if self._end is None else self._end - self._clock()

    def check_time(self) -> None:
        """Raise OutOfTimeError when the time for all laws is over."""
        left = self.seconds_left
        if left is not None and left <= 0:
            raise OutOfTimeError


def noise_floor(bench: Bench) -> NoiseFloor:
    """The measured noise of the bench's handler; see `Bench.noise_floor`."""
    return bench.noise_floor


def spread(positions: Sequence[int], most: int) -> list[int]:
    """At most `most` of the positions, evenly spread."""
    places = np.linspace(0, len(positions) - 1, min(len(positions), most)).round().astype(np.int64)
    return [positions[place] for place in places]


def _one_each(name: str, answers: Result | pa.Table, rows: int) -> pa.Table:
    table = answers.to_table() if isinstance(answers, Result) else answers
    if table.num_rows != rows:
        raise ConfigError(f"the answers of {name!r} are {table.num_rows}, for {rows} rows; give one for each")
    return table
