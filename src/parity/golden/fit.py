"""Whether stored rows and answers fit a handler's schemas, and what changed in these since the recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa

from parity.codec import arrow
from parity.codec.build import constant_array
from parity.codec.decoded import Decoded
from parity.codec.values import compile_default, compile_value
from parity.errors import ParityError, RowError
from parity.golden.faults import StaleCaseError
from parity.golden.meta import CaseMeta
from parity.handler import LoadedHandler
from parity.result import ERROR_COLUMN, ERROR_TYPE
from parity.schema import Field, Schema, Struct

INVALID: Final = "invalid"
_MOST_CHANGES = 6


@dataclass(frozen=True)
class Canonical:
    """Rows in the canonical types of a schema, those that do not fit it among them.

    Attributes:
        rows: the rows that a case can hold, in their order.
        index: int64, the source position of each.
        errors: what is wrong with each that does not fit, by its position in `rows`.
        lost: what is wrong with the rows that a case cannot hold at all, under their source positions.
    """

    rows: pa.Table
    index: np.ndarray[Any, np.dtype[np.int64]]
    errors: Mapping[int, RowError]
    lost: tuple[RowError, ...] = ()


def canonical(schema: Schema, table: pa.Table, *, at_most: int | None = None) -> Canonical:
    """The rows of a table in canonical types; rows that do not fit too, where their values have such a form.

    A value that is out of range, too long, null or no choice has one; half a unit in an integer column, or
    text in a column of numbers, has none.

    Args:
        schema: the schema.
        table: the rows.
        at_most: try so many of the rows that do not fit, and count the others as lost.

    Raises:
        SchemaError: the table as a whole does not fit the schema.
    """
    decoded = arrow.decode_table(schema, table)
    if not decoded.errors:
        return Canonical(decoded.batch.to_table(), decoded.index, {})
    tried = decoded.errors[:at_most]
    lost = list(decoded.errors[at_most:] if at_most is not None else ())
    fields_of = pa.schema([field.to_arrow(name, nullable=True) for name, field in schema.items()])
    parts = [_nullable(decoded.batch.to_table(), fields_of)]
    found: list[RowError] = []
    for error in tried:
        row = _cast(schema, table.slice(error.row, 1), fields_of)
        if row is not None and arrow.decode_table(schema, row).errors:
            parts.append(row)
            found.append(error)
        else:
            lost.append(error)
    index = np.concatenate([decoded.index, np.asarray([error.row for error in found], np.int64)])
    order = np.argsort(index, kind="stable")
    rows = pa.concat_tables(parts).take(cast("Any", order)).combine_chunks()
    places = {int(place): position for position, place in enumerate(order.tolist())}
    good = len(decoded.index)
    errors = {places[good + number]: error for number, error in enumerate(found)}
    return Canonical(rows, index[order], errors, tuple(lost))


def fitting_inputs(
    table: pa.Table, loaded: LoadedHandler, meta: CaseMeta, path: Path
) -> tuple[pa.Table, Decoded]:
    """A case's rows in canonical types, and decoded; rows that do not fit stay in the first.

    Raises:
        StaleCaseError: the rows as a whole are not of the handler's input schema.
    """
    try:
        decoded = arrow.decode_table(loaded.inputs, table)
        if not decoded.errors:
            return decoded.batch.to_table(), decoded
        found = canonical(loaded.inputs, table)
    except ParityError as exc:
        raise StaleCaseError(
            f"golden case {path} is stale: its rows do not fit handler {loaded.name}'s input schema: {exc}"
            f"{_since(meta.inputs, table, loaded.inputs, meta)}; {_again(loaded, path)}"
        ) from exc
    if found.lost:
        raise _misfit(found.lost[0], len(found.lost), table, loaded, meta, path)
    return found.rows, decoded


def check_misfits(
    decoded: Decoded, expected: pa.Table, table: pa.Table, loaded: LoadedHandler, meta: CaseMeta, path: Path
) -> None:
    """Raise StaleCaseError where rows do not fit the input schema that were recorded as rows that do."""
    if decoded.errors:
        kinds = cast("Any", expected.column(ERROR_COLUMN).combine_chunks()).field("kind").to_pylist()
        surprising = [error for error in decoded.errors if kinds[error.row] != INVALID]
        if surprising:
            raise _misfit(surprising[0], len(surprising), table, loaded, meta, path)


def fitting_expected(table: pa.Table, loaded: LoadedHandler, meta: CaseMeta, path: Path) -> pa.Table:
    """A case's answers in the types of `Result.to_table`.

    Raises:
        StaleCaseError: the answers are not of the handler's output schema.
    """
    names = [*loaded.outputs.names, ERROR_COLUMN]
    remedy = "`parity golden update` shows and accepts the new answers"
    since = _since(meta.outputs, table, loaded.outputs, meta)
    if table.column_names != names:
        raise StaleCaseError(
            f"golden case {path} is stale: it has the answers {table.column_names}, the output schema of "
            f"handler {loaded.name} says {names}{since}; {remedy}",
            updatable=True,
        )
    wanted = [item.to_arrow(name, nullable=True) for name, item in loaded.outputs.items()]
    wanted.append(pa.field(ERROR_COLUMN, ERROR_TYPE))
    columns: list[Any] = []
    for item in wanted:
        column = table.column(item.name)
        if not _same_but_names(column.type, item.type):
            raise StaleCaseError(
                f"golden case {path} is stale: answer {item.name!r} is {column.type}, the output schema of "
                f"handler {loaded.name} says {item.type}{since}; {remedy}",
                updatable=True,
            )
        columns.append(column if column.type == item.type else column.cast(item.type))
    return pa.Table.from_arrays(columns, schema=pa.schema(wanted))


def schema_texts(schema: Schema) -> dict[str, str]:
    """Each field as it is written in a handler, without its doc, such as "Int64(ge=0, nullable=True)"."""
    return {name: _written(field) for name, field in schema.items()}


def schema_changes(recorded: Mapping[str, str], schema: Schema) -> list[str]:
    """What changed from recorded fields to the schema's, a phrase a field; none recorded, none changed."""
    if not recorded:
        return []
    now = schema_texts(schema)
    found = [f"field {name!r} is gone (it was {text})" for name, text in recorded.items() if name not in now]
    for name, text in now.items():
        if name not in recorded:
            found.append(f"field {name!r} is new, {text}")
        elif recorded[name] != text:
            found.append(f"field {name!r} was {recorded[name]}, is {text}")
    return found


