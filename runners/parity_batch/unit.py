"""Score one unit: read, decode, run, write, commit. A pure function of the unit's rows and the handler."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import pyarrow as pa

from parity.codec.arrow import decode_table
from parity.codec.arrow_sizes import decoded_bytes
from parity.codec.decoded import Decoded
from parity.codec.rebatch import BATCH_BYTES
from parity.engine import Engine
from parity.errors import RowError, RowsError
from parity.failures import of_this_job
from parity.output_form import OutputForm
from parity.pipeline import Pipeline
from parity.result import Result, empty_batch
from parity.schema import Schema
from parity.scored import error_rows, errors_schema, part_rows, part_schema
from parity_batch.containers import problems_of
from parity_batch.folder import OutputFolder
from parity_batch.groups import Pace
from parity_batch.layout import Layout
from parity_batch.lost import check_there
from parity_batch.parts import PartWriter
from parity_batch.plan import Unit
from parity_batch.reasons import kind_of
from parity_batch.stream import ROW, read_unit, with_absent

_AHEAD = 4
"""Groups in flight beside those that are being scored."""

_GROUPS_AN_ENGINE = 8
"""Groups that each engine gets at least, where several share a unit."""


class JobStoppedError(Exception):
    """The job ends early, for a reason that lies elsewhere: an error in another unit, or Ctrl-C."""


@dataclass(frozen=True)
class FailedRow:
    """A row without an answer; its text may hold the row's values, so it is for users and for no log.

    Attributes:
        place: its file, and its position there.
        error: why it failed.
    """

    place: str
    error: RowError

    def told(self, *, texts: bool) -> str:
        """It in a line, with or without its text."""
        error = self.error
        return f"{self.place}: {f'{error.kind}: {error.message}' if texts else kind_of(error)}"


@dataclass
class Tally:
    """What the workers count together; every method may be called from any thread.

    Attributes:
        max_errors: the most rows that may fail; None for any number.
        limit: how the user said so.
        texts: whether what the job says of a failed row may quote it.
        last_failed: the last row that is known to have failed.
        rows: the rows done, those of earlier runs included.
        row_errors: the rows that failed, by kind.
        seconds: the time spent in each step, summed over workers.
    """

    max_errors: int | None = None
    limit: str = ""
    texts: bool = True
    last_failed: FailedRow | None = None
    rows: int = 0
    row_errors: Counter[str] = field(default_factory=Counter[str])
    seconds: Counter[str] = field(default_factory=Counter[str])
    _stopped: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, rows: int, errors: Mapping[str, int], seconds: Mapping[str, float]) -> None:
        """Add to the counts."""
        with self._lock:
            self.rows += rows
            self.row_errors.update(errors)
            self.seconds.update(seconds)

    def check(self, last_failed: FailedRow | None = None) -> None:
        """Raise when the job must not go on.

        Args:
            last_failed: the last row seen to fail, for the message.

        Raises:
            JobStoppedError: `stop` was called.
            RowsError: more rows failed than `max_errors` allows.
        """
        self.last_failed = last_failed or self.last_failed
        if self._stopped.is_set():
            raise JobStoppedError
        failed = self.row_errors.total()
        if self.max_errors is not None and failed > self.max_errors:
            seen = f"; the last one: {last_failed.told(texts=self.texts)}" if last_failed else ""
            allowed = self.limit or self.max_errors
            raise RowsError(
                f"stopped: {failed} rows failed and --max-errors allows {allowed}{seen}\n  the parts "
                "that are finished stay; the same command with a larger --max-errors continues"
            )

    def stop(self) -> None:
        """Make every worker end at its next micro-batch."""
        self._stopped.set()


@dataclass(frozen=True)
class UnitReport:
    """What became of a unit; small, and able to travel between processes.

    Attributes:
        part: the unit's part.
        rows: the rows that were scored.
        row_errors: those that failed, by kind.
        seconds: the time spent in each step.
        problem: why the unit's file could not be read, when it could not: nothing is left of the unit.
        counted: whether the job's tally has these rows already.
        peak_rss_bytes: the most memory that the process had in use.
        notes: what is another in this process than where the job was started.
    """

    part: str
    rows: int
    row_errors: Mapping[str, int]
    seconds: Mapping[str, float]
    problem: str | None = None
    counted: bool = False
    peak_rss_bytes: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class UnitScorer:
    """Scores units with engines of its own.

    Attributes:
        engines: entered, and used by nobody else; with several, micro-batches of one unit are scored at once.
        layout: what is read of every file.
        folder: where parts go.
        metadata: key-value metadata of every file.
        batch_rows: rows in a micro-batch.
        preprocess_workers: threads that preprocess; 0 runs the stages one after the other on one thread.
        max_row_bytes: the most bytes that the inputs of a row may have.
        form: which types columns are written as.
        tally: the job's counts.
    """

    engines: Sequence[Engine]
    layout: Layout
    folder: OutputFolder
    metadata: Mapping[str, str]
    batch_rows: int
    preprocess_workers: int
    max_row_bytes: int
    form: OutputForm
    tally: Tally

    def score(self, unit: Unit) -> UnitReport:
        """Score a unit and record it as finished.

        Raises:
            UnreadableError: the unit cannot be read; nothing is left of it, in the counts neither.
            DatasetError: its part cannot be written.
            JobStoppedError: the job was stopped; nothing is left of the unit.
            RowsError: too many rows failed.
            ParityError: whatever the engine raises.
        """
        mine = Tally()
        try:
            self._score(unit, mine)
        except BaseException:
            self.tally.count(-mine.rows, {kind: -rows for kind, rows in mine.row_errors.items()}, {})
            raise
        return UnitReport(unit.part, mine.rows, dict(sorted(mine.row_errors.items())), dict(mine.seconds))

    def _score(self, unit: Unit, mine: Tally) -> None:
        source, layout, loaded = unit.source, self.layout, self.engines[0].loaded
        passed = pa.schema([layout.schema.field(name) for name in layout.columns])
        schema = part_schema(passed, layout.columns, loaded, self.metadata, self.form)
        failed_schema = errors_schema(layout.schema, layout.schema.names, self.metadata, self.form)
        part_file, errors_file = self.folder.part(unit.part), self.folder.errors(unit.part)
        with (
            PartWriter(part_file, schema) as part,
            PartWriter(errors_file, failed_schema) as failed,
            contextlib.closing(self._results(unit, mine)) as results,
        ):
            for rows, result in results:
                started = time.perf_counter()
                place = unit.first_row + part.rows
                whole = with_absent(rows, layout)
                positions = positions_of(rows)
                if result.errors:
                    failed.write(
                        error_rows(
                            whole, result.errors, source.name, place, failed_schema, positions=positions
                        ),
                        Counter(error.row // self.batch_rows for error in result.errors).values(),
                    )
                part.write(part_rows(whole, result, schema), self._lengths(result.num_rows))
                found = Counter(error.kind for error in result.errors)
                seconds = {**result.timings, "write": time.perf_counter() - started}
                for tally in (mine, self.tally):
                    tally.count(result.num_rows, found, seconds)
                self.tally.check(_last_failed(source.name, place, positions, result))
            # Once more: the reader, ahead of the model, was done with the file long ago.
            check_there(source)
            if failed.rows:
                self.folder.check_held()
                failed.commit()
            else:
                self.folder.remove_errors(unit.part)
            self.folder.check_held()
            part.commit()
        self.folder.record(unit.part, part.rows, dict(sorted(mine.row_errors.items())))

    def _lengths(self, rows: int) -> list[int]:
        """The rows of each micro-batch of a group."""
        return [min(self.batch_rows, rows - start) for start in range(0, rows, self.batch_rows)]

    def _results(self, unit: Unit, mine: Tally) -> Generator[tuple[pa.RecordBatch, Result], None, None]:
        """All rows with their results, in order, one or more micro-batches at a time."""
        waiting: deque[pa.RecordBatch] = deque()
        pace = Pace(unit.num_rows // (self.batch_rows * _GROUPS_AN_ENGINE * len(self.engines)))
        with (
            contextlib.closing(self._read(unit, pace, mine)) as batches,
            contextlib.closing(self._scored(_kept(batches, waiting), pace, mine)) as scored,
        ):
            for result in scored:
                yield waiting.popleft(), result

    def _scored(
        self, batches: Iterable[pa.RecordBatch], pace: Pace, mine: Tally
    ) -> Generator[Result, None, None]:
        engine = self.engines[0]
        if len(self.engines) > 1:
            yield from self._scored_together(batches, pace, mine)
        elif self.preprocess_workers:
            decoded = (self._decoded(rows, mine) for rows in batches)
            yield from Pipeline(engine, preprocess_workers=self.preprocess_workers).map(decoded)
        else:
            for rows in batches:
                yield self._score_group(engine, rows, pace, mine)

    def _score_group(self, engine: Engine, rows: pa.RecordBatch, pace: Pace, mine: Tally) -> Result:
        """The result of one or more micro-batches, each of which the handler sees as one."""
        started = time.perf_counter()
        result = score_group(engine, rows, self.batch_rows, lambda piece: self._decoded(piece, mine))
        pace.took(time.perf_counter() - started)
        return result

    def _scored_together(
        self, batches: Iterable[pa.RecordBatch], pace: Pace, mine: Tally
    ) -> Generator[Result, None, None]:
        """Results in order, of micro-batches that the engines take from one stream."""
        free: queue.SimpleQueue[Engine] = queue.SimpleQueue()
        for engine in self.engines:
            free.put(engine)

        def one(rows: pa.RecordBatch) -> Result:
            engine = free.get()
            try:
                return self._score_group(engine, rows, pace, mine)
            finally:
                free.put(engine)

        in_flight: deque[Future[Result]] = deque()
        pool = ThreadPoolExecutor(len(self.engines), "parity-together", of_this_job())
        try:
            for rows in batches:
                in_flight.append(pool.submit(one, rows))
                while len(in_flight) > len(self.engines) + _AHEAD:
                    yield in_flight.popleft().result()
            while in_flight:
                yield in_flight.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _read(self, unit: Unit, pace: Pace, mine: Tally) -> Generator[pa.RecordBatch, None, None]:
        """All micro-batches, in groups as the pace has them."""
        most_bytes = min(BATCH_BYTES, self.max_row_bytes)  # a row that is too large then stands alone
        overlapped = self.preprocess_workers and len(self.engines) == 1  # a pipeline takes them one by one
        together = None if overlapped else pace.batches
        read = read_unit(unit, self.layout, self.batch_rows, most_bytes, together)
        with contextlib.closing(read) as batches:
            while True:
                started = time.perf_counter()
                rows = next(batches, None)
                if rows is None:
                    return
                spent = {"read": time.perf_counter() - started}
                for tally in (mine, self.tally):
                    tally.count(0, {}, spent)
                yield rows

    def _decoded(self, rows: pa.RecordBatch, mine: Tally) -> Decoded:
        started = time.perf_counter()
        inputs = self.engines[0].loaded.inputs
        decoded: Decoded | None = None
        if rows.num_rows == 1:
            given = renamed(rows, self.layout)
            if sum(map(decoded_bytes, given.columns)) > self.max_row_bytes:
                problems = {0: _too_large(given, self.max_row_bytes)}
                decoded = Decoded.around(empty_batch(inputs), 1, problems)
        if decoded is None:
            decoded = decoded_rows(inputs, rows, self.layout)
        spent = {"decode": time.perf_counter() - started}
        for tally in (mine, self.tally):
            tally.count(0, {}, spent)
        return decoded


def _kept(
    batches: Iterable[pa.RecordBatch], waiting: deque[pa.RecordBatch]
) -> Generator[pa.RecordBatch, None, None]:
    """The same batches, each of which is put where its result finds it."""
    for rows in batches:
        waiting.append(rows)
        yield rows


def score_group(
    engine: Engine, rows: pa.RecordBatch, batch_rows: int, decode: Callable[[pa.RecordBatch], Decoded]
) -> Result:
    """The result of rows of which the handler sees `batch_rows` at a time, as if each so many came alone."""
    decoded = decode(rows)
    if not decoded.errors or rows.num_rows <= batch_rows:
        return engine.score(decoded, most_rows=batch_rows)
    # Each micro-batch keeps its own good rows.
    pieces = [rows.slice(start, batch_rows) for start in range(0, rows.num_rows, batch_rows)]
    return Result.concat([engine.score(decode(piece)) for piece in pieces], engine.loaded.outputs)


def decoded_rows(inputs: Schema, rows: pa.RecordBatch, layout: Layout) -> Decoded:
    """The rows as the handler's inputs; those that could not be read of text are errors."""
    problems = problems_of(rows)
    if not problems:  # columns that are no fields are left alone
        return decode_table(inputs, rows if layout.fields_are_columns else renamed(rows, layout))
    given = renamed(rows, layout)
    good = np.setdiff1d(np.arange(rows.num_rows, dtype=np.int64), np.array(list(problems), np.int64))
    kept = given.take(cast("Any", pa.array(good))) if given.columns else given.slice(0, len(good))
    found = decode_table(inputs, kept)
    more = {int(good[error.row]): replace(error, row=int(good[error.row])) for error in found.errors}
    return Decoded.around(found.batch, rows.num_rows, {**problems, **more})


