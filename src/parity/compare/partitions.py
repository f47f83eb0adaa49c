"""Pair the rows of two datasets by key where they come in any order, in bounded memory.

The rows of each dataset are written to temporary Arrow files, one for each part; the part of a row is a hash
of its key, so that a row and its counterpart are in the same part. Then part after part is paired in memory.
Of more parts than files may be open, some are written and paired before the datasets are read for the next.
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc as ipc

from parity.compare.alignment import KeyFindings, key_values, pair_keys
from parity.compare.beside import read_ahead, side_by_side
from parity.compare.comparison import Finding
from parity.compare.datasets import ParquetDataset
from parity.compare.hashing import hash_rows
from parity.compare.row_errors import count_errors
from parity.compare.running import RunningComparison
from parity.compare.sides import Side
from parity.compare.tables import compare_pairs
from parity.errors import DatasetError

Positions = npt.NDArray[np.int64]

MAX_PARTS = 256
"""Parts that are written at once, each to a file."""

_MAX_HASHES = 1 << 24
_ROWS_A_PART = 2_048
_HELD_BYTES = 64 << 20
_ROW = "\0row"


@dataclass(frozen=True)
class PairedByKey:
    """What pairing found beside the comparison itself."""

    findings: list[Finding]
    errors: tuple[int, int]


def in_step(
    expected: ParquetDataset, obtained: ParquetDataset, key: Sequence[str], kinds: Sequence[pa.DataType]
) -> bool:
    """Whether both datasets have the same keys in the same order, none of them twice.

    "No" may also mean that more memory would be needed to tell.
    """
    if expected.num_rows != obtained.num_rows:
        return False
    unique = _Unique(len(key) == 1)
    streams = [dataset.batches(key) for dataset in (expected, obtained)]
    with closing(side_by_side(streams[0], streams[1])) as pairs:
        for ours, theirs in pairs:
            if ours is None or theirs is None:
                return False
            one, other = (key_values(pa.Table.from_batches([b]), key, kinds) for b in (ours, theirs))
            if not all(mine.equals(yours) for mine, yours in zip(one, other, strict=True)):
                return False
            if not unique.add(one):
                return False
    return unique.proven()


class _Unique:
    """Whether keys are all different: they ascend, or the hashes of all of them differ."""

    def __init__(self, may_ascend: bool) -> None:
        self._ascends = may_ascend
        self._last: pa.Array[Any] | None = None
        self._hashes: list[npt.NDArray[np.uint64]] = []
        self._count = 0

    def add(self, keys: Sequence[pa.Array[Any]]) -> bool:
        """Take in more keys; False when it can no longer be told."""
        if self._ascends:
            self._ascends = self._continues(keys[0])
        self._count += len(keys[0])
        if self._count <= _MAX_HASHES:
            self._hashes.append(hash_rows(keys))
        else:
            self._hashes.clear()
        return self._ascends or self._count <= _MAX_HASHES

    def proven(self) -> bool:
        """Whether no key was there twice."""
        if self._ascends or not self._count:
            return True
        hashes = np.concatenate(self._hashes)
        hashes.sort()
        return not bool((hashes[1:] == hashes[:-1]).any())

    def _continues(self, values: pa.Array[Any]) -> bool:
        if values.null_count:
            return False
        before = values.slice(0, len(values) - 1)
        try:
            ascends = cast("Any", pc.all(pc.less(before, values.slice(1)))).as_py() is not False
            if self._last is not None and ascends:
                ascends = cast("Any", pc.less)(self._last, values[0]).as_py()
        except pa.ArrowNotImplementedError:
            return False
        self._last = values[-1]
        return bool(ascends)


def compare_parts(
    expected: ParquetDataset,
    obtained: ParquetDataset,
    columns: Sequence[str],
    key: Sequence[str],
    kinds: Sequence[pa.DataType],
    running: RunningComparison,
    parts: int,
    temporary: str | Path | None,
) -> PairedByKey:
    """Compare two datasets by key, cut into parts.

    Raises:
        DatasetError: a dataset cannot be read, or there is no place for the temporary files.
    """
    found, errors = KeyFindings(key, expected.num_rows), [0, 0]
    names = list(dict.fromkeys([*key, *columns]))
    with _folder(temporary, parts) as folder:
        for first in range(0, parts, MAX_PARTS):
            some = range(first, min(first + MAX_PARTS, parts))
            sides = [
                _Parts(dataset, names, key, kinds, parts, some, folder) for dataset in (expected, obtained)
            ]
            for part in some:
                tables = [side.read(part) for side in sides]
                rows = [table.column(_ROW).to_numpy() for table in tables]
                tables = [table.drop_columns([_ROW]) for table in tables]
                for place, table in enumerate(tables):
                    errors[place] += count_errors(table)
                keys = [key_values(table, key, kinds) for table in tables]
                pairing = pair_keys(keys[0], keys[1])
                found.add(pairing, keys[0], keys[1], (rows[0], rows[1]))
                ours, theirs = (Side(table, numbers) for table, numbers in zip(tables, rows, strict=True))
                compare_pairs(ours, theirs, running, pairing.expected, pairing.obtained)
    return PairedByKey(found.findings(), (errors[0], errors[1]))


class _Parts:
    """Some parts of a dataset that is cut into `parts`, in temporary files where there is more than one."""

    def __init__(
        self,
        dataset: ParquetDataset,
        columns: Sequence[str],
        key: Sequence[str],
        kinds: Sequence[pa.DataType],
        parts: int,
        some: range,
        folder: Path | None,
    ) -> None:
        self._key, self._kinds, self._parts, self._some = key, kinds, parts, some
        self._held_rows = max(1, min(_ROWS_A_PART * len(some), _HELD_BYTES // dataset.row_bytes))
        wanted = [field for field in dataset.schema if field.name in columns]
        schema = pa.schema([*wanted, pa.field(_ROW, pa.int64())])
        numbered = self._numbered(dataset, columns, schema)
        if folder is None:
            self._whole = pa.Table.from_batches(numbered, schema)
            return
        self._folder = Path(tempfile.mkdtemp(dir=folder))
        try:
            self._write(numbered, schema)
        except OSError as exc:
            raise DatasetError(
                f"temporary files in {folder.parent}: {exc}; about {dataset.num_rows * dataset.row_bytes:,} "
                "bytes are needed for each dataset; name a folder with room for them (--temporary)"
            ) from exc

    def read(self, part: int) -> pa.Table:
        """The rows of a part; its file is removed."""
        if self._parts == 1:
            return self._whole
        path = self._path(part)
        with pa.memory_map(str(path)) as file:
            table = ipc.open_stream(file).read_all().combine_chunks()
        path.unlink()
        return table

    def _path(self, part: int) -> Path:
        return self._folder / f"part-{part:05d}.arrow"

    def _numbered(
        self, dataset: ParquetDataset, columns: Sequence[str], schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        start = 0
        with ThreadPoolExecutor(1, "parity-compare-read") as pool:
            for batch in read_ahead(dataset.batches(columns), pool):
                rows = pa.array(np.arange(start, start + batch.num_rows))
                start += batch.num_rows
                yield cast("Any", pa.RecordBatch).from_arrays([*batch.columns, rows], schema=schema)

    def _write(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
        with ExitStack() as stack:
            files = [stack.enter_context(pa.OSFile(str(self._path(part)), "wb")) for part in self._some]
            writers = [stack.enter_context(ipc.new_stream(file, schema)) for file in files]
            held: list[pa.RecordBatch] = []
            rows = 0
            for batch in batches:
                held.append(batch)
                rows += batch.num_rows
                if rows >= self._held_rows:
                    self._spread(pa.Table.from_batches(held), writers)
                    held, rows = [], 0
            if held:
                self._spread(pa.Table.from_batches(held), writers)

    def _spread(self, rows: pa.Table, writers: Sequence[Any]) -> None:
        """Write each row to the file of its part, where that is one of these."""
        hashes = hash_rows(key_values(rows, self._key, self._kinds))
        part = ((hashes >> np.uint64(20)) % np.uint64(self._parts)).astype(np.int64) - self._some.start
        here = np.flatnonzero((part >= 0) & (part < len(writers)))
        part = part[here].astype(np.uint8)
        sorted_rows = rows.combine_chunks().take(here[np.argsort(part, kind="stable")])
        start = 0
        for writer, count in zip(writers, np.bincount(part, minlength=len(writers)).tolist(), strict=True):
            if count:
                writer.write_table(sorted_rows.slice(start, count))
            start += count


@contextmanager
def _folder(temporary: str | Path | None, parts: int) -> Generator[Path | None]:
    """A temporary folder where there is more than one part, removed with all that is in it."""
    if parts == 1:
        yield None
        return
    try:
        made = tempfile.TemporaryDirectory(prefix="parity-compare-", dir=temporary)
    except OSError as exc:
        raise DatasetError(f"--temporary {temporary}: no temporary folder can be made there: {exc}") from exc
    with made as folder:
        yield Path(folder)
