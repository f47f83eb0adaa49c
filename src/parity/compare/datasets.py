"""A dataset on disk as a stream of record batches: one Parquet file, a folder of them, or a glob.

Memory is bounded by a few batches, whatever the number of rows and the size of row groups. Names that start
with "_" or "." are bookkeeping and are skipped; `name=value` folders are columns, as Hive writes them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from parity.compare.chunks import same_columns
from parity.compare.dtypes import type_findings, without_views
from parity.compare.files import find_files
from parity.compare.pieces import piece_rows
from parity.errors import DatasetError

_BUFFER_BYTES = 1 << 20
_PROBE_ROWS, _PROBE_BYTES = 1_000, 16 << 20
_RUN_ROWS = 1 << 20
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class _File:
    path: Path
    groups: tuple[int, ...]
    """The rows of each row group."""
    partitions: dict[str, str | None]


class ParquetDataset:
    """The rows of one or many Parquet files, in the order of their names.

    Attributes:
        name: what it was called by.
        schema: the columns of all files, those of folder names last.
        num_rows: rows of all files.

    Raises:
        DatasetError: there is no such file, one cannot be read, or the files differ in their columns.
    """

    def __init__(self, source: str | Path) -> None:
        self.name = str(source)
        base, paths = find_files(self.name)
        self._files: list[_File] = []
        self.num_rows, self._size = 0, 0
        schema: pa.Schema | None = None
        for path in paths:
            found, metadata = _footer(path)
            partitions = _partitions(path.relative_to(base).parts[:-1], found.names)
            groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
            self._files.append(_File(path, tuple(group.num_rows for group in groups), partitions))
            self.num_rows += metadata.num_rows
            self._size += sum(group.total_byte_size for group in groups)
            if schema is None:
                schema = found
            else:
                self._check_alike(schema, found, path)
        assert schema is not None
        self._folders = _folder_columns([file.partitions for file in self._files], self.name)
        self.schema = pa.schema([*schema, *self._folders])

    @cached_property
    def row_bytes(self) -> int:
        """About how large a row is in memory, from the footers and a look at the first rows."""
        told = self._size // max(1, self.num_rows)
        with closing(self.batches(rows=max(1, min(_PROBE_ROWS, _PROBE_BYTES // max(1, told))))) as batches:
            first = next(batches, None)
        seen = 0 if first is None else first.nbytes // max(1, first.num_rows)
        return max(1, told, seen)

    def batches(
        self, columns: Sequence[str] | None = None, rows: int | None = None
    ) -> Generator[pa.RecordBatch, None, None]:
        """All rows in order, at most `rows` at a time; all columns, or these, in the dataset's order.

        Without `rows`, as many as fit in `PIECE_BYTES`.

        Raises:
            DatasetError: a file cannot be read to its end.
        """
        rows = rows or piece_rows(self.row_bytes)
        for file in self._files:
            with _opened(file.path) as parquet:
                yield from self._read(file, parquet, self._chosen(columns), rows)

    def batches_beside(
        self, other: ParquetDataset, columns: Sequence[str], rows: int, pool: ThreadPoolExecutor
    ) -> Generator[tuple[pa.RecordBatch | None, pa.RecordBatch | None], None, None]:
        """The rows of both datasets in order, in batches of equal length; None for the one that ends first.

        Columns that are the same bytes in both files are read once. Both need two threads of `pool`.

        Raises:
            DatasetError: a file cannot be read to its end.
        """
        if [file.groups for file in self._files] != [file.groups for file in other._files]:
            streams = [read_ahead(dataset.batches(columns, rows), pool) for dataset in (self, other)]
            yield from side_by_side(streams[0], streams[1])
            return
        for files in zip(self._files, other._files, strict=True):
            with _opened(files[0].path) as one, _opened(files[1].path) as two:
                for groups, shared in _runs(one, two, files):
                    whole = other._chosen(columns)
                    rest = other._chosen([name for name in whole.names if name not in shared])
                    ours = read_ahead(self._read(files[0], one, self._chosen(columns), rows, groups), pool)
                    theirs = read_ahead(other._read(files[1], two, rest, rows, groups), pool)
                    pairs = side_by_side(ours, theirs) if rest.names else ((batch, batch) for batch in ours)
                    with closing(pairs):
                        for batch, lacking in pairs:
                            yield batch, _lent(batch, lacking, whole)

    def _chosen(self, columns: Sequence[str] | None) -> pa.Schema:
        return pa.schema([field for field in self.schema if columns is None or field.name in columns])

    def _read(
        self,
        file: _File,
        parquet: pq.ParquetFile,
        schema: pa.Schema,
        rows: int,
        groups: Sequence[int] | None = None,
    ) -> Generator[pa.RecordBatch, None, None]:
        folders = {field.name for field in self._folders}
        names = [name for name in schema.names if name not in folders]
        some = list(range(len(file.groups)) if groups is None else groups)
        # pyarrow cannot read a dictionary inside a list across row groups at once.
        inner = any(_holds_inner_dictionary(field.type) for field in schema if field.name in names)
        try:
            for runs in [[group] for group in some] if inner else [some]:
                for batch in parquet.iter_batches(rows, runs, names, use_threads=False):
                    arrays = [
                        _constant(file.partitions[field.name], field.type, batch.num_rows)
                        if field.name in folders
                        else _of_type(batch.column(field.name), field.type)
                        for field in schema
                    ]
                    yield cast("Any", pa.RecordBatch).from_arrays(arrays, schema=schema)
        except pa.ArrowNotImplementedError as exc:
            raise DatasetError(f"{file.path}: holds what pyarrow cannot read: {exc}") from exc
        except (OSError, pa.ArrowException) as exc:
            text = " ".join(str(exc).split())
            raise DatasetError(
                f"{file.path}: cannot be read to its end: {text}; the file is damaged, write it anew"
            ) from exc

    def _check_alike(self, schema: pa.Schema, found: pa.Schema, path: Path) -> None:
        first = self._files[0].path
        for name in sorted({*schema.names} ^ {*found.names}):
            there, lacking = (first, path) if name in schema.names else (path, first)
            raise DatasetError(
                f"{self.name}: column {name!r} is in {there} and not in {lacking}; "
                "the files of a dataset have the same columns"
            )
        for name in schema.names:
            for finding in type_findings(schema.field(name), found.field(name)):
                raise DatasetError(
                    f"{self.name}: column {name!r} is {schema.field(name).type} in {first} and "
                    f"{found.field(name).type} in {path} ({finding.kind}); write all files with one schema"
                )


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


def _lent(
    lender: pa.RecordBatch | None, batch: pa.RecordBatch | None, schema: pa.Schema
) -> pa.RecordBatch | None:
    """The batch with the columns that it lacks, which are the lender's to the bit."""
    if lender is None or batch is None:
        return batch
    names = set(batch.schema.names)
    arrays = [(batch if name in names else lender).column(name) for name in schema.names]
    return cast("Any", pa.RecordBatch).from_arrays(arrays, schema=schema)


