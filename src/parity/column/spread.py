"""Values put into the places of the rows that have one, null everywhere else."""

from __future__ import annotations

import decimal
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.types as pat


def spread(values: pa.Array[Any], rows: np.ndarray[Any, np.dtype[np.int64]]) -> pa.Array[Any]:
    """An array of `len(rows)` elements: `values[row]` for each row, null where it is -1.

    Beneath a null record lie values that could stand there: a plain `take` would put null into members that
    must not be null, and Parquet refuses those.
    """
    missing = rows < 0
    if not pat.is_struct(values.type) or not missing.any():
        indices: Any = pa.array(rows, mask=missing)
        return values.take(indices)
    source: Any = values if len(values) else pa.array(cast("Any", [_stand_in(values.type)]), type=values.type)
    taken = source.take(pa.array(np.where(missing, 0, rows)))
    valid = np.asarray(taken.is_valid().to_numpy(zero_copy_only=False), np.bool_) & ~missing
    bitmap = pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
    members = [taken.field(position) for position in range(taken.type.num_fields)]
    return pa.Array.from_buffers(values.type, len(rows), [bitmap], children=members)


def _stand_in(kind: Any) -> object:
    """A Python value of an Arrow type that is not null, nor are its members that must not be."""
    if pat.is_struct(kind):
        members = [kind.field(position) for position in range(kind.num_fields)]
        return {member.name: None if member.nullable else _stand_in(member.type) for member in members}
    if pat.is_fixed_size_list(kind):
        return [_stand_in(kind.value_type)] * kind.list_size
    if pat.is_list(kind) or pat.is_large_list(kind):
        return []
    if pat.is_string(kind) or pat.is_large_string(kind):
        return ""
    if pat.is_binary(kind) or pat.is_large_binary(kind):
        return b""
    if pat.is_boolean(kind):
        return False
    return decimal.Decimal(0) if pat.is_decimal(kind) else 0
