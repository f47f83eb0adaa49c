"""One schema for all input files: which columns are read, and as which types, or why they do not fit.

Types that differ between files are made one only where no value can change: a wider integer or float, text
of any form, a finer time unit (nanoseconds where the statistics of the others allow it). A pass-through
column that a file lacks is null there, where it may be null in the others. Whatever else differs is refused,
and the first file that differs is named.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import pyarrow as pa

from parity.codec.arrow import check_schema
from parity.codec.kinds import kind_problems
from parity.errors import ConfigError, DatasetError, did_you_mean
from parity.handler import LoadedHandler
from parity.result import ERROR_COLUMN
from parity_batch.containers import TextColumns
from parity_batch.footers import Source, SourceFile
from parity_batch.where import Where

_WHOLE = re.compile(r"0|-?[1-9][0-9]*")
_UNITS = ("s", "ms", "us", "ns")


@dataclass(frozen=True)
class Layout:
    """What is read of every file.

    Attributes:
        fields: for each field of the handler that is read the column that it is read from.
        columns: the pass-through columns.
        schema: the columns that are read of any file, with the types that all files are brought to.
        where: which rows are scored; all without one.
        partition: the columns that are in the names of folders, as KEY=VALUE.
        text: what the columns of text files hold.
    """

    fields: Mapping[str, str]
    columns: tuple[str, ...]
    schema: pa.Schema
    where: Where | None = None
    partition: pa.Schema = dataclasses.field(default_factory=lambda: pa.schema([]))
    text: TextColumns = dataclasses.field(default_factory=TextColumns)

    @functools.cached_property
    def fields_are_columns(self) -> bool:
        """Whether each field is read from the column of its own name."""
        return all(name == column for name, column in self.fields.items())

    def columns_of(self, schema: pa.Schema) -> list[str]:
        """The columns that are read of a file with a schema, each once."""
        there = set(schema.names)
        wanted = dict.fromkeys([*self.schema.names, *(self.where.columns if self.where is not None else ())])
        return [name for name in wanted if name in there]


@dataclass(frozen=True)
class Fitted:
    """A layout, or what keeps the files from having one.

    Attributes:
        layout: the layout; of no use when there are problems.
        problems: what is wrong, a sentence each; one that many files share is told once.
        notes: what was made one by rule, a sentence each.
    """

    layout: Layout
    problems: list[str]
    notes: list[str]


def mapping_of(renames: Mapping[str, str], handler: LoadedHandler) -> dict[str, str]:
    """For each field of the handler the column that it is read from.

    Raises:
        DatasetError: a rename is for a field that the handler does not have.
    """
    names = handler.inputs.names
    for field in renames:
        if field not in names:
            hint = did_you_mean(field, names)
            raise DatasetError(
                f"--map {field}={renames[field]}: handler {handler.name} has no input field {field!r}; {hint}"
            )
    return {name: renames.get(name, name) for name in names}


def fit(
    sources: Sequence[Source],
    handler: LoadedHandler,
    fields: Mapping[str, str],
    columns: Sequence[str],
    where: Where | None = None,
    table: pa.Schema | None = None,
) -> Fitted:
    """The layout of some files for a handler.

    Args:
        sources: the files.
        handler: the handler.
        fields: for each field of the handler the column that it is read from.
        columns: the pass-through columns.
        where: which rows are to be scored.
        table: the columns of the table that the files are of.
    """
    notes: list[str] = []
    twice = _named_by_folder_too(sources, columns)
    partition = partition_schema(sources, table)
    if partition.names:
        sources = _with_partitions(sources, partition)
    folders = [
        name for name in columns if sources and all(name in item.file.folder_values for item in sources)
    ]
    if folders:
        columns = [name for name in columns if name not in folders]
        notes.append(f"column {', '.join(map(repr, folders))} is in the names of the parts' folders")
    found_in: dict[str, list[str]] = {}
    fitting: list[Source] = []
    judged: dict[int, list[str]] = {}
    for source in sources:
        wrong = judged.get(id(source.schema))
        if wrong is None:
            wrong = [*_field_problems(source.schema, handler, fields), *_doubles(source.schema, columns)]
            wrong += _condition_problems(source.schema, where)
            judged[id(source.schema)] = wrong
        for problem in wrong:
            found_in.setdefault(problem, []).append(source.name)
        if not wrong:
            fitting.append(source)
    problems = [
        f"{files[0]}{f' and {len(files) - 1} more files' if len(files) > 1 else ''}: {problem}"
        for problem, files in found_in.items()
    ]
    problems += twice
    found: list[pa.Field[Any]] = []
    for name in dict.fromkeys((*fields.values(), *columns)):
        joined = _join(name, fitting, passed=name in columns)
        problems += joined.problems
        notes += joined.notes
        if joined.field is not None:
            found.append(joined.field)
    names = {field.name for field in found}
    read = {field: column for field, column in fields.items() if column in names}
    return Fitted(Layout(read, tuple(columns), pa.schema(found), where, partition), problems, notes)


def _with_partitions(sources: Sequence[Source], partition: pa.Schema) -> list[Source]:
    """The sources with the columns of their folders' names; those with one schema still share one."""
    made: dict[tuple[int, tuple[str, ...]], pa.Schema] = {}
    found: list[Source] = []
    for source in sources:
        key = id(source.schema), tuple(source.file.partition)
        if key not in made:
            made[key] = with_partition(source.schema, source.file, partition)
        found.append(replace(source, schema=made[key]))
    return found


