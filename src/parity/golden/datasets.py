"""A sample of a dataset: Parquet files, folders and globs of any size, streamed in bounded memory."""

from __future__ import annotations

import glob
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from parity.codec import arrow
from parity.errors import DatasetError, RowError, RowsError, SchemaError
from parity.golden.fit import canonical
from parity.golden.recording import INVALID_REMEDY
from parity.golden.sampling import Sample, Sampler
from parity.schema import Schema

InvalidRows = Literal["refuse", "skip", "keep"]
"""What becomes of rows that do not fit the schema."""

_SUFFIXES: Final = (".parquet", ".pq", ".parq")
_BATCH_BYTES: Final = 32 * 2**20
_MOST_ROWS: Final = 65_536
_TRIED_MISFITS: Final = 256


@dataclass(frozen=True)
class DatasetSample:
    """A sample of a dataset, and what was left out.

    Attributes:
        sample: the rows taken.
        files: how many files were read.
        left_out: how many rows do not fit the schema and were left out.
        first_left_out: the first of them, in words; empty when there is none.
    """

    sample: Sample
    files: int
    left_out: int = 0
    first_left_out: str = ""


def sample_dataset(
    source: str | Path,
    schema: Schema,
    rows: int,
    *,
    seed: int = 0,
    invalid: InvalidRows = "refuse",
    batch_rows: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> DatasetSample:
    """A stratified sample of a Parquet file, of the files in a folder, or of those that match a glob.

    Args:
        source: the file, folder or glob; names that start with "_" or "." are skipped below a folder.
        schema: the schema that the rows must fit.
        rows: how many rows to take.
        seed: another seed takes other rows.
        invalid: what becomes of rows that do not fit: they are an error, are left out, or make strata of
            their own, where their values have a form in the schema's types.
        batch_rows: rows read at a time; about 32 MiB of them when not given.
        progress: called with the number of rows read, every so often.

    Raises:
        DatasetError: there is no such file, or one cannot be read.
        SchemaError: a file does not have the columns.
        RowsError: a row does not fit, and is not to be left out or kept.
    """
    files = dataset_files(source)
    sampler = Sampler(schema, rows, seed)
    left_out, first, done = 0, "", 0
    for path in files:
        start = done
        for table in _batches(path, schema, batch_rows):
            found = canonical(schema, table, at_most=_TRIED_MISFITS if invalid == "keep" else 0)
            lost = sorted([*found.lost, *found.errors.values()], key=lambda error: error.row)
            if lost and invalid == "refuse":
                raise _refusal(path, done - start, lost[0])
            if found.lost:
                left_out += len(found.lost)
                first = first or _told(path, done - start, found.lost[0])
            sampler.add(found.rows, {row: error.field or "row" for row, error in found.errors.items()})
            done += table.num_rows
            if progress is not None:
                progress(done)
    return DatasetSample(sampler.finish(), len(files), left_out, first)


def dataset_files(source: str | Path) -> list[Path]:
    """The Parquet files that a file, folder or glob stands for, in name order.

    Raises:
        DatasetError: there is none.
    """
    path = Path(source)
    if path.is_file():
        return [path]
    if path.is_dir():
        found = sorted(item for item in path.rglob("*") if _is_part(item, path))
        if not found:
            raise DatasetError(f"folder {str(source)!r} holds no Parquet file ({', '.join(_SUFFIXES)})")
        return found
    if glob.has_magic(str(source)):
        fixed = Path(*itertools.takewhile(lambda part: not glob.has_magic(part), path.parts))
        matches = glob.glob(str(source), recursive=True)  # noqa: PTH207 - the glob may be absolute
        found = sorted(item for item in map(Path, matches) if item.is_file() and not _hidden(item, fixed))
        if not found:
            raise DatasetError(f"no file matches {str(source)!r}; quote a glob, or the shell expands it")
        return found
    raise DatasetError(f"no file, folder or glob {str(source)!r}")


def _batches(path: Path, schema: Schema, batch_rows: int | None) -> Iterator[pa.Table]:
    try:
        with pq.ParquetFile(path) as file:
            names = [name for name in schema.names if name in file.schema_arrow.names]
            problems = arrow.check_schema(schema, file.schema_arrow)
            if problems:
                raise SchemaError(f"{path} does not fit the schema: " + " | ".join(problems))
            for batch in file.iter_batches(batch_rows or _batch_rows(file, names), columns=names):
                yield pa.Table.from_batches([batch])
    except (pa.ArrowException, OSError) as exc:
        raise DatasetError(f"{path}: not readable as Parquet: {exc}") from exc


def _batch_rows(file: pq.ParquetFile, names: list[str]) -> int:
    """Rows that take about `_BATCH_BYTES`, judged by the densest row group."""
    largest = 1
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        size = sum(
            group.column(at).total_uncompressed_size
            for at in range(group.num_columns)
            if group.column(at).path_in_schema.partition(".")[0] in names
        )
        largest = max(largest, size // max(1, group.num_rows))
    return max(1, min(_MOST_ROWS, _BATCH_BYTES // largest))


def _is_part(path: Path, folder: Path) -> bool:
    return not _hidden(path, folder) and path.suffix.lower() in _SUFFIXES and path.is_file()


def _hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(("_", ".")) for part in path.relative_to(folder).parts)


def _told(path: Path, start: int, error: RowError) -> str:
    return f"row {start + error.row} of {path.name}: {error.message}"


def _refusal(path: Path, start: int, error: RowError) -> RowsError:
    told = _told(path, start, error)
    return RowsError(f"a row does not fit the schema: {told}\n  {INVALID_REMEDY}", [error])
