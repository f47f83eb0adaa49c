"""Plan a job: read every footer, check every schema, cut the work into units. No row is read.

A unit is a run of row groups of one file, up to about 128 MB decoded; a larger row group is a unit of its own
and streamed. Units and their names follow from the inputs alone, not from the number of workers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from parity.codec.arrow import check_schema
from parity.errors import DatasetError, did_you_mean
from parity.handler import LoadedHandler
from parity.result import ERROR_COLUMN
from parity_batch.files import InputFile, find_files
from parity_batch.footers import Source, read_source

UNIT_BYTES = 128 * 1024 * 1024
_READERS = 8
_SHOWN_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class Unit:
    """A run of row groups of one file, scored into one part.

    Attributes:
        part: the part's name without suffix: "part-00003-u00000" is unit 0 of file 3.
        source: the file.
        first_group: the first row group.
        end_group: the row group after the last one.
        first_row: the position in the file of the first row.
        num_rows: the rows.
        size_bytes: about how many bytes the rows have in memory.
    """

    part: str
    source: Source
    first_group: int
    end_group: int
    first_row: int
    num_rows: int
    size_bytes: int


@dataclass(frozen=True)
class Plan:
    """The work of a job.

    Attributes:
        root: the folder that the sources' names are relative to.
        folders: the inputs that are folders.
        sources: the input files in order.
        units: the units in the order of their rows.
        inputs: the handler's input columns.
        columns: the pass-through columns.
    """

    root: Path
    folders: tuple[Path, ...]
    sources: tuple[Source, ...]
    units: tuple[Unit, ...]
    inputs: tuple[str, ...]
    columns: tuple[str, ...]

    @property
    def num_rows(self) -> int:
        """The rows of all units."""
        return sum(unit.num_rows for unit in self.units)

    def columns_of(self, source: Source) -> list[str]:
        """The columns that are read from a file, each once; one that takes its default may be absent."""
        there = set(source.schema.names)
        return [name for name in dict.fromkeys((*self.inputs, *self.columns)) if name in there]


def make_plan(inputs: Sequence[str | Path], handler: LoadedHandler, columns: Sequence[str] = ()) -> Plan:
    """The plan of scoring `inputs` with a handler.

    Args:
        inputs: files, folders and globs.
        handler: the handler, which need not be initialized.
        columns: columns to pass through to the output.

    Raises:
        DatasetError: an input is missing, or files are broken or do not fit; every problem is named at once.
    """
    _check_columns(columns, handler)
    root, files = find_files(inputs)
    names = handler.inputs.names
    wanted = {*names, *columns}

    def footer(file: InputFile) -> Source | str:
        try:
            return read_source(file, wanted)
        except DatasetError as exc:
            return str(exc)

    with ThreadPoolExecutor(_READERS, thread_name_prefix="parity-footers") as pool:
        found = list(pool.map(footer, files))
    sources = tuple(item for item in found if isinstance(item, Source))
    problems = [item for item in found if isinstance(item, str)]
    problems += _misfits(sources, handler, columns)
    if problems:
        shown = problems[:_SHOWN_PROBLEMS]
        if len(problems) > len(shown):
            shown.append(f"and {len(problems) - len(shown)} more")
        raise DatasetError(
            f"handler {handler.name}: nothing was scored, for the inputs have problems ({len(problems)})\n  "
            + "\n  ".join(shown)
        )
    units = tuple(unit for position, source in enumerate(sources) for unit in _cut(position, source))
    folders = tuple(Path(item) for item in inputs if Path(item).is_dir())
    return Plan(root, folders, sources, units, names, tuple(columns))


def _check_columns(columns: Sequence[str], handler: LoadedHandler) -> None:
    for name in columns:
        if columns.count(name) > 1:
            raise DatasetError(f"pass-through column {name!r} is named {columns.count(name)} times")
        if name in handler.outputs or name == ERROR_COLUMN:
            what = (
                "is parity's own" if name == ERROR_COLUMN else f"is also an output of handler {handler.name}"
            )
            raise DatasetError(
                f"pass-through column {name!r} {what}, and a part holds one of a name only; rename it in "
                "the data, or leave it out of --columns"
            )


def _misfits(sources: Sequence[Source], handler: LoadedHandler, columns: Sequence[str]) -> list[str]:
    """What is wrong with the schemas; a problem that many files share is told once."""
    where: dict[str, list[str]] = {}
    first_types: dict[str, tuple[str, pa.DataType]] = {}
    for source in sources:
        for problem in check_schema(handler.inputs, source.schema):
            where.setdefault(problem, []).append(source.name)
        for problem in _column_problems(source, columns, first_types):
            where.setdefault(problem, []).append(source.name)
    return [
        f"{files[0]}{f' and {len(files) - 1} more files' if len(files) > 1 else ''}: {problem}"
        for problem, files in where.items()
    ]


def _column_problems(
    source: Source, columns: Sequence[str], first_types: dict[str, tuple[str, pa.DataType]]
) -> Iterator[str]:
    names = source.schema.names
    for name in columns:
        count = names.count(name)
        if count != 1:
            what = "is not there" if count == 0 else f"is there {count} times"
            yield f"pass-through column {name!r} {what}; {did_you_mean(name, set(names) - {name})}"
            continue
        found = source.schema.field(name).type
        first_file, expected = first_types.setdefault(name, (source.name, found))
        if found != expected:
            yield (
                f"pass-through column {name!r} is {found}, and {expected} in {first_file}; the parts would "
                "not read as one dataset: cast one of them first"
            )


def _cut(position: int, source: Source) -> Iterator[Unit]:
    first = first_row = rows = size = count = 0
    for group, item in enumerate(source.row_groups):
        if group > first and size + item.size_bytes > UNIT_BYTES:
            yield _unit(position, count, source, (first, group), (first_row, rows, size))
            first, first_row, rows, size, count = group, first_row + rows, 0, 0, count + 1
        rows += item.num_rows
        size += item.size_bytes
    yield _unit(position, count, source, (first, len(source.row_groups)), (first_row, rows, size))


def _unit(
    position: int, count: int, source: Source, groups: tuple[int, int], extent: tuple[int, int, int]
) -> Unit:
    return Unit(f"part-{position:05d}-u{count:05d}", source, *groups, *extent)
