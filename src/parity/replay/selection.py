"""Which recorded rows to replay, and in which portions: streamed, so that a capture may be of any size."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parity.capture import Capture, PartMeta, in_sample, place_of, read_refused
from parity.errors import ConfigError, shown

PIECE_ROWS = 8192
PORTION_ROWS = 100_000
PORTION_BYTES = 256 * 1024 * 1024

_SALT = b"parity.replay"


@dataclass(frozen=True)
class Wanted:
    """Which rows to take, all by default.

    Attributes:
        versions: versions of the handler.
        since_ns: from this time on, in nanoseconds since 1970.
        until_ns: before this time.
        sample: the share of requests, by a hash of their ids that has nothing to do with the capture's own.
        limit: the first so many rows.

    Raises:
        ConfigError: the sample or the limit makes no sense.
    """

    versions: tuple[str, ...] = ()
    since_ns: int | None = None
    until_ns: int | None = None
    sample: float = 1.0
    limit: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.sample <= 1:
            raise ConfigError(f"sample = {shown(self.sample)} is not a share above 0 and up to 1")
        if self.limit is not None and self.limit < 1:
            raise ConfigError(f"limit = {shown(self.limit)} is not a number of rows")

    def takes(self, meta: PartMeta) -> bool:
        """Whether a part may have wanted rows."""
        if self.versions and meta.source.version not in self.versions:
            return False
        if self.since_ns is not None and meta.last_ns < self.since_ns:
            return False
        return self.until_ns is None or meta.first_ns < self.until_ns

    def of(self, table: pa.Table) -> pa.Table:
        """The wanted rows of a piece; the limit is not looked at."""
        times = np.asarray(table.column("_time").cast(pa.int64()).to_numpy())
        keep = np.ones(table.num_rows, np.bool_)
        if self.since_ns is not None:
            keep &= times >= self.since_ns
        if self.until_ns is not None:
            keep &= times < self.until_ns
        if self.sample < 1:
            known: dict[str, bool] = {}
            for row, name in enumerate(table.column("_request_id").to_pylist()):
                text = str(name)
                if text not in known:
                    known[text] = in_sample(text, self.sample, _SALT)
                keep[row] &= known[text]
        return table if keep.all() else table.filter(pa.array(keep))


@dataclass(frozen=True)
class Portion:
    """Rows that can be replayed together: of one profile, one bucket, and the same columns.

    Attributes:
        table: the rows as they lie in the capture.
        meta: what a part of them says; of its times and counts take no notice.
        bucket: the batch size that inference saw, where the profile has buckets and the rows have an answer.
    """

    table: pa.Table
    meta: PartMeta
    bucket: int | None = None


@dataclass
class _Pile:
    meta: PartMeta
    bucket: int | None
    tables: list[pa.Table] = field(default_factory=list[pa.Table])
    rows: int = 0
    size_bytes: int = 0

    def portion(self) -> Portion:
        """What has piled up, which is then gone."""
        table = pa.concat_tables(self.tables)
        self.tables, self.rows, self.size_bytes = [], 0, 0
        return Portion(table, self.meta, self.bucket)


def portions(
    capture: Capture,
    wanted: Wanted,
    *,
    by_bucket: bool = True,
    rows: int = PORTION_ROWS,
    size_bytes: int = PORTION_BYTES,
) -> Iterator[Portion]:
    """The wanted rows of a capture's parts; a portion is yielded at `rows` rows or `size_bytes` in memory.

    Within a portion rows are in the order of the parts. Failed rows have no bucket of their own, and stand
    with those of the profile as it was.

    Raises:
        DatasetError: a part cannot be read.
    """
    piles: dict[tuple[object, ...], _Pile] = {}
    left = wanted.limit
    for part in capture.parts:
        if not wanted.takes(part.meta):
            continue
        uses_buckets = by_bucket and bool(part.meta.source.profile.get("buckets"))
        for piece in capture.read(part, min(rows, PIECE_ROWS)):
            table = wanted.of(piece)
            if left is not None:
                table = table.slice(0, left)
                left -= table.num_rows
            for bucket, found in _by_bucket(table) if uses_buckets else [(None, table)]:
                if found.num_rows:
                    key = (*_kind(part.meta), bucket)
                    pile = piles.setdefault(key, _Pile(part.meta, bucket))
                    pile.tables.append(found)
                    pile.rows += found.num_rows
                    pile.size_bytes += found.nbytes
                    if pile.rows >= rows or pile.size_bytes >= size_bytes:
                        yield pile.portion()
            if sum(pile.size_bytes for pile in piles.values()) >= size_bytes:
                yield max(piles.values(), key=lambda pile: pile.size_bytes).portion()
            if left == 0:
                break
        if left == 0:
            break
    for pile in piles.values():
        if pile.rows:
            yield pile.portion()


def count_refused(capture: Capture, wanted: Wanted) -> tuple[int, int]:
    """How many recorded requests had rows that did not fit the schema, and how many such rows.

    Raises:
        DatasetError: a file of refused requests cannot be read.
    """
    requests = rows = 0
    columns = ["_request_id", "_time", "_handler", "_version", "refused_rows"]
    for table in read_refused(place_of(capture.folder), capture.folder, columns):
        for found in wanted.of(table).select(columns[2:]).to_pylist():
            is_wanted = not wanted.versions or found["_version"] in wanted.versions
            if found["_handler"] in capture.handlers and is_wanted:
                requests += 1
                rows += found["refused_rows"]
    return requests, rows


def moment_ns(text: str, option: str) -> int:
    """A date, or a date and time, in ISO 8601 as nanoseconds since 1970; without a zone it is UTC.

    Raises:
        ConfigError: it is neither.
    """
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(
            f"{option} {text!r} is no time; write 2026-11-29, 2026-11-29T21:00 or 2026-11-29T21:00+01:00"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    since_epoch = moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return (since_epoch // datetime.timedelta(microseconds=1)) * 1000


def _kind(meta: PartMeta) -> tuple[object, ...]:
    """What rows must share to be replayed together."""
    profile = tuple(sorted((key, repr(value)) for key, value in meta.source.profile.items()))
    environment = tuple(sorted(meta.source.fingerprint.items()))
    return profile, environment, meta.dropped, meta.hashed, meta.schema.serialize().to_pybytes()


def _by_bucket(table: pa.Table) -> Sequence[tuple[int | None, pa.Table]]:
    column = table.column("_bucket")
    found: list[tuple[int | None, pa.Table]] = []
    for value in sorted(item for item in column.unique().to_pylist() if item is not None):
        mask = pc.equal(column, pa.scalar(value, column.type))
        found.append((int(value), table.filter(mask)))
    if column.null_count:
        found.append((None, table.filter(column.is_null())))
    return found
