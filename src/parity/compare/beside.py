"""Two datasets read side by side, the next batches while those before are worked on.

Where both have the same row groups, a column whose chunk is the same bytes in both files is decoded once, and
not at all where nothing is needed of it but that it is the same.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from parity.compare.chunks import float_count, same_columns
from parity.compare.datasets import DatasetFile, ParquetDataset, opened

_RUN_ROWS = 1 << 20
_NOTHING = "\0nothing"


@dataclass(frozen=True)
class Beside:
    """As many rows of both datasets, None for the one that has ended.

    `same` are columns that are in neither batch, since they are the same bytes in both files, each with the
    number of its float values.
    """

    expected: pa.RecordBatch | None
    obtained: pa.RecordBatch | None
    same: Mapping[str, int] = field(default_factory=dict[str, int])


def read_beside(
    one: ParquetDataset,
    other: ParquetDataset,
    columns: Sequence[str],
    rows: int,
    pool: ThreadPoolExecutor,
    needed: Collection[str] | None = None,
) -> Generator[Beside, None, None]:
    """The rows of both datasets in order, at most `rows` at a time.

    Args:
        one: the dataset to measure by.
        other: the dataset to judge.
        columns: the columns to read of both.
        rows: the most rows of a batch.
        pool: two threads that read.
        needed: the columns that must be read even where they are the same bytes; all by default.

    Raises:
        DatasetError: a file cannot be read to its end.
    """
    if [file.groups for file in one.files] != [file.groups for file in other.files]:
        streams = [read_ahead(dataset.batches(columns, rows), pool) for dataset in (one, other)]
        for ours, theirs in side_by_side(streams[0], streams[1]):
            yield Beside(ours, theirs)
        return
    must = set(columns if needed is None else needed)
    for files in zip(one.files, other.files, strict=True):
        with opened(files[0].path) as first, opened(files[1].path) as second:
            for groups, shared in _runs(first, second, files):
                same: dict[str, int] = {}
                for name in shared & set(columns) - must:
                    count = float_count(first, name, groups)
                    if count is not None:
                        same[name] = count
                read = one.chosen([name for name in columns if name not in same])
                rest = other.chosen([name for name in columns if name not in shared])
                whole = other.chosen([name for name in columns if name not in same])
                if not read.names and not rest.names:
                    pairs = _unread(sum(files[0].groups[group] for group in groups), rows)
                else:
                    ours = read_ahead(one.read(files[0], first, read, rows, groups), pool)
                    theirs = read_ahead(other.read(files[1], second, rest, rows, groups), pool)
                    pairs = side_by_side(ours, theirs) if rest.names else ((batch, batch) for batch in ours)
                with closing(pairs):
                    for batch, lacking in pairs:
                        yield Beside(batch, _lent(batch, lacking, whole), same)
                        same = dict.fromkeys(same, 0)


def read_ahead(
    batches: Generator[pa.RecordBatch, None, None], pool: ThreadPoolExecutor
) -> Generator[pa.RecordBatch, None, None]:
    """The same batches, the next one being read while the one before is worked on."""
    pending = pool.submit(next, batches, None)
    try:
        while (batch := pending.result()) is not None:
            pending = pool.submit(next, batches, None)
            yield batch
    finally:
        if not pending.cancel():
            wait([pending])
        batches.close()


def side_by_side(
    one: Generator[pa.RecordBatch, None, None], other: Generator[pa.RecordBatch, None, None]
) -> Generator[tuple[pa.RecordBatch | None, pa.RecordBatch | None], None, None]:
    """Two streams cut to batches of equal length; None for the one that ends first, then its rest alone."""
    with closing(one), closing(other):
        ours, theirs = _next(one), _next(other)
        while ours is not None and theirs is not None:
            count = min(ours.num_rows, theirs.num_rows)
            yield ours.slice(0, count), theirs.slice(0, count)
            ours = ours.slice(count) if ours.num_rows > count else _next(one)
            theirs = theirs.slice(count) if theirs.num_rows > count else _next(other)
        while ours is not None:
            yield ours, None
            ours = _next(one)
        while theirs is not None:
            yield None, theirs
            theirs = _next(other)


def _unread(
    count: int, rows: int
) -> Generator[tuple[pa.RecordBatch | None, pa.RecordBatch | None], None, None]:
    """Batches of nothing but a number of rows."""
    for start in range(0, count, rows):
        nothing: pa.Array[Any] = pa.nulls(min(rows, count - start))
        batch = cast("Any", pa.RecordBatch).from_arrays([nothing], names=[_NOTHING])
        yield batch, batch


def _lent(
    lender: pa.RecordBatch | None, batch: pa.RecordBatch | None, schema: pa.Schema
) -> pa.RecordBatch | None:
    """The batch with the columns that it lacks, which are the lender's to the bit."""
    if lender is None or batch is None or not schema.names:
        return batch
    names = set(batch.schema.names)
    arrays = [(batch if name in names else lender).column(name) for name in schema.names]
    return cast("Any", pa.RecordBatch).from_arrays(arrays, schema=schema)


def _runs(
    one: pq.ParquetFile, other: pq.ParquetFile, files: tuple[DatasetFile, DatasetFile]
) -> Iterator[tuple[list[int], set[str]]]:
    """Row groups one after another for which the same columns are the same bytes, and these columns."""
    run: list[int] = []
    shared: set[str] = set()
    rows = 0
    with files[0].path.open("rb") as ours, files[1].path.open("rb") as theirs:
        descriptors = ours.fileno(), theirs.fileno()
        for group, count in enumerate(files[0].groups):
            same = same_columns(one, other, group, descriptors)
            if run and (same != shared or rows >= _RUN_ROWS):
                yield run, shared
                run, rows = [], 0
            run, shared, rows = [*run, group], same, rows + count
        if run:
            yield run, shared


def _next(batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
    return next((batch for batch in batches if batch.num_rows), None)
