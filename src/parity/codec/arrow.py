"""Arrow tables, record batches and IPC streams as batches, and back: vectorised, zero-copy where it can be.

A column whose type cannot be the field's kind is refused as a whole; a value that does not fit is a row error
and leaves the other rows alone. Columns that the schema does not name are ignored.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from parity.batch import Batch
from parity.codec.arrow_sizes import decoded_bytes, unpacked_bytes
from parity.codec.build import constant_array
from parity.codec.convert import convert, is_canonical
from parity.codec.decoded import Decoded, TooManyRowsError, require_rows
from parity.codec.kinds import kind_problems
from parity.codec.layouts import is_list_like, one_chunk
from parity.codec.values import compile_default, compile_value
from parity.column import Column
from parity.errors import MalformedError, RowError, SchemaError, did_you_mean
from parity.schema import Field, Schema

__all__ = ["check_schema", "decode_ipc", "decode_table", "encode_ipc", "encode_table"]


def check_schema(schema: Schema, given: pa.Schema) -> list[str]:
    """Everything that keeps a table of schema `given` from being read as `schema`; empty when it can be."""
    problems: list[str] = []
    for name, field in schema.items():
        places = given.get_all_field_indices(name)
        if len(places) > 1:
            problems.append(f"column {name!r} is there {len(places)} times; keep one")
        elif places:
            problems.extend(kind_problems(name, field, given.field(places[0]).type))
        elif not field.has_default:
            hint = did_you_mean(name, given.names)
            problems.append(f"column {name!r} ({field.describe()}) is missing{f'; {hint}' if hint else ''}")
    return problems


def decode_table(schema: Schema, table: pa.Table | pa.RecordBatch) -> Decoded:
    """The rows of a table.

    Raises:
        SchemaError: a column is missing, there twice, or of the wrong kind; the message names them all.
    """
    columns: dict[str, Column] = {}
    errors: dict[int, RowError] = {}
    for name, field, place, ready in _fit(schema, table.schema):
        if place < 0:
            default = compile_default(name, field, compile_value(field))
            columns[name] = Column(field, arrow=constant_array(field, default, table.num_rows))
            continue
        array = one_chunk(table.column(place))
        if ready and (field.nullable or not array.null_count):
            columns[name] = Column(field, arrow=array)
            continue
        try:
            found = convert(field, array)
        except SchemaError as exc:
            raise SchemaError(f"column {name!r}: {exc}") from exc
        columns[name] = Column(field, arrow=found.array)
        for row, fault in found.faults.items():
            errors.setdefault(row, RowError(row, "invalid", fault.message(name), name))
    return Decoded.sifted(schema, columns, table.num_rows, errors)


_Fit = list[tuple[str, Field, int, bool]]
_last_fit: tuple[Schema, pa.Schema, _Fit] | None = None
"""The batches of a stream have one schema, looked at once; replaced as a whole, so any thread may do so."""


def _fit(schema: Schema, given: pa.Schema) -> _Fit:
    """Each field with its column's place, -1 for none, and whether any values there are canonical."""
    global _last_fit
    last = _last_fit
    if last is not None and last[0] is schema and last[1].equals(given):
        return last[2]
    problems = check_schema(schema, given)
    if problems:
        raise SchemaError("the table does not fit the schema: " + " | ".join(problems))
    fit: _Fit = []
    for name, field in schema.items():
        place = given.get_field_index(name)
        fit.append((name, field, place, place >= 0 and is_canonical(field, given.field(place).type)))
    _last_fit = schema, given, fit
    return fit


def encode_table(batch: Batch) -> pa.Table:
    """The batch as a table of canonical types, without a copy."""
    return batch.to_table()


def decode_ipc(
    data: bytes | memoryview, *, most_rows: int | None = None, most_bytes: int | None = None
) -> pa.Table:
    """The table in an Arrow IPC stream, checked so that hostile offsets cannot reach outside their buffers.

    Text that is not UTF-8 is left for `decode_table`, which makes a row error of it.

    Args:
        data: the stream.
        most_rows: how many rows are taken; None for any number.
        most_bytes: how many bytes are taken once compression and encodings are undone; None for any number.

    Raises:
        TooManyRowsError: there are more rows or bytes.
        MalformedError: it is not an IPC stream, or is cut short, or more than one, or its buffers contradict
            each other.
    """
    try:
        buffer = pa.py_buffer(data)
        if most_bytes is not None:
            _require_bytes(unpacked_bytes(buffer), most_bytes)
        rows = 0
        batches: list[pa.RecordBatch] = []
        source = pa.BufferReader(buffer)
        with pa.ipc.open_stream(source) as reader:
            for batch in reader:
                rows += batch.num_rows
                require_rows(rows, most_rows)
                batches.append(batch)
            table = pa.Table.from_batches(batches, reader.schema)
        behind = memoryview(data)[source.tell() :]
        if bytes(behind).strip(b"\0"):  # a stream that ends may be padded
            raise MalformedError(
                f"{len(behind)} bytes follow the Arrow IPC stream; send one stream, with all batches in it"
            )
        _validate(table)
        if most_bytes is not None:
            chunks = (chunk for column in table.columns for chunk in column.chunks)
            _require_bytes(sum(map(decoded_bytes, chunks)), most_bytes)
    except (pa.ArrowException, OSError, ValueError, EOFError) as exc:
        hint = "; this is the file format, send the stream format" if bytes(data[:6]) == b"ARROW1" else ""
        raise MalformedError(f"not an Arrow IPC stream: {exc}{hint}") from exc
    return table


def encode_ipc(table: pa.Table | pa.RecordBatch) -> bytes:
    """An Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write(table)
    return sink.getvalue().to_pybytes()


def _require_bytes(size: float, most: int) -> None:
    if size > most:
        raise TooManyRowsError(
            f"the columns take {size:.0f} bytes once decoded, the limit is {most}; send fewer rows at "
            "a time, or without compression, dictionaries and views"
        )


def _validate(table: pa.Table) -> None:
    try:
        table.validate(full=True)
    except pa.ArrowInvalid:
        for column in table.columns:
            for chunk in column.chunks:
                _as_bytes(chunk).validate(full=True)


def _as_bytes(array: Any) -> Any:
    """The same memory with text seen as bytes, which have no encoding to get wrong."""
    kind = array.type
    if pa.types.is_string(kind):
        return array.view(pa.binary())
    if pa.types.is_large_string(kind):
        return array.view(pa.large_binary())
    if pa.types.is_string_view(kind):
        return array.view(pa.binary_view())
    if (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and _holds_text(kind):
        inner = _as_bytes(array.values)
        made = pa.list_ if pa.types.is_list(kind) else pa.large_list
        return pa.Array.from_buffers(
            made(inner.type), len(array), array.buffers()[:2], offset=array.offset, children=[inner]
        )
    if pa.types.is_struct(kind) and _holds_text(kind) and array.offset == 0:
        inner = [_as_bytes(array.field(at)) for at in range(kind.num_fields)]
        fields = [pa.field(str(at), child.type) for at, child in enumerate(inner)]
        return pa.Array.from_buffers(pa.struct(fields), len(array), array.buffers()[:1], children=inner)
    return array


def _holds_text(kind: Any) -> bool:
    if is_list_like(kind):
        return _holds_text(kind.value_type)
    if pa.types.is_struct(kind):
        return any(_holds_text(kind.field(at).type) for at in range(kind.num_fields))
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
