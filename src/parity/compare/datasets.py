"""A dataset on disk as a stream of record batches: one Parquet file, a folder of them, or a glob.

Memory is bounded by a few batches, whatever the number of rows and the size of row groups. Names that start
with "_" or "." are bookkeeping and are skipped; `name=value` folders are columns, as Hive writes them.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from parity.compare.dtypes import type_findings, without_views
from parity.compare.files import find_files
from parity.compare.pieces import piece_rows
from parity.errors import DatasetError

_BUFFER_BYTES = 1 << 20
_PROBE_ROWS, _PROBE_BYTES = 1_000, 16 << 20
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class DatasetFile:
    """One file: how many rows each of its row groups has, and what the folders around it say."""

    path: Path
    groups: tuple[int, ...]
    partitions: dict[str, str | None]


class ParquetDataset:
    """The rows of one or many Parquet files, in the order of their names.

    Attributes:
        name: what it was called by.
        files: its files.
        schema: the columns of all files, those of folder names last.
        num_rows: rows of all files.

    Raises:
        DatasetError: there is no such file, one cannot be read, or the files differ in their columns.
    """

    def __init__(self, source: str | Path) -> None:
        self.name = str(source)
        base, paths = find_files(self.name)
        self.files: list[DatasetFile] = []
        self.num_rows, self._size = 0, 0
        schema: pa.Schema | None = None
        for path in paths:
            found, metadata = _footer(path)
            partitions = _partitions(path.relative_to(base).parts[:-1], found.names)
            groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
            self.files.append(DatasetFile(path, tuple(group.num_rows for group in groups), partitions))
            self.num_rows += metadata.num_rows
            self._size += sum(group.total_byte_size for group in groups)
            if schema is None:
                schema = found
            else:
                self._check_alike(schema, found, path)
        assert schema is not None
        self._folders = _folder_columns([file.partitions for file in self.files], self.name)
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
        for file in self.files:
            with opened(file.path) as parquet:
                yield from self.read(file, parquet, self.chosen(columns), rows)

    def chosen(self, columns: Sequence[str] | None) -> pa.Schema:
        """The schema of these columns, in the dataset's order; of all for None."""
        return pa.schema([field for field in self.schema if columns is None or field.name in columns])

    def read(
        self,
        file: DatasetFile,
        parquet: pq.ParquetFile,
        schema: pa.Schema,
        rows: int,
        groups: Sequence[int] | None = None,
    ) -> Generator[pa.RecordBatch, None, None]:
        """The rows of an open file, or of some of its row groups, in batches of at most `rows` rows.

        Raises:
            DatasetError: the file cannot be read to its end.
        """
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
        first = self.files[0].path
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


@contextmanager
def opened(path: Path) -> Generator[pq.ParquetFile]:
    """An open Parquet file, closed in the end; raises DatasetError when it is none."""
    try:
        parquet = pq.ParquetFile(
            path, buffer_size=_BUFFER_BYTES, pre_buffer=False, page_checksum_verification=True
        )
    except (OSError, pa.ArrowException) as exc:
        text = " ".join(str(exc).split())
        raise DatasetError(f"{path}: not readable as Parquet: {text}") from exc
    with parquet:
        yield parquet


def _footer(path: Path) -> tuple[pa.Schema, pq.FileMetaData]:
    with opened(path) as parquet:
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
