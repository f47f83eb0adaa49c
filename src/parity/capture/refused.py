"""Requests with rows that did not fit the input schema: what was sent, as it came, and what was wrong.

Such rows never became a batch, so they cannot stand among the others, whose columns have types. They have
files of their own, `<handler>/_refused/refused-*.parquet`, a row for each request; readers of datasets skip
what begins with an underscore.
"""

from __future__ import annotations

import json
import logging
import secrets
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from parity.capture.attempts import Attempts
from parity.capture.format import OWN, Source, part_name
from parity.capture.gathering import Origin
from parity.capture.parts import BUFFER_FACTOR, CaptureObserver, NoObserver, folder_name
from parity.capture.places import Place
from parity.capture.privacy import Privacy
from parity.capture.sampling import in_sample
from parity.capture.settings import CaptureSettings
from parity.errors import DatasetError, RowError

logger = logging.getLogger(__name__)

FORMAT: Final = 1
FOLDER: Final = "_refused"
PREFIX: Final = "refused-"
METADATA: Final = b"parity.capture.refused"
MOST_ERRORS: Final = 100
"""Of one request so many errors are recorded; `refused_rows` counts them all."""

_MESSAGE_CHARACTERS = 1000
_TYPE_CHARACTERS = 200
_OWN_BYTES = 200

ERRORS_TYPE: Final = pa.list_(
    pa.struct(
        [
            pa.field("row", pa.int32(), nullable=False),
            pa.field("field", pa.string()),
            pa.field("message", pa.string()),
        ]
    )
)

_SHARED = ("_request_id", "_time", "_wire", "_sampled", "_handler", "_version", "_runner")

COLUMNS: Final = pa.schema(
    [
        *(OWN.field(name) for name in _SHARED),
        pa.field("content_type", pa.string(), nullable=False),
        pa.field("json_length", pa.int64()),
        pa.field("body", pa.large_binary()),
        pa.field("body_bytes", pa.int64(), nullable=False),
        pa.field("refused_rows", pa.int64(), nullable=False),
        pa.field("errors", ERRORS_TYPE, nullable=False),
    ]
)


@dataclass(frozen=True, slots=True)
class Refused:
    """A request with rows that did not fit.

    Attributes:
        origin: the request.
        content_type: what it said that its body is, the first 200 characters; empty where it said nothing.
        json_length: its `Inference-Header-Content-Length`; None where it had none.
        body: the body without its compression; None where it is not to be recorded.
        body_bytes: how long the body was.
        refused_rows: how many rows did not fit.
        errors: what was wrong with the first of them, the first 1000 characters each.
    """

    origin: Origin
    content_type: str
    json_length: int | None
    body: bytes | None
    body_bytes: int
    refused_rows: int
    errors: tuple[RowError, ...]

    @classmethod
    def of(
        cls,
        origin: Origin,
        errors: Sequence[RowError],
        body: bytes,
        *,
        most_bytes: float,
        content_type: str = "",
        json_length: int | None = None,
    ) -> Refused:
        """A request as it is to be recorded; a body of more than `most_bytes` is left out, not cut."""
        return cls(
            origin,
            content_type[:_TYPE_CHARACTERS],
            json_length,
            body if len(body) <= most_bytes else None,
            len(body),
            len(errors),
            tuple(map(_cut, errors[:MOST_ERRORS])),
        )

    @property
    def due_rows(self) -> int:
        """How many rows are lost where it cannot be recorded."""
        return self.refused_rows

    @property
    def nbytes(self) -> int:
        """About how much memory it takes."""
        texts = [self.content_type, self.origin.request_id]
        for error in self.errors:
            texts += (error.message, error.field or "")
        return _OWN_BYTES * (1 + len(self.errors)) + sum(map(sys.getsizeof, texts)) + len(self.body or b"")


