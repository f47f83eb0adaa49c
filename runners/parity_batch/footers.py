"""What a Parquet file's footer tells: rows, row groups, schema and a digest. No row is read."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from parity.errors import DatasetError
from parity_batch.deleted_rows import DeletedRows
from parity_batch.files import InputFile
from parity_batch.formats import PARQUET
from parity_batch.places import Place, Stamp, open_file, stamp_of

_MAGICS = (b"PAR1", b"PARE")
_TAIL_BYTES = 8
_FIRST_YEAR, _LAST_YEAR = 1677, 2262
"""Within which nanoseconds since 1970 fit 64 bits."""

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class RowGroup:
    """One row group: its rows, and about how many bytes the columns of interest have in memory."""

    num_rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One input file as the file system tells.

    Attributes:
        path: where it is.
        name: its path below the input root.
        stamp: what tells it from another one of its name.
        format: the name of its format.
        absent: the columns that the table has that it is a file of, and the file has not: null there.
        deleted: the rows that the table has deleted and the file still has; None for none.
    """

    path: Place
    name: str
    stamp: Stamp
    format: str = PARQUET
    absent: tuple[str, ...] = ()
    deleted: DeletedRows | None = None

    @property
    def partition_folder(self) -> str:
        """The folders of its name that are written KEY=VALUE, as Hive does; empty without any."""
        return "/".join(part for part in self.name.split("/")[:-1] if "=" in part.strip("="))

    @property
    def partition(self) -> dict[str, str | None]:
        """The columns that are not in the file, with the value that all its rows have; None for null."""
        return {**self.folder_values, **dict.fromkeys(self.absent)}

    @property
    def folder_values(self) -> dict[str, str | None]:
        """The keys and values of its folders; None for Hive's name of null."""
        pairs = (part.partition("=") for part in self.partition_folder.split("/") if part)
        return {unquote(key): None if value == HIVE_NULL else unquote(value) for key, _, value in pairs}

    def unchanged(self) -> bool:
        """Whether the file still has this stamp; raises OSError where it is not there or cannot be asked."""
        return stamp_of(self.path) == self.stamp


@dataclass(frozen=True, slots=True)
class Source:
    """One input file as its footer tells.

    Attributes:
        file: the file.
        footer_sha256: digest of its footer, which names every page's place and size.
        num_rows: its rows.
        row_groups: its row groups in order.
        schema: its Arrow schema.
        far_times: columns of times not in nanoseconds that, by its statistics, nanoseconds may not hold.
    """

    file: SourceFile
    footer_sha256: str
    num_rows: int
    row_groups: tuple[RowGroup, ...]
    schema: pa.Schema
    far_times: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """The file's path below the input root."""
        return self.file.name

    @property
    def deleted_rows(self) -> int:
        """How many of its rows the table has deleted."""
        return self.file.deleted.count if self.file.deleted is not None else 0


def read_source(file: InputFile, columns: Collection[str]) -> Source:
    """The footer of one file.

    Args:
        file: the file.
        columns: the columns that will be read; row groups are sized by them.

    Raises:
        DatasetError: the file is empty, cut short or not Parquet.
    """
    try:
        stamp = stamp_of(file.path)
        with open_file(file.path) as opened, contextlib.ExitStack() as stack:
            digest = footer_digest(opened, file.name)
            opened.seek(0)
            parquet = stack.enter_context(pq.ParquetFile(opened))
            metadata, schema = parquet.metadata, parquet.schema_arrow
            groups = tuple(
                _row_group(metadata.row_group(position), columns)
                for position in range(metadata.num_row_groups)
            )
            far = frozenset(
                name for name in columns if _coarse(schema, name) and not _within_nanoseconds(metadata, name)
            )
    except (OSError, pa.ArrowException, ValueError) as exc:
        text = " ".join(str(exc).split())
        if isinstance(exc, PermissionError):
            remedy = "allow this user to read it"
        elif isinstance(exc, OSError | pa.ArrowException):
            remedy = "write the file anew"
        else:
            remedy = "copy it to a disk or an object store"  # a web server that gives whole files only
        raise DatasetError(f"{file.name}: its footer cannot be read: {text}; {remedy}") from exc
    return Source(
        file=SourceFile(file.path, file.name, stamp),
        footer_sha256=digest,
        num_rows=metadata.num_rows,
        row_groups=groups,
        schema=schema,
        far_times=far,
    )


def footer_digest(file: Any, name: str) -> str:
    """SHA-256 of the footer of an open Parquet file, which messages call `name`.

    Raises:
        DatasetError: the file is empty, or does not end as a Parquet file does.
        OSError: the file cannot be read.
    """
    file.seek(0, 2)
    size = file.tell()
    if size == 0:
        raise DatasetError(f"{name}: the file has 0 bytes; a Parquet file without rows has a footer")
    file.seek(max(0, size - _TAIL_BYTES))
    tail = file.read()
    length = int.from_bytes(tail[:4], "little")
    if tail[-4:] not in _MAGICS or length + _TAIL_BYTES > size:
        raise DatasetError(
            f"{name}: not a whole Parquet file: it does not end in a footer; it was cut short while it "
            "was written or copied, or is of another format"
        )
    file.seek(size - _TAIL_BYTES - length)
    return hashlib.sha256(file.read()).hexdigest()


def _row_group(metadata: pq.RowGroupMetaData, columns: Collection[str]) -> RowGroup:
    size = 0
    for position in range(metadata.num_columns):
        column = metadata.column(position)
        if column.path_in_schema.partition(".")[0] in columns:
            size += column.total_uncompressed_size
    return RowGroup(metadata.num_rows, size)


def _coarse(schema: pa.Schema, name: str) -> bool:
    """Whether a column holds times in a unit other than nanoseconds."""
    if schema.names.count(name) != 1:
        return False
    kind: Any = schema.field(name).type
    return pa.types.is_timestamp(kind) and kind.unit != "ns"


def _within_nanoseconds(metadata: pq.FileMetaData, name: str) -> bool:
    """Whether statistics tell that every time of a column is one that nanoseconds hold, 1677 to 2262."""
    if not metadata.num_row_groups:
        return True
    first = metadata.row_group(0)
    place = next(at for at in range(metadata.num_columns) if first.column(at).path_in_schema == name)
    for group in range(metadata.num_row_groups):
        column: Any = metadata.row_group(group).column(place)
        found = column.statistics
        if found is not None and found.has_null_count and found.null_count == column.num_values:
            continue
        if found is None or not found.has_min_max:
            return False
        try:
            if not (found.min.year > _FIRST_YEAR and found.max.year < _LAST_YEAR):
                return False
        except (ValueError, OverflowError, pa.ArrowException):  # no year that Python has
            return False
    return True