def _misfit(
    error: RowError, count: int, table: pa.Table, loaded: LoadedHandler, meta: CaseMeta, path: Path
) -> StaleCaseError:
    return StaleCaseError(
        f"golden case {path} is stale: {count} of {table.num_rows} rows do not fit handler {loaded.name}'s "
        f"input schema, the first being row {error.row}: {error.message}"
        f"{_since(meta.inputs, table, loaded.inputs, meta)}; {_again(loaded, path)}"
    )


def _again(loaded: LoadedHandler, path: Path) -> str:
    return (
        f"record the case again with rows of the new schema (`parity golden prune "
        f"{loaded.ref or loaded.name}` deletes {path.name})"
    )


def _since(recorded: Mapping[str, str], table: pa.Table, schema: Schema, meta: CaseMeta) -> str:
    """The changes of a schema since the recording, as the end of a sentence; by Arrow types where need be."""
    changes = schema_changes(recorded, schema)
    if not recorded:
        stored = {item.name: str(item.type) for item in table.schema if item.name != ERROR_COLUMN}
        now = {name: str(field.arrow_type) for name, field in schema.items()}
        changes = [f"field {name!r} is gone" for name in stored if name not in now]
        changes += [f"field {name!r} is new" for name in now if name not in stored]
    if not changes:
        return ""
    more = f", and {len(changes) - _MOST_CHANGES} more" if len(changes) > _MOST_CHANGES else ""
    return f". Since version {meta.version}: {', '.join(changes[:_MOST_CHANGES])}{more}"


def _written(field: Field) -> str:
    members = field.members.items() if isinstance(field, Struct) else ()
    parts = [f"{name}={_written(member)}" for name, member in members]
    for option in fields(Field) if isinstance(field, Struct) else fields(field):
        value = getattr(field, option.name)
        if option.name != "doc" and repr(value) != repr(option.default):
            parts.append(f"{option.name}={_written(value) if isinstance(value, Field) else repr(value)}")
    return f"{field.type_name}({', '.join(parts)})"


def _nullable(table: pa.Table, schema: pa.Schema) -> pa.Table:
    return pa.Table.from_arrays(table.columns, schema=schema)


def _cast(schema: Schema, row: pa.Table, wanted: pa.Schema) -> pa.Table | None:
    """One row in canonical types; None where a value has no such form."""
    columns: list[Any] = []
    for name, field in schema.items():
        place = row.schema.get_field_index(name)
        try:
            if place < 0:
                default = compile_default(name, field, compile_value(field))
                columns.append(pa.chunked_array([constant_array(field, default, 1)]))
            else:
                column = row.column(place).cast(field.arrow_type)
                column.validate(full=True)  # text that is not UTF-8 does not survive the disk
                columns.append(column)
        except (pa.ArrowException, ParityError):
            return None
    return pa.Table.from_arrays(columns, schema=wanted)


def _same_but_names(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether two types differ only in what Parquet changes: item names, nullability, seconds to ms."""
    if pa.types.is_timestamp(stored) and pa.types.is_timestamp(wanted):
        units = (cast("Any", stored).unit, cast("Any", wanted).unit)
        same_zone = cast("Any", stored).tz == cast("Any", wanted).tz
        return same_zone and (units[0] == units[1] or units == ("ms", "s"))
    if stored.num_fields == 0 or stored.id != wanted.id:
        return stored == wanted
    if pa.types.is_struct(stored):
        ours, theirs = list(cast("Any", stored)), list(cast("Any", wanted))
        return len(ours) == len(theirs) and all(
            one.name == other.name and _same_but_names(one.type, other.type)
            for one, other in zip(ours, theirs, strict=True)
        )
    one, other = cast("Any", stored), cast("Any", wanted)
    same_size = getattr(one, "list_size", None) == getattr(other, "list_size", None)
    return same_size and _same_but_names(one.value_type, other.value_type)
