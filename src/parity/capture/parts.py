"""Rows become parts: gathered, hidden where asked, written when large or old enough. No thread in here.

Batches are kept as the engine gave them and made into Arrow in bulk, some dozens at a time: Arrow lets other
threads run meanwhile, where Python code for every row would hold them up.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from parity.batch import Batch
from parity.capture.format import (
    ERROR_FIELD,
    INPUT,
    METADATA,
    OUTPUT,
    OWN,
    PartMeta,
    Source,
    own_columns,
    part_name,
)
from parity.capture.places import Place
from parity.capture.privacy import Privacy
from parity.capture.sampling import in_sample
from parity.capture.settings import CaptureSettings
from parity.result import ERROR_COLUMN, Result
from parity.schema import Schema

logger = logging.getLogger(__name__)

_MIB = 1024 * 1024
_COMPACT_BATCHES = 64
_ROW_GROUP_ROWS = 65536
_BUFFER_FACTOR = 2
"""While the target fails, so many times `rotate_mb` are kept; later rows are lost."""

FIRST_RETRY_S = 1.0
LAST_RETRY_S = 60.0
LOG_EVERY = 100
"""Of so many failures in a row one is logged."""


class CaptureObserver(Protocol):
    """What a capture tells its metrics; called on any thread, must be quick and must not raise."""

    def captured(self, rows: int) -> None:
        """So many rows have been written."""
        ...

    def lost(self, rows: int) -> None:
        """So many rows were to be recorded and were not: the queue was full, or the target failed."""
        ...

    def failed(self) -> None:
        """A part could not be written."""
        ...


class NoObserver:
    """Hears nothing."""

    def captured(self, rows: int) -> None:
        """See `CaptureObserver`."""

    def lost(self, rows: int) -> None:
        """See `CaptureObserver`."""

    def failed(self) -> None:
        """See `CaptureObserver`."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The request that rows came with.

    Attributes:
        request_id: its id.
        wire: the wire form's name.
        time_ns: when it came, in nanoseconds since 1970, UTC.
        started: the same on the clock that `Scored.finished` is read from.
    """

    request_id: str
    wire: str
    time_ns: int
    started: float


Share = tuple[Origin | None, Sequence[int] | None, int]
"""Whose rows come next in a batch: the request (None: not to be recorded), the rows' numbers in it (None:
from 0), and how many they are."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A batch that has run, as the server has it at hand.

    Attributes:
        batch: the rows.
        result: their answers.
        shares: whose rows they are, in order.
        number: the batch's number.
        finished: when the answers were there, on the clock of `Origin.started`.
    """

    batch: Batch
    result: Result
    shares: Sequence[Share]
    number: int
    finished: float

    @property
    def nbytes(self) -> int:
        """About how much memory the rows take."""
        values = (*self.batch.values(), *self.result.outputs.values())
        return sum(column.nbytes for column in values) + 64 * self.batch.num_rows


@dataclass
class _Rows:
    """Rows that are kept, before they are made into Arrow."""

    batches: list[Batch] = field(default_factory=list[Batch])
    results: list[Result] = field(default_factory=list[Result])
    own: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in OWN.names})
    rows: int = 0


class PartWriter:
    """Gathers the rows of one handler and writes them as parts. For one thread at a time.

    Args:
        source: what answers the rows.
        inputs: the handler's input schema.
        outputs: its output schema.
        settings: sample, rotation and what to hide.
        place: where parts go.
        observer: hears of rows and failures.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        source: Source,
        inputs: Schema,
        outputs: Schema,
        settings: CaptureSettings,
        place: Place,
        *,
        observer: CaptureObserver | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source = source
        self._outputs = outputs
        self._settings = settings
        self._privacy = Privacy.of(settings, inputs, outputs)
        self._place = place
        self._observer = observer or NoObserver()
        self._clock = clock
        self._folder = _folder_name(source.handler)
        self._boot = secrets.token_hex(4)
        self._fresh = _Rows()
        self._tables: list[pa.Table] = []
        self._bytes = 0
        self._rows = 0
        self._since: float | None = None
        self._retry_at: float | None = None
        self._failures = 0
        self._written = 0
        self._lost = 0
        self._lost_before = 0

    @property
    def due_at(self) -> float | None:
        """When `tick` has something to write, on the clock; None when nothing waits."""
        if self._since is None:
            return None
        due = self._since + self._settings.rotate_s
        if self._bytes >= self._settings.rotate_mb * _MIB:
            due = self._since
        return due if self._retry_at is None else max(due, self._retry_at)

    def add(self, scored: Scored) -> None:
        """Keep the rows of a batch that belong to the sample, or failed where failures are kept."""
        shares = self._kept(scored)
        if not shares:
            return
        rows = sum(len(kept) for _, _, kept, _ in shares)
        if self._retry_at is not None and self._bytes >= _BUFFER_FACTOR * self._settings.rotate_mb * _MIB:
            self.lose(rows)
            return
        batch, result = scored.batch, scored.result
        if rows < batch.num_rows:
            positions = np.asarray([row for _, _, kept, _ in shares for row in kept], np.int64)
            batch, result = batch.take(positions), _taken(result, positions)
        fresh = self._fresh
        fresh.batches.append(batch)
        fresh.results.append(result)
        fresh.rows += rows
        fresh.own["_bucket"] += _buckets(result)
        for origin, places, kept, sampled in shares:
            self._describe(scored, origin, places, kept, sampled)
        self._rows += rows
        self._bytes += scored.nbytes * rows // max(1, scored.batch.num_rows)
        if self._since is None:
            self._since = self._clock()
        if len(fresh.batches) >= _COMPACT_BATCHES:
            self._compact()

    def lose(self, rows: int) -> None:
        """Count rows that were to be recorded and were not."""
        if rows:
            self._lost += rows
            self._observer.lost(rows)

    def tick(self) -> None:
        """Write what is due."""
        due = self.due_at
        if due is not None and due <= self._clock():
            self.flush()

    def flush(self) -> bool:
        """Write what there is, due or not; whether that worked. What could not be written stays for later."""
        self._compact()
        if not self._tables:
            self._forget()
            return True
        table = pa.concat_tables(self._tables)
        try:
            self._write(table)
        except Exception as exc:  # noqa: BLE001 - a capture never disturbs the server
            self._tables = [table]
            self._note_failure(exc)
            return False
        self._observer.captured(table.num_rows)
        self._forget()
        self._written += 1
        self._lost_before = self._lost
        return True

    def start_over(self) -> None:
        """Lose the rows that have not been made into Arrow yet: something about them went wrong."""
        fresh, self._fresh = self._fresh, _Rows()
        self._rows -= fresh.rows
        self.lose(fresh.rows)

    def give_up(self) -> None:
        """Count what could not be written as lost."""
        self._compact()
        self.lose(self._rows)
        self._forget()

    def _kept(self, scored: Scored) -> list[tuple[Origin, Sequence[int] | None, Sequence[int], bool]]:
        """Whose rows to keep: the request, the rows' numbers in it, their positions, whether sampled."""
        found: list[tuple[Origin, Sequence[int] | None, Sequence[int], bool]] = []
        keep_errors = self._settings.keep_errors and scored.result.errors
        failed = {error.row for error in scored.result.errors} if keep_errors else frozenset[int]()
        start = 0
        for origin, places, rows in scored.shares:
            stop = start + rows
            if origin is not None:
                if in_sample(origin.request_id, self._settings.sample):
                    found.append((origin, places, range(start, stop), True))
                elif failed:
                    kept = [row for row in range(start, stop) if row in failed]
                    if kept:
                        numbers = [row - start if places is None else places[row - start] for row in kept]
                        found.append((origin, numbers, kept, False))
            start = stop
        return found

    def _describe(
        self, scored: Scored, origin: Origin, places: Sequence[int] | None, kept: Sequence[int], sampled: bool
    ) -> None:
        own, rows = self._fresh.own, len(kept)
        own["_request_id"] += [origin.request_id] * rows
        own["_row"] += range(rows) if places is None else places
        own["_time"] += [origin.time_ns] * rows
        own["_latency_s"] += [scored.finished - origin.started] * rows
        own["_wire"] += [origin.wire] * rows
        own["_sampled"] += [sampled] * rows
        own["_batch"] += [scored.number] * rows
        own["_position"] += kept
        own["_batch_rows"] += [scored.batch.num_rows] * rows

    def _compact(self) -> None:
        """Make the kept rows into one Arrow table."""
        fresh, self._fresh = self._fresh, _Rows()
        if not fresh.rows:
            return
        try:
            self._tables.append(self._table(fresh))
        except Exception as exc:
            logger.error(
                "event=capture_failed handler=%s rows=%d", self._source.handler, fresh.rows, exc_info=exc
            )
            self.lose(fresh.rows)
            self._rows -= fresh.rows
        self._bytes = sum(table.nbytes for table in self._tables)

    def _table(self, fresh: _Rows) -> pa.Table:
        inputs = Batch.concat(fresh.batches)
        result = Result.concat(fresh.results, self._outputs)
        answer_of = np.full(result.num_rows, -1, np.int64)
        answer_of[result.index] = np.arange(len(result.index))
        columns = [
            *zip(OWN, own_columns(fresh.own, fresh.rows, self._source), strict=True),
            *self._privacy.columns_of(INPUT, inputs),
            *self._privacy.columns_of(OUTPUT, result.outputs, answer_of),
            (ERROR_FIELD, self._privacy.errors(result.to_table().column(ERROR_COLUMN))),
        ]
        schema = pa.schema([item for item, _ in columns])
        return pa.Table.from_arrays([values for _, values in columns], schema=schema)

    def _write(self, table: pa.Table) -> None:
        times: Any = table.column("_time").cast(pa.int64()).to_numpy()
        first_ns, last_ns = int(times.min()), int(times.max())
        meta = PartMeta(
            source=self._source,
            rows=table.num_rows,
            first_ns=first_ns,
            last_ns=last_ns,
            lost_rows=self._lost - self._lost_before,
            lost_rows_total=self._lost,
            sample=self._settings.sample,
            keep_errors=self._settings.keep_errors,
            dropped=self._privacy.dropped,
            hashed=self._privacy.hashed,
            key_id=self._privacy.key_id,
            schema=table.schema,
        )
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(sink, table.schema, compression="zstd") as writer:
            writer.add_key_value_metadata({METADATA.decode(): meta.to_bytes().decode()})
            writer.write_table(table, row_group_size=_ROW_GROUP_ROWS)
        name = part_name(first_ns, self._boot, self._written)
        self._place.write(f"{self._folder}/{name}", sink.getvalue())

    def _note_failure(self, exc: Exception) -> None:
        self._observer.failed()
        wait_s = min(LAST_RETRY_S, FIRST_RETRY_S * 2.0 ** min(self._failures, 10))
        self._retry_at = self._clock() + wait_s
        if self._failures % LOG_EVERY == 0:
            logger.error(
                "event=capture_failed handler=%s rows=%d failures=%d error=%s",
                self._source.handler,
                self._rows,
                self._failures + 1,
                _one_line(exc),
            )
        self._failures += 1

    def _forget(self) -> None:
        if self._failures:
            logger.info(
                "event=capture_recovered handler=%s failures=%d", self._source.handler, self._failures
            )
        self._tables = []
        self._bytes = self._rows = self._failures = 0
        self._since = self._retry_at = None


