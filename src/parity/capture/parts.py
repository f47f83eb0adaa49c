"""Rows become parts: gathered, and written when they are large or old enough. No thread in here."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable
from typing import Any, Protocol
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from parity.capture.attempts import Attempts
from parity.capture.format import METADATA, PartMeta, Source, part_name
from parity.capture.gathering import Kept, Scored, keep, table_of
from parity.capture.places import Place
from parity.capture.privacy import Privacy
from parity.capture.settings import CaptureSettings
from parity.schema import Schema

logger = logging.getLogger(__name__)

_COMPACT_BATCHES = 64
_ROW_GROUP_ROWS = 65536
BUFFER_FACTOR = 2
"""While the target fails, so many times `rotate_mb` are kept; later rows are lost."""


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
        self._folder = folder_name(source.handler)
        self._boot = secrets.token_hex(4)
        self._fresh: list[Kept] = []
        self._tables: list[pa.Table] = []
        self._bytes = 0
        self._rows = 0
        self._since: float | None = None
        self._attempts = Attempts(source.handler, clock)
        self._written = 0
        self._lost = 0
        self._lost_before = 0

    @property
    def due_at(self) -> float | None:
        """When `tick` has something to write, on the clock; None when nothing waits."""
        if self._since is None:
            return None
        due = self._since + self._settings.rotate_s
        if self._bytes >= self._settings.rotate_bytes:
            due = self._since
        retry_at = self._attempts.retry_at
        return due if retry_at is None else max(due, retry_at)

    def add(self, scored: Scored) -> None:
        """Keep the rows of a batch that belong to the sample, or failed where failures are kept."""
        kept = keep(scored, self._settings.sample, errors=self._settings.keep_errors)
        if kept is None:
            return
        if self._attempts.retry_at is not None and self._bytes >= BUFFER_FACTOR * self._settings.rotate_bytes:
            self.lose(kept.rows)
            return
        self._fresh.append(kept)
        self._rows += kept.rows
        self._bytes += kept.nbytes
        if self._since is None:
            self._since = self._clock()
        if len(self._fresh) >= _COMPACT_BATCHES:
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
        try:
            table = pa.concat_tables(self._tables)
            self._tables = [table]
            self._write(table)
        except Exception as exc:  # noqa: BLE001 - a capture never disturbs the server
            self._observer.failed()
            self._attempts.failed(exc, self._rows)
            return False
        self._observer.captured(table.num_rows)
        self._forget()
        self._written += 1
        self._lost_before = self._lost
        return True

    def give_up(self) -> None:
        """Count what could not be written as lost."""
        self._compact()
        self.lose(self._rows)
        self._forget()

    def _compact(self) -> None:
        """Make the rows that were kept since last time into one Arrow table."""
        fresh, self._fresh = self._fresh, []
        if not fresh:
            return
        self._bytes -= sum(kept.nbytes for kept in fresh)
        try:
            table = table_of(fresh, self._source, self._outputs, self._privacy)
        except Exception as exc:
            rows = sum(kept.rows for kept in fresh)
            logger.error("event=capture_failed handler=%s rows=%d", self._source.handler, rows, exc_info=exc)
            self._rows -= rows
            self.lose(rows)
            return
        self._tables.append(table)
        self._bytes += table.nbytes

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

    def _forget(self) -> None:
        self._attempts.over()
        self._tables = []
        self._bytes = self._rows = 0
        self._since = None


def folder_name(handler: str) -> str:
    """One visible folder for any name: readers of datasets skip what begins with a dot or an underscore."""
    name = quote(handler, safe=" ()@,+=")
    return f"%{ord(name[0]):02X}{name[1:]}" if name[0] in "._" else name