class RefusedWriter:
    """Gathers refused requests of one handler and writes them. For one thread at a time.

    Args:
        source: what refused them.
        privacy: what to hide; where it hides anything, neither bodies nor messages are recorded.
        settings: sample and rotation.
        place: where files go.
        lose: told of rows that were to be recorded and were not.
        observer: hears of rows and failures.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        source: Source,
        privacy: Privacy,
        settings: CaptureSettings,
        place: Place,
        *,
        lose: Callable[[int], None],
        observer: CaptureObserver | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source = source
        self._hides = privacy.hides
        self._settings = settings
        self._place = place
        self._lose = lose
        self._observer = observer or NoObserver()
        self._clock = clock
        self._folder = f"{folder_name(source.handler)}/{FOLDER}"
        self._boot = secrets.token_hex(4)
        self._kept: list[tuple[Refused, bool]] = []
        self._bytes = 0
        self._since: float | None = None
        self._attempts = Attempts(source.handler, clock)
        self._written = 0

    @property
    def due_at(self) -> float | None:
        """When `tick` has something to write, on the clock; None when nothing waits."""
        if self._since is None:
            return None
        is_large = self._bytes >= self._settings.rotate_bytes
        due = self._since if is_large else self._since + self._settings.rotate_s
        retry_at = self._attempts.retry_at
        return due if retry_at is None else max(due, retry_at)

    def add(self, refused: Refused) -> None:
        """Keep a request that belongs to the sample, or all where failures are kept."""
        sampled = in_sample(refused.origin.request_id, self._settings.sample)
        if not sampled and not self._settings.keep_errors:
            return
        limit = BUFFER_FACTOR * self._settings.rotate_bytes
        if self._attempts.retry_at is not None and self._bytes >= limit:
            self._lose(refused.refused_rows)
            return
        self._kept.append((refused, sampled))
        self._bytes += refused.nbytes
        if self._since is None:
            self._since = self._clock()

    def tick(self) -> None:
        """Write what is due."""
        due = self.due_at
        if due is not None and due <= self._clock():
            self.flush()

    def flush(self) -> bool:
        """Write what there is, due or not; whether that worked. What could not be written stays for later."""
        if not self._kept:
            self._forget()
            return True
        rows = sum(refused.refused_rows for refused, _ in self._kept)
        try:
            table = pa.Table.from_pylist([self._row(*kept) for kept in self._kept], schema=COLUMNS)
        except Exception as exc:  # it would fail again
            logger.error("event=capture_failed handler=%s rows=%d", self._source.handler, rows, exc_info=exc)
            self.give_up()
            return True
        try:
            self._write(table, rows)
        except Exception as exc:  # noqa: BLE001 - a capture never disturbs the server
            self._observer.failed()
            self._attempts.failed(exc, rows)
            return False
        self._observer.captured(rows)
        self._written += 1
        self._forget()
        return True

    def give_up(self) -> None:
        """Count what could not be written as lost."""
        self._lose(sum(refused.refused_rows for refused, _ in self._kept))
        self._forget()

    def _write(self, table: pa.Table, rows: int) -> None:
        first_ns = min(refused.origin.time_ns for refused, _ in self._kept)
        meta = {"format": FORMAT, "requests": len(self._kept), "refused_rows": rows}
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(sink, COLUMNS, compression="zstd") as writer:
            writer.add_key_value_metadata({METADATA.decode(): json.dumps(meta)})
            writer.write_table(table)
        name = part_name(first_ns, self._boot, self._written, PREFIX)
        self._place.write(f"{self._folder}/{name}", sink.getvalue())

    def _row(self, refused: Refused, sampled: bool) -> dict[str, Any]:
        hides = self._hides
        return {
            "_request_id": refused.origin.request_id,
            "_time": refused.origin.time_ns,
            "_wire": refused.origin.wire,
            "_sampled": sampled,
            "_handler": self._source.handler,
            "_version": self._source.version,
            "_runner": self._source.runner,
            "content_type": refused.content_type,
            "json_length": refused.json_length,
            "body": None if hides else refused.body,
            "body_bytes": refused.body_bytes,
            "refused_rows": refused.refused_rows,
            "errors": [
                {
                    "row": error.row,
                    "field": error.field and _text(error.field),
                    "message": None if hides else _text(error.message),
                }
                for error in refused.errors
            ],
        }

    def _forget(self) -> None:
        self._attempts.over()
        self._kept = []
        self._bytes = 0
        self._since = None


def _cut(error: RowError) -> RowError:
    """The same error with a message of bounded length: it may quote what was sent."""
    if len(error.message) <= _MESSAGE_CHARACTERS:
        return error
    return replace(error, message=error.message[:_MESSAGE_CHARACTERS])


def _text(text: str) -> str:
    """What Arrow can hold of a text: half a surrogate pair by its number."""
    return text.encode("utf-8", "backslashreplace").decode()


def read_refused(place: Place, where: str, columns: Iterable[str] | None = None) -> Iterable[pa.Table]:
    """The refused requests of a capture, a file at a time, by time.

    Args:
        place: the capture's folder, or one handler's in it.
        where: what messages call it.
        columns: the columns to read; all when not given.

    Raises:
        DatasetError: a file is damaged, of a later format, or none of refused requests.
    """
    wanted = None if columns is None else list(columns)
    for name in place.parts(PREFIX):
        try:
            file = pq.ParquetFile(place.open(name))
            meta = json.loads((file.metadata.metadata or {})[METADATA])
            version = meta["format"]
            table = file.read(wanted) if version == FORMAT else None
        except (pa.ArrowException, OSError, KeyError, ValueError, TypeError) as exc:
            raise DatasetError(
                f"{where}/{name} is no file of refused requests, or is damaged: {exc}; restore it, or "
                "remove it"
            ) from exc
        if table is None:
            raise DatasetError(
                f"{where}/{name} is of format {version} of refused requests; this parity reads {FORMAT}: "
                "update parity, or capture again"
            )
        yield table