def _folder_name(handler: str) -> str:
    """One visible folder for any name: readers of datasets skip what begins with a dot or an underscore."""
    name = quote(handler, safe=" ()@,+=")
    return f"%{ord(name[0]):02X}{name[1:]}" if name[0] in "._" else name


def _taken(result: Result, rows: np.ndarray[Any, np.dtype[np.int64]]) -> Result:
    """The answers and errors of some rows, ascending, renumbered."""
    mask = np.zeros(result.num_rows, np.bool_)
    mask[rows] = True
    new = np.cumsum(mask) - 1
    kept = np.flatnonzero(mask[result.index])
    return Result(
        num_rows=len(rows),
        outputs=result.outputs.take(kept),
        index=new[result.index[kept]].astype(np.int64),
        errors=tuple(error.at(int(new[error.row])) for error in result.errors if mask[error.row]),
        buckets=result.buckets[kept],
    )


def _buckets(result: Result) -> list[int | None]:
    """For each row the rows that inference saw at once; None where the row failed, or nobody knows."""
    if len(result.buckets) == result.num_rows:
        return result.buckets.tolist()
    found: list[int | None] = [None] * result.num_rows
    for row, bucket in zip(result.index.tolist(), result.buckets.tolist(), strict=False):
        found[row] = bucket
    return found


def _one_line(exc: Exception) -> str:
    text = f"{type(exc).__name__}: {exc}".replace('"', "'").replace("\n", " ")
    return f'"{text}"'
