"""Telling the forms that rows come in apart: one row or many, and the first few of many. Changes no value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy as np
import pyarrow as pa

from parity.batch import Batch
from parity.codec.foreign import as_numpy, library_of
from parity.schema import Field, Image, List, Schema, Tensor

_A_COLUMN = 99


def is_one_row(schema: Schema, rows: object) -> bool:
    """Whether `rows` is a dict that holds one row, and not one column for each field.

    In a dict of columns every value is nested one level deeper than a value of its field; a value that is
    not (a text, a number, None) makes the dict one row.
    """
    if not isinstance(rows, Mapping) or isinstance(rows, Batch):
        return False
    deeper = False
    for name, value in cast("Mapping[Any, Any]", rows).items():
        if name not in schema:
            continue
        depth = _value_depth(value)
        if depth == 0:
            return True
        deeper = deeper or depth > _field_depth(schema[name])
    return not deeper


def first_rows(rows: Any, limit: int) -> Any:
    """The first `limit` rows of any form that rows come in, in the same form; what is none is given back."""
    if isinstance(rows, Batch):
        return rows.slice(0, limit)
    if isinstance(rows, Mapping):
        columns = cast("Mapping[Any, Any]", rows)
        return {name: first_rows(column, limit) for name, column in columns.items()}
    if hasattr(rows, "iloc"):
        return rows.iloc[:limit]
    if library_of(rows) in ("pyarrow", "polars"):
        return rows.slice(0, limit)
    return rows[:limit] if hasattr(rows, "__getitem__") else rows


def _field_depth(field: Field) -> int:
    """How many lists a value of the field is nested in."""
    if isinstance(field, Tensor):
        return len(field.shape)
    if isinstance(field, Image):
        return 3 if field.form == "array" else 0
    return 1 + _field_depth(field.of) if isinstance(field, List) else 0


def _value_depth(value: Any) -> int:
    """How many lists a value is nested in, told by its first items; a column of a library has no end."""
    if value is None or isinstance(value, str | bytes | bytearray | Mapping):
        return 0
    array = as_numpy(value)
    if array is not None and array.dtype.kind != "O":
        return array.ndim
    if isinstance(value, pa.Array | pa.ChunkedArray) or library_of(value) in ("pandas", "polars"):
        return _A_COLUMN if hasattr(value, "__len__") else 0
    if isinstance(value, Iterable) and not isinstance(value, np.generic):
        first = next(iter(cast("Iterable[Any]", value)), None)
        return 1 + _value_depth(first)
    return 0
