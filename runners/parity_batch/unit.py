"""Score one unit: read, decode, run, write, commit. A pure function of the unit's rows and the handler."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter, deque
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from parity.codec.arrow import decode_table
from parity.codec.decoded import Decoded
from parity.engine import Engine
from parity.errors import DatasetError, RowsError
from parity.pipeline import Pipeline
from parity.result import Result
from parity_batch.folder import FileRecord, OutputFolder, UnitRecord
from parity_batch.parts import PartWriter, error_rows, errors_schema, part_rows, part_schema
from parity_batch.plan import Plan, Unit
from parity_batch.stream import check_unchanged, read_unit


class JobStoppedError(Exception):
    """The job ends early, for a reason that lies elsewhere: an error in another unit, or Ctrl-C."""


@dataclass
class Tally:
    """What the workers count together; every method may be called from any thread.

    Attributes:
        max_errors: the most rows that may fail; None for any number.
        rows: the rows done, those of earlier runs included.
        row_errors: the rows that failed, by kind.
        seconds: the time spent in each step, summed over workers.
    """

    max_errors: int | None = None
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

    def check(self, last_error: str = "") -> None:
        """Raise when the job must not go on.

        Args:
            last_error: the last error seen, for the message.

        Raises:
            JobStoppedError: `stop` was called.
            RowsError: more rows failed than `max_errors` allows.
        """
        if self._stopped.is_set():
            raise JobStoppedError
        failed = self.row_errors.total()
        if self.max_errors is not None and failed > self.max_errors:
            seen = f"; the last one: {last_error}" if last_error else ""
            raise RowsError(
                f"stopped: {failed} rows failed and --max-errors allows {self.max_errors}{seen}\n  the parts "
                "that are finished stay; the same command with a larger --max-errors continues"
            )

    def stop(self) -> None:
        """Make every worker end at its next micro-batch."""
        self._stopped.set()


@dataclass(frozen=True)
class UnitScorer:
    """Scores units with one engine; one worker's tools.

    Attributes:
        engine: entered, and used by nobody else.
        plan: the job's plan.
        folder: where parts go.
        metadata: key-value metadata of every file.
        batch_rows: rows in a micro-batch.
        preprocess_workers: threads that preprocess; 0 runs the stages one after the other on this thread.
        tally: the job's counts.
    """

    engine: Engine
    plan: Plan
    folder: OutputFolder
    metadata: Mapping[str, str]
    batch_rows: int
    preprocess_workers: int
    tally: Tally

    def score(self, unit: Unit) -> None:
        """Score a unit and record it as finished.

        Raises:
            DatasetError: the unit cannot be read, or its part not written.
            JobStoppedError: the job was stopped; nothing is left of the unit.
            RowsError: too many rows failed.
            ParityError: whatever the engine raises.
        """
        source, columns = unit.source, self.plan.columns_of(unit.source)
        schema = part_schema(source.schema, self.plan.columns, self.engine.loaded, self.metadata)
        failed_schema = errors_schema(source.schema, columns, self.metadata)
        errors_path = self.folder.errors(unit.part)
        kinds: Counter[str] = Counter()
        with (
            PartWriter(self.folder.part(unit.part), schema) as part,
            PartWriter(errors_path, failed_schema) as failed,
            contextlib.closing(self._results(unit, columns)) as results,
        ):
            for rows, result in results:
                started = time.perf_counter()
                place = unit.first_row + part.rows
                if result.errors:
                    errors_path.parent.mkdir(exist_ok=True)
                    failed.write(error_rows(rows, result.errors, source.name, place, failed_schema))
                part.write(part_rows(rows, result, schema))
                found = Counter(error.kind for error in result.errors)
                kinds.update(found)
                seconds = {**result.timings, "write": time.perf_counter() - started}
                self.tally.count(result.num_rows, found, seconds)
                self.tally.check(_last_error(source.name, place, result))
            if part.rows != unit.num_rows:
                raise DatasetError(
                    f"{source.name}: row groups {unit.first_group} to {unit.end_group - 1} hold {part.rows} "
                    f"rows, their footer says {unit.num_rows}; the file is damaged: write it anew"
                )
            check_unchanged(
                unit
            )  # once more: the reader, ahead of the model, was done with the file long ago
            if failed.rows:
                failed.commit()
            else:
                errors_path.unlink(missing_ok=True)
            part.commit()
        errors = FileRecord.of(errors_path) if failed.rows else None
        record = UnitRecord(part.rows, dict(sorted(kinds.items())), FileRecord.of(part.path), errors)
        self.folder.record(unit.part, record)

    def _results(
        self, unit: Unit, columns: list[str]
    ) -> Generator[tuple[pa.RecordBatch, Result], None, None]:
        """Every micro-batch with its result, in order."""
        waiting: deque[pa.RecordBatch] = deque()
        with (
            contextlib.closing(self._decoded(unit, columns, waiting)) as decoded,
            contextlib.closing(self._scored(decoded)) as scored,
        ):
            for result in scored:
                yield waiting.popleft(), result

    def _scored(self, decoded: Iterable[Decoded]) -> Generator[Result, None, None]:
        if self.preprocess_workers:
            yield from Pipeline(self.engine, preprocess_workers=self.preprocess_workers).map(decoded)
        else:
            yield from map(self.engine.score, decoded)

    def _decoded(
        self, unit: Unit, columns: list[str], waiting: deque[pa.RecordBatch]
    ) -> Generator[Decoded, None, None]:
        """Every micro-batch decoded; its rows are kept in `waiting` until its result comes."""
        inputs = self.engine.loaded.inputs
        wanted = [name for name in inputs.names if name in columns]
        with contextlib.closing(read_unit(unit, columns, self.batch_rows)) as batches:
            while True:
                started = time.perf_counter()
                rows = next(batches, None)
                if rows is None:
                    return
                read = time.perf_counter()
                decoded = decode_table(inputs, rows.select(wanted))
                waiting.append(rows)
                spent = {"read": read - started, "decode": time.perf_counter() - read}
                self.tally.count(0, {}, spent)
                yield decoded


def _last_error(source: str, first_row: int, result: Result) -> str:
    if not result.errors:
        return ""
    error = result.errors[-1]
    return f"{source} row {first_row + error.row}: {error.kind}: {error.message}"