def positions_of(rows: pa.RecordBatch) -> list[int] | None:
    """The rows' positions in the source, where not all of its rows are scored."""
    place = rows.schema.get_field_index(ROW.name)
    return None if place < 0 else cast("list[int]", rows.column(place).to_pylist())


def renamed(rows: pa.RecordBatch, layout: Layout) -> pa.RecordBatch:
    """The columns of the handler's fields that are there, under the fields' names."""
    names = set(rows.schema.names)
    fields = {name: column for name, column in layout.fields.items() if column in names}
    return rows.select(list(fields.values())).rename_columns(list(fields))


def _too_large(rows: pa.RecordBatch, most: int) -> RowError:
    sizes = {
        name: round(decoded_bytes(column))
        for name, column in zip(rows.schema.names, rows.columns, strict=True)
    }
    name = max(sizes, key=lambda name: sizes[name])
    return RowError(
        0,
        "invalid",
        f"field {name!r} has {sizes[name]:,} bytes, and the inputs of a row may have {most:,}; "
        "--max-row-mb allows more",
        name,
    )


def _last_failed(
    source: str, first_row: int, positions: Sequence[int] | None, result: Result
) -> FailedRow | None:
    if not result.errors:
        return None
    error = result.errors[-1]
    row = first_row + error.row if positions is None else positions[error.row]
    return FailedRow(f"{source} row {row}", error)
