"""Tables of the libraries people use, as batches and back.

Read and written are pandas, Polars, Arrow, dicts of arrays and lists of dicts; pandas and Polars are
imported only where one of their frames arrives. Columns that the schema does not name are ignored in frames,
and refused in row dicts, where they are more likely a slip of the pen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import pyarrow as pa

from parity.batch import Batch
from parity.codec import arrow, frames_out
from parity.codec.build import constant_array
from parity.codec.decoded import Decoded
from parity.codec.foreign import library_of
from parity.codec.rejection import brief
from parity.codec.rows import RowDecoder
from parity.codec.series import column_length, read_column
from parity.codec.values import compile_default, compile_value
from parity.column import Column
from parity.errors import RowError, SchemaError, did_you_mean
from parity.schema import Schema

__all__ = ["decode", "encode"]


def decode(schema: Schema, given: Any) -> Decoded:
    """The rows of a frame.

    Args:
        schema: what the rows are to be.
        given: a pandas or Polars DataFrame, an Arrow table or record batch, a Batch of the schema, a mapping
            of names to columns (numpy arrays, tensors, series, lists), or a list of row mappings.

    Raises:
        SchemaError: it is none of these, or a column is missing or cannot be of its field's kind at all.
    """
    if isinstance(given, pa.Table | pa.RecordBatch):
        return arrow.decode_table(schema, given)
    if isinstance(given, Batch):
        if given.schema != schema:
            raise SchemaError("the batch is of another schema")
        return Decoded.of(given)
    library = library_of(given)
    if library == "pandas" and hasattr(given, "columns"):
        return _decode_pandas(schema, given)
    if library == "polars":
        return _decode_polars(schema, given)
    if isinstance(given, Mapping):
        return _decode_mapping(schema, cast("Mapping[Any, Any]", given))
    if isinstance(given, Sequence) and not isinstance(given, str | bytes):
        return RowDecoder(schema).decode(cast("Sequence[object]", given))
    raise SchemaError(
        f"{brief(given)} of type {type(given).__name__} is no table; give a pandas or Polars DataFrame, an "
        "Arrow table, a dict of arrays, or a list of dicts"
    )


def encode(like: Any, table: pa.Table) -> Any:
    """A table in the form of `like`, exact to the bit.

    Integers stay integers beside nulls, null and NaN stay two things. pandas columns are numpy's where the
    Arrow field is not nullable, else pandas' nullable dtypes (for floats Arrow's, the only ones that hold
    both null and NaN); what pandas has no dtype for is an object column of Python values and numpy arrays.
    The index is that of `like` where it has as many rows.

    Raises:
        SchemaError: `like` is none of the forms that `decode` reads, or cannot hold a value.
    """
    if isinstance(like, pa.RecordBatch):
        batches = table.combine_chunks().to_batches()
        return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
    if isinstance(like, pa.Table | Batch):
        return table
    library = library_of(like)
    if library == "pandas":
        return frames_out.to_pandas(table, like.index if len(like) == table.num_rows else None)
    if library == "polars":
        return frames_out.to_polars(table)
    if isinstance(like, Mapping):
        return frames_out.to_arrays(table)
    if isinstance(like, Sequence) and not isinstance(like, str | bytes):
        return frames_out.to_rows(table)
    raise SchemaError(f"no table can be made in the form of {brief(like)} of type {type(like).__name__}")


def _decode_pandas(schema: Schema, frame: Any) -> Decoded:
    names = list(frame.columns)
    twice = [name for name in schema.names if names.count(name) > 1]
    if twice:
        raise SchemaError(f"the frame does not fit the schema: columns {twice} are there more than once")
    hint = [str(name) for name in frame.index.names if name in schema.names and name not in names]
    remedy = f"{hint} is in the index: use .reset_index()" if hint else ""
    return _decode_columns(schema, names, frame.__getitem__, len(frame), remedy)


def _decode_polars(schema: Schema, frame: Any) -> Decoded:
    if not hasattr(frame, "to_arrow") or not hasattr(frame, "get_column"):
        raise SchemaError(
            f"a Polars {type(frame).__name__} is no DataFrame; use .collect() or .to_frame() first"
        )
    return _decode_columns(schema, list(frame.columns), frame.get_column, frame.height)


def _decode_mapping(schema: Schema, columns: Mapping[Any, Any]) -> Decoded:
    lengths = {name: column_length(columns[name]) for name in schema.names if name in columns}
    single = [name for name, length in lengths.items() if length is None]
    if single:
        raise SchemaError(
            f"column {single[0]!r} is {brief(columns[single[0]])}, a single value; a dict holds columns, "
            "one array or list each: for one row, give [row]"
        )
    if len(set(lengths.values())) > 1:
        raise SchemaError(
            f"the columns differ in length: {lengths}; a dict is read as columns, so for one row, give [row]"
        )
    num_rows = next(iter(lengths.values()), None)
    if num_rows is None and columns:
        unknown = str(next(iter(columns)))
        raise SchemaError(f"none of the dict's keys is a field; {did_you_mean(unknown, schema.names)}")
    return _decode_columns(schema, list(columns), columns.__getitem__, num_rows or 0)


def _decode_columns(
    schema: Schema, given: list[Any], column: Callable[[Any], Any], num_rows: int, remedy: str = ""
) -> Decoded:
    found: dict[str, Column | list[Any]] = {}
    errors: dict[int, RowError] = {}
    problems: list[str] = []
    for name, field in schema.items():
        if name in given:
            try:
                found[name], faults = read_column(name, field, column(name))
            except SchemaError as exc:
                problems.append(str(exc))
                continue
            for row, fault in faults.items():
                errors.setdefault(row, RowError(row, "invalid", fault.message(name), name))
        elif field.has_default:
            default = compile_default(name, field, compile_value(field))
            found[name] = Column(field, arrow=constant_array(field, default, num_rows))
        else:
            hint = did_you_mean(name, [str(other) for other in given])
            problems.append(f"column {name!r} ({field.describe()}) is missing{f'; {hint}' if hint else ''}")
    if problems:
        raise SchemaError(
            "the table does not fit the schema: " + " | ".join([*problems, *filter(None, [remedy])])
        )
    return Decoded.sifted(schema, found, num_rows, errors)