def _runs(
    one: pq.ParquetFile, other: pq.ParquetFile, files: tuple[_File, _File]
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


@contextmanager
def _opened(path: Path) -> Generator[pq.ParquetFile]:
    try:
        parquet = pq.ParquetFile(
            path, buffer_size=_BUFFER_BYTES, pre_buffer=False, page_checksum_verification=True
        )
    except (OSError, pa.ArrowException) as exc:
        text = " ".join(str(exc).split())
        raise DatasetError(f"{path}: not readable as Parquet: {text}") from exc
    with parquet:
        yield parquet


def _next(batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
    return next((batch for batch in batches if batch.num_rows), None)


def _footer(path: Path) -> tuple[pa.Schema, pq.FileMetaData]:
    with _opened(path) as parquet:
        plain = [field.with_type(without_views(field.type)) for field in parquet.schema_arrow]
        return pa.schema(plain), parquet.metadata


def _of_type(values: pa.Array[Any], kind: pa.DataType) -> pa.Array[Any]:
    return values if values.type == kind else values.cast(kind)


def _holds_inner_dictionary(kind: pa.DataType) -> bool:
    if pat.is_nested(kind):
        children = [cast("Any", kind).field(index).type for index in range(kind.num_fields)]
        return any(pat.is_dictionary(child) or _holds_inner_dictionary(child) for child in children)
    return False


def _constant(text: str | None, kind: pa.DataType, count: int) -> pa.Array[Any]:
    value = None if text is None else int(text) if kind == pa.int64() else text
    return cast("Any", pa).repeat(pa.scalar(value, kind), count)


def _partitions(folders: Sequence[str], columns: Sequence[str]) -> dict[str, str | None]:
    """What the folders around a file say about its rows, but for columns that the file has itself."""
    found: dict[str, str | None] = {}
    for folder in folders:
        name, equals, value = folder.partition("=")
        if equals and name and name not in columns:
            found[name] = None if value == _HIVE_NULL else unquote(value)
    return found


def _folder_columns(partitions: Sequence[dict[str, str | None]], name: str) -> list[pa.Field[Any]]:
    """The columns that folder names make: int64 where all values are whole numbers, else string."""
    columns = list(partitions[0])
    if any(list(other) != columns for other in partitions):
        raise DatasetError(f"{name}: some files lie in `name=value` folders that others do not have")
    fields: list[pa.Field[Any]] = []
    for column in columns:
        values = {other[column] for other in partitions} - {None}
        whole = bool(values) and all(_is_whole(value or "") for value in values)
        fields.append(pa.field(column, pa.int64() if whole else pa.string()))
    return fields


def _is_whole(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and str(int(text)) == text and abs(int(text)) < 2**63