def partition_schema(sources: Sequence[Source], table: pa.Schema | None = None) -> pa.Schema:
    """A column for each KEY=VALUE folder of the files' names, and each that a file of a table lacks.

    It has the table's type; without a table it is an int64 where all values of the key are whole numbers as
    they are written, else a string.
    """
    values: dict[str, set[str | None]] = {}
    for source in sources:
        for key, value in source.file.partition.items():
            values.setdefault(key, set()).add(value)
    kinds = {
        key: table.field(key).type
        if table is not None and key in table.names
        else pa.int64()
        if _whole(found)
        else pa.string()
        for key, found in values.items()
    }
    return pa.schema(list(kinds.items()))


def with_partition(schema: pa.Schema, file: SourceFile, partition: pa.Schema) -> pa.Schema:
    """A file's schema with a column for each KEY=VALUE folder of its name, where it has none of that name."""
    if not partition.names:
        return schema
    more = [partition.field(key) for key in file.partition if key not in schema.names]
    return pa.schema([*schema, *more], metadata=cast("Any", schema.metadata))


def _named_by_folder_too(sources: Sequence[Source], columns: Sequence[str]) -> list[str]:
    """Pass-through columns that files have and the names of their folders too: a part can keep one only."""
    problems: list[str] = []
    for name in columns:
        there = {id(item.schema): name in item.schema.names for item in sources}
        both = [item.name for item in sources if there[id(item.schema)] and name in item.file.folder_values]
        if both:
            more = f" and {len(both) - 1} more files" if len(both) > 1 else ""
            problems.append(
                f"{both[0]}{more}: pass-through column {name!r} is in the file and in the name of its "
                "folder, and readers of the parts take it from the folder; leave it out of --columns, or "
                "rename it in the data"
            )
    return problems


def _whole(values: set[str | None]) -> bool:
    texts = [value for value in values if value is not None]
    return bool(texts) and all(_WHOLE.fullmatch(text) is not None and len(text) < 19 for text in texts)


