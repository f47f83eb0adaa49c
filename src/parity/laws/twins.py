"""Rows that differ from given ones by next to nothing, for whoever takes two such rows for the same."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from parity.batch import Batch
from parity.column import Column
from parity.examples import float_value, tensor_value
from parity.laws.simpler import value_of
from parity.schema import Field, Floating, Integer, List, String, Tensor, Timestamp

NUDGES: Final = (1e-3, 1e-6)
"""By how much of itself a float is changed: a cache may round its keys to few digits, or to many."""

_COARSE: Final = 1e-4


def near_twins(batch: Batch, nudge: float) -> Batch:
    """The rows with each float changed by `nudge` of itself, and other values by as little as they can be.

    A nudge of 1e-4 or more also swaps the case of texts, turns lists round and changes integers by one; a
    smaller one appends a space to texts. What could not be changed inside its field is left as it is.
    """
    columns = {name: _nudged(batch, name, nudge) for name in batch.schema.names}
    return Batch(batch.schema, columns, batch.num_rows)


def _nudged(batch: Batch, name: str, nudge: float) -> Column:
    column = batch[name]
    change = _change(column.field, nudge)
    if change is None:
        return column
    if isinstance(column.field, Timestamp):
        ticks: Any = column.arrow.cast(pa.int64())
        moved = pa.array([None if tick is None else tick + 1 for tick in ticks.to_pylist()], pa.int64())
        return Column(column.field, arrow=moved.cast(column.field.arrow_type))
    values = [value_of(batch, name, row) for row in range(batch.num_rows)]
    changed = [None if value is None else change(value) for value in values]
    return Column(column.field, arrow=pa.array(changed, column.field.arrow_type))


def _change(field: Field, nudge: float) -> Callable[[Any], Any] | None:
    """What to do with a value of the field, which gives it in stored form; None to leave all as they are."""
    coarse = nudge >= _COARSE
    match field:
        case Floating():
            return lambda value: _float(field, value, nudge)
        case Integer() if field.choices is None:
            low, high = field.limits
            return (lambda value: value + 1 if low <= value < high else value) if coarse else None
        case String() if field.choices is None:
            if coarse:
                return lambda value: value.swapcase()[: field.max_length]
            return lambda value: f"{value} "[: field.max_length]
        case List() if coarse and not isinstance(field.of, Tensor):
            return lambda value: value[::-1]
        case Tensor():
            return lambda value: tensor_value(field, _array(value, nudge))
        case Timestamp():
            return lambda value: value
        case _:
            return None


def _float(field: Floating, value: float, nudge: float) -> Any:
    moved = value + nudge * abs(value) if math.isfinite(value) else value
    fits = (field.ge is None or moved >= field.ge) and (field.le is None or moved <= field.le)
    return float_value(field, moved if fits else value)


def _array(value: np.ndarray[Any, Any], nudge: float) -> np.ndarray[Any, Any]:
    if value.dtype.kind in "biu":
        return value
    with np.errstate(all="ignore"):
        return (value * (1 + nudge)).astype(value.dtype)
