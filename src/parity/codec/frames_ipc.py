"""Batches and results between the processes of one runner: exact, and not checked again.

Both ends are ours and share one schema, so nothing is converted: columns travel as Arrow IPC in the schema's
canonical types, and whatever is not a column as JSON before them.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from parity.batch import Batch
from parity.codec.layouts import one_chunk
from parity.column import Column
from parity.errors import MalformedError, RowError
from parity.result import Result
from parity.schema import Schema

__all__ = ["decode_batch", "decode_result", "encode_batch", "encode_result"]

_HEAD = struct.Struct("!I")
_ERROR_KEYS = ("row", "kind", "message", "field", "stage", "type")


def encode_batch(batch: Batch, **more: Any) -> bytes:
    """A batch, and JSON-ready values beside it."""
    return _pack({"rows": batch.num_rows, **more}, batch.to_table())


def decode_batch(schema: Schema, data: bytes | memoryview) -> tuple[Batch, dict[str, Any]]:
    """The batch of `encode_batch`, and the values beside it.

    Raises:
        MalformedError: it is of another schema.
    """
    meta, table = _unpack(data)
    return _batch(schema, table, meta["rows"]), meta


def encode_result(result: Result) -> bytes:
    """A result without its stage values."""
    meta = {
        "rows": result.num_rows,
        "answers": result.outputs.num_rows,
        "index": result.index.tolist(),
        "buckets": result.buckets.tolist(),
        "timings": dict(result.timings),
        "errors": [[getattr(error, key) for key in _ERROR_KEYS] for error in result.errors],
    }
    return _pack(meta, result.outputs.to_table())


def decode_result(schema: Schema, data: bytes | memoryview) -> Result:
    """The result of `encode_result`, its outputs of `schema`.

    Raises:
        MalformedError: they are of another schema.
    """
    meta, table = _unpack(data)
    return Result(
        num_rows=meta["rows"],
        outputs=_batch(schema, table, meta["answers"]),
        index=np.array(meta["index"], np.int64),
        errors=tuple(RowError(**dict(zip(_ERROR_KEYS, values, strict=True))) for values in meta["errors"]),
        timings=meta["timings"],
        buckets=np.array(meta["buckets"], np.int32),
    )


def _pack(meta: dict[str, Any], table: pa.Table) -> bytes:
    head = orjson.dumps(meta)
    sink = pa.BufferOutputStream()
    sink.write(_HEAD.pack(len(head)))
    sink.write(head)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def _unpack(data: bytes | memoryview) -> tuple[dict[str, Any], pa.Table]:
    view = memoryview(data)
    (length,) = _HEAD.unpack(view[: _HEAD.size])
    start = _HEAD.size + length
    meta = orjson.loads(view[_HEAD.size : start])
    with pa.ipc.open_stream(pa.py_buffer(view[start:])) as reader:
        return meta, reader.read_all()


def _batch(schema: Schema, table: pa.Table, rows: int) -> Batch:
    expected = schema.to_arrow()
    if table.num_columns and not table.schema.equals(expected):
        raise MalformedError(f"columns of the schema {table.schema}, expected {expected}")
    columns = {
        name: Column(field, arrow=one_chunk(table.column(place)))
        for place, (name, field) in enumerate(schema.items())
    }
    return Batch(schema, columns, rows)