def _condition_problems(schema: pa.Schema, where: Where | None) -> list[str]:
    if where is None:
        return []
    problems = [
        f"--where: column {name!r} is not there; {did_you_mean(name, schema.names)}"
        for name in where.columns
        if schema.names.count(name) != 1
    ]
    if problems:
        return problems
    fields = [schema.field(name) for name in where.columns]
    try:
        pa.schema(fields).empty_table().filter(where.bind(pa.schema(fields)))
    except (ConfigError, pa.ArrowException) as exc:
        return [str(exc) if isinstance(exc, ConfigError) else f"--where {where.text!r}: {exc}"]
    return []


def check_columns(columns: Sequence[str], handler: LoadedHandler) -> None:
    """Raise DatasetError for pass-through columns that cannot be in a part."""
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


def wider(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The type that holds every value of both exactly; None where there is none by these rules."""
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    for known in (_wider_text, _wider_number, _wider_time, _wider_decimal):
        found = known(one, other) or known(other, one)
        if found is not None:
            return found
    return None


def _field_problems(schema: pa.Schema, handler: LoadedHandler, fields: Mapping[str, str]) -> list[str]:
    """What keeps a file from being read as the handler's inputs."""
    renamed = {column: field for field, column in fields.items() if column != field}
    if renamed:
        kept = [
            schema.field(name)
            for name in schema.names
            if name not in renamed and name not in renamed.values()
        ]
        moved = [
            schema.field(column).with_name(field) for field, column in fields.items()
            if column != field and schema.get_field_index(column) >= 0
        ]  # fmt: skip
        problems = [
            f"--map {field}={column}: column {column!r} is not there; {did_you_mean(column, schema.names)}"
            for field, column in fields.items()
            if column != field and column not in schema.names
        ]
        lost = {field for field, column in fields.items() if column != field and column not in schema.names}
        inner = check_schema(handler.inputs, pa.schema([*kept, *moved]))
        return problems + [
            text for text in inner if not any(text.startswith(f"column {name!r} (") for name in lost)
        ]
    problems: list[str] = []
    for text in check_schema(handler.inputs, schema):
        problems.append(text + _map_hint(text, schema, handler))
    return problems


def _map_hint(problem: str, schema: pa.Schema, handler: LoadedHandler) -> str:
    """How to read a missing field from a column of a near name whose type fits."""
    for name, field in handler.inputs.items():
        if not problem.startswith(f"column {name!r} (") or name in schema.names:
            continue
        near = [
            column for column in schema.names
            if column not in handler.inputs and (name in column or column in name or repr(column) in problem)
            and "," not in column and "=" not in column
        ]  # fmt: skip
        fitting = [
            column for column in near if not any(kind_problems(name, field, schema.field(column).type))
        ]
        if fitting:
            return f"; --map {name}={fitting[0]} reads it from that column"
    return ""


def _doubles(schema: pa.Schema, columns: Sequence[str]) -> list[str]:
    return [
        f"pass-through column {name!r} is there {schema.names.count(name)} times; keep one"
        for name in columns
        if schema.names.count(name) > 1
    ]


@dataclass(frozen=True)
class _Joined:
    field: pa.Field[Any] | None
    problems: list[str]
    notes: list[str]


def _join(name: str, sources: Sequence[Source], *, passed: bool) -> _Joined:
    """One column of all files."""
    schemas = {id(source.schema): source.schema for source in sources}
    times = {key: schema.names.count(name) for key, schema in schemas.items()}
    known = {key: schemas[key].field(name) for key, count in times.items() if count == 1}
    having = [(source, known[id(source.schema)]) for source in sources if id(source.schema) in known]
    lacking = [source.name for source in sources if not times[id(source.schema)]]
    problems: list[str] = []
    notes: list[str] = []
    if not having:
        if passed and sources and lacking:
            names = {column for source in sources for column in source.schema.names} - {name}
            more = f" and {len(lacking) - 1} more files" if len(lacking) > 1 else ""
            hint = did_you_mean(name, names)
            problems.append(f"{lacking[0]}{more}: pass-through column {name!r} is not there; {hint}")
        return _Joined(None, problems, notes)
    first_source, first = having[0]
    kind = first.type
    for source, field in having[1:]:
        joined = kind if field.type == kind else wider(kind, field.type)
        if joined is None:
            what = "pass-through column" if passed else "column"
            problems.append(
                f"{source.name}: {what} {name!r} is {field.type}, and {kind} in "
                f"{first_source.name}; no type holds "
                "the values of both exactly, and the parts would not read as one dataset: cast one "
                "of them first"
            )
            return _Joined(None, problems, notes)
        if joined != kind or field.type != joined:
            notes.append(
                f"column {name!r} is {field.type} in {source.name} and {first.type} in {first_source.name}: "
                f"{joined} in all parts"
            )
        kind = joined
    for source, field in having:
        if field.type != kind and str(kind).startswith("timestamp[ns") and name in source.far_times:
            problems.append(
                f"{source.name}: column {name!r} is {field.type}, and {kind} in another file; by the file's "
                "statistics it may hold times before 1678 or after 2261, which nanoseconds do not: cast one "
                "of them first"
            )
            return _Joined(None, problems, notes)
    if lacking and passed:
        strict = next((source.name for source, field in having if not field.nullable), None)
        more = f" and {len(lacking) - 1} more files" if len(lacking) > 1 else ""
        if strict is not None:
            problems.append(
                f"{lacking[0]}{more}: pass-through column {name!r} is not there, and may not be "
                f"null in {strict}"
            )
        else:
            notes.append(f"column {name!r} is not in {lacking[0]}{more}: null there")
    nullable = bool(lacking) or any(field.nullable for _, field in having)
    metadata = first.metadata if all(field.metadata == first.metadata for _, field in having) else None
    return _Joined(pa.field(name, kind, nullable, metadata), problems, notes[:1])


def _wider_text(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if pa.types.is_dictionary(one):
        inner: Any = one
        plain = inner.value_type
        if pa.types.is_dictionary(other):
            values: Any = other
            return wider(plain, values.value_type) if values.value_type != plain else plain
        return wider(plain, other)
    if pa.types.is_string_view(one) and (pa.types.is_string(other) or pa.types.is_large_string(other)):
        return other
    if pa.types.is_binary_view(one) and (pa.types.is_binary(other) or pa.types.is_large_binary(other)):
        return other
    if pa.types.is_string(one) and pa.types.is_large_string(other):
        return other
    if pa.types.is_binary(one) and pa.types.is_large_binary(other):
        return other
    return None


def _wider_number(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The wider of two numbers, `one` being the narrower."""
    if pa.types.is_integer(one) and pa.types.is_integer(other):
        narrow: Any = one
        wide: Any = other
        if pa.types.is_signed_integer(one) == pa.types.is_signed_integer(other):
            return other if narrow.bit_width <= wide.bit_width else None
        signed = pa.types.is_signed_integer(other) and narrow.bit_width < wide.bit_width
        return other if signed else None
    exact = {"halffloat": 11, "float": 24, "double": 53}
    if str(other) not in exact:
        return None
    if str(one) in exact:
        return other if exact[str(one)] <= exact[str(other)] else None
    if pa.types.is_integer(one):
        integer: Any = one
        bits = integer.bit_width - (1 if pa.types.is_signed_integer(one) else 0)
        return other if bits <= exact[str(other)] else None
    return None


def _wider_time(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if pa.types.is_timestamp(one) and pa.types.is_timestamp(other):
        coarse: Any = one
        fine: Any = other
        if coarse.tz == fine.tz:
            return fine if _UNITS.index(coarse.unit) <= _UNITS.index(fine.unit) else None
    return None


def _wider_decimal(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if pa.types.is_decimal128(one) and pa.types.is_decimal128(other):
        first: Any = one
        second: Any = other
        scale = max(first.scale, second.scale)
        whole = max(first.precision - first.scale, second.precision - second.scale)
        return pa.decimal128(whole + scale, scale) if whole + scale <= 38 else None
    return None
