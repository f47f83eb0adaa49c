"""Plan a job: read every footer, check every schema, cut the work into units. No row of Parquet is read.

A unit is a run of row groups of one file, up to about 128 MB decoded; a larger row group is a unit of its own
and streamed. Text and Arrow files have no footer: they are read to count their rows, and are a unit each.
Units and their names follow from the inputs alone, not from the number of workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from parity.errors import ConfigError, DatasetError
from parity.handler import LoadedHandler
from parity_batch.containers import probe
from parity_batch.deleted_rows import DeletedFlags
from parity_batch.files import InputFile, find_files
from parity_batch.footers import Source, SourceFile, read_source
from parity_batch.formats import CSV, PARQUET, TEXT_FORMATS
from parity_batch.layout import Layout, check_columns, fit, mapping_of
from parity_batch.lost import is_lost, lost
from parity_batch.places import Place, place_of
from parity_batch.tables import Table, find_table
from parity_batch.text_types import text_columns
from parity_batch.where import Where

UNIT_BYTES = 128 * 1024 * 1024
_READERS = 8
_FOOTERS_AT_ONCE = 1024
_SHOWN_PROBLEMS = 20
_LEAST_DIGITS = 5
"""Of a file's number in the names of its parts; as many more as keep them in order of the files."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A run of row groups of one file, scored into one part.

    Attributes:
        part: the part's name without suffix: "part-00003-u00000" is unit 0 of file 3, of up to 100,000
            files; below the same KEY=VALUE folders as the file.
        source: the file.
        first_group: the first row group.
        end_group: the row group after the last one.
        first_row: the position in the file of the first row.
        num_rows: the rows that the file has there.
        size_bytes: about how many bytes the rows have in memory.
        deleted_rows: how many of them the file's table has deleted.
    """

    part: str
    source: SourceFile
    first_group: int
    end_group: int
    first_row: int
    num_rows: int
    size_bytes: int
    deleted_rows: int = 0

    @property
    def kept_rows(self) -> int:
        """The rows that are not deleted."""
        return self.num_rows - self.deleted_rows


@dataclass(frozen=True)
class Plan:
    """The work of a job.

    Attributes:
        root: the folder that the sources' names are relative to.
        folders: the inputs that are folders, or URLs.
        sources: the input files in order.
        units: the units in the order of their rows.
        layout: what is read of every file.
        notes: what differed between files and was made one by rule.
        skipped: why files were left out, by name.
        table: the table that the files are of.
    """

    root: Path
    folders: tuple[Place, ...]
    sources: tuple[Source, ...]
    units: tuple[Unit, ...]
    layout: Layout
    notes: tuple[str, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict[str, str])
    table: Table | None = None

    @property
    def num_rows(self) -> int:
        """The rows of all units but those that are deleted."""
        return sum(unit.kept_rows for unit in self.units)


def make_plan(
    inputs: Sequence[str | Path],
    handler: LoadedHandler,
    columns: Sequence[str] = (),
    renames: Mapping[str, str] | None = None,
    *,
    where: str = "",
    skip_unreadable: bool = False,
    watch: Callable[[int, int], None] = lambda _read, _all: None,
    input_format: str | None = None,
    types: Mapping[str, str] | None = None,
    input_version: str | None = None,
    delimiter: str = "",
) -> Plan:
    """The plan of scoring `inputs` with a handler.

    Args:
        inputs: files, folders and globs.
        handler: the handler, which need not be initialized.
        columns: columns to pass through to the output.
        renames: fields of the handler that are read from a column of another name, with that name.
        where: a condition; rows for which it does not hold are left out.
        skip_unreadable: leave out files whose footer cannot be read, in place of raising.
        watch: called now and then with how many footers of how many are read.
        input_format: the format of the files; by default what their names tell.
        types: for columns of text files that no field is read from, what they hold.
        input_version: the version of a table; by default the current one.
        delimiter: what stands between the cells of CSV; empty for a comma.

    Raises:
        DatasetError: an input is missing, or files are broken or do not fit; every problem is named at once.
    """
    check_columns(columns, handler)
    fields = mapping_of(renames or {}, handler)
    table = find_table(inputs, input_version)
    if table is None:
        root, files = find_files(inputs, input_format)
    else:
        root, files = Path(), list(table.files)
        if input_format not in (None, PARQUET):
            raise ConfigError(f"--input-format {input_format} is for files, and the input is a table")
    condition = Where(where) if where else None
    wanted = {*fields.values(), *columns}
    text = text_columns(
        fields, handler, (*columns, *(condition.columns if condition is not None else ())), types or {}
    )
    text = replace(text, delimiter=delimiter)
    if delimiter and not any(file.format == CSV for file in files):
        raise ConfigError("--delimiter is for CSV, and the inputs are none")
    if types and not any(file.format in TEXT_FORMATS for file in files):
        raise ConfigError("--types is for CSV and JSON lines; the columns of these files have types")

    def footer(file: InputFile) -> Source | str:
        try:
            return read_source(file, wanted) if file.format == PARQUET else probe(file, text, wanted)
        except DatasetError as exc:
            if isinstance(exc.__cause__, OSError) and is_lost(file.path, exc.__cause__):
                raise lost(file.name, file.path, exc.__cause__) from exc
            return str(exc)

    found: list[Source | str] = []
    schemas: dict[bytes, pa.Schema] = {}
    with ThreadPoolExecutor(_READERS, thread_name_prefix="parity-footers") as pool:
        for first in range(0, len(files), _FOOTERS_AT_ONCE):
            read = pool.map(footer, files[first : first + _FOOTERS_AT_ONCE])
            found += (item if isinstance(item, str) else _sharing(item, schemas) for item in read)
            watch(len(found), len(files))
    placed = [(place, item) for place, item in enumerate(found) if isinstance(item, Source)]
    sources = tuple(source for _, source in placed)
    unread = {file.name: item for file, item in zip(files, found, strict=True) if isinstance(item, str)}
    skipped = unread if skip_unreadable and sources else {}
    problems = [] if skipped else list(unread.values())
    if table is not None:
        problems += [text for source in sources for text in table.problems(source)]
        sources = tuple(replace(source, file=table.placed(source)) for source in sources)
        placed = [(at, source) for (at, _), source in zip(placed, sources, strict=True)]
    fitted = fit(sources, handler, fields, columns, condition, None if table is None else table.schema)
    problems += fitted.problems
    if problems:
        shown = problems[:_SHOWN_PROBLEMS]
        if len(problems) > len(shown):
            shown.append(f"and {len(problems) - len(shown)} more")
        raise DatasetError(
            f"handler {handler.name}: nothing was scored, for the inputs have problems ({len(problems)})\n  "
            + "\n  ".join(shown)
        )
    digits = max(_LEAST_DIGITS, len(str(len(files) - 1)))
    units = tuple(unit for position, source in placed for unit in _cut(f"{position:0{digits}d}", source))
    named = (item if isinstance(item, Path) else place_of(item) for item in inputs)
    folders = tuple(item for item in named if not isinstance(item, Path) or item.is_dir())
    return Plan(
        root,
        folders,
        sources,
        units,
        replace(fitted.layout, text=text),
        (*([] if table is None else table.notes(sources)), *fitted.notes),
        skipped,
        table,
    )


def _sharing(source: Source, schemas: dict[bytes, pa.Schema]) -> Source:
    """A source whose schema is one object with those that are the same: a million files have few.

    What writers say of the whole file, as pandas does of its index, differs from file to file and is let go.
    """
    schema = source.schema.remove_metadata()
    key = cast("Any", schema).serialize().to_pybytes()
    return replace(source, schema=schemas.setdefault(key, schema))


def _cut(position: str, source: Source) -> Iterator[Unit]:
    deleted = source.file.deleted.unpacked() if source.file.deleted is not None else None
    first = first_row = rows = size = count = 0
    for group, item in enumerate(source.row_groups):
        if group > first and size + item.size_bytes > UNIT_BYTES:
            yield _unit(position, count, source, (first, group), (first_row, rows, size), deleted)
            first, first_row, rows, size, count = group, first_row + rows, 0, 0, count + 1
        rows += item.num_rows
        size += item.size_bytes
    yield _unit(position, count, source, (first, len(source.row_groups)), (first_row, rows, size), deleted)


def _unit(
    position: str,
    count: int,
    source: Source,
    groups: tuple[int, int],
    extent: tuple[int, int, int],
    deleted: DeletedFlags | None,
) -> Unit:
    folder = source.file.partition_folder
    part = f"{folder}/part-{position}-u{count:05d}".lstrip("/")
    first_row, rows, _ = extent
    gone = deleted.count(first_row, first_row + rows) if deleted is not None else 0
    return Unit(part, source.file, *groups, *extent, gone)
