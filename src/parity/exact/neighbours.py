"""The rows that a probe puts side by side: real ones, and hostile neighbours that the schema allows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from parity.batch import Batch
from parity.column import Column
from parity.examples import EDGE_KINDS, edge_row, example_batch
from parity.schema import BFLOAT16, Field, Floating, Schema, Tensor

POOL_ROWS: Final = 96
"""The rows that a probe compares; facts about batch shapes show at 64 rows and seldom at three."""

LEAST_ROWS: Final = 64
"""Fewer real rows than this are filled up with made ones."""

_HUGE: Final = 1e4


def pool_of(schema: Schema, rows: Batch | None) -> tuple[Batch, int]:
    """The rows for a probe, at most `POOL_ROWS`, evenly chosen; and how many of them are made up.

    Args:
        schema: the handler's input schema.
        rows: real rows; fewer than `LEAST_ROWS` are filled up with example rows.
    """
    if rows is None or rows.num_rows == 0:
        return example_batch(schema, LEAST_ROWS), LEAST_ROWS
    if rows.num_rows > POOL_ROWS:
        chosen = np.linspace(0, rows.num_rows - 1, POOL_ROWS).round().astype(np.int64)
        return rows.take(chosen), 0
    made = max(0, LEAST_ROWS - rows.num_rows)
    return (Batch.concat([rows, example_batch(schema, made)]) if made else rows), made


def hostile_neighbours(pool: Batch) -> Iterator[tuple[str, Batch]]:
    """Rows of one kind each, by the kind's name.

    Every field zero, least, greatest, denormal, NaN, infinite, null, empty or longest, as far as the schema
    allows; and real rows with floats 10,000 times as large.
    """
    for kind in EDGE_KINDS:
        row = edge_row(pool.schema, kind)
        if row is not None:
            yield kind, row
    huge = _scaled(pool.slice(0, 8))
    if huge is not None:
        yield "huge", huge


def _scaled(rows: Batch) -> Batch | None:
    columns = {name: _scaled_column(column) for name, column in rows.items()}
    if all(columns[name] is column for name, column in rows.items()):
        return None
    return Batch(rows.schema, columns, rows.num_rows)


def _scaled_column(column: Column) -> Column:
    field = column.field
    if column.null_count or not _is_float(field) or field.row_shape is None:
        return column
    values = column.numpy()
    with np.errstate(all="ignore"):
        scaled = (values.astype(np.float64) * _HUGE).astype(values.dtype)
    if isinstance(field, Floating):
        allowed = np.ones(len(scaled), bool)
        for bound, keeps in ((field.ge, np.greater_equal), (field.le, np.less_equal)):
            if bound is not None:
                allowed &= keeps(scaled, bound)
        scaled = np.where(allowed, scaled, values)
    return Column(field, numpy=np.ascontiguousarray(scaled))


def _is_float(field: Field) -> bool:
    dtype = field.numpy_dtype if isinstance(field, Floating | Tensor) else None
    return dtype is not None and (dtype.kind == "f" or dtype == BFLOAT16)


def shuffles(pool_rows: int, bucket: int, count: int, seed: int) -> Iterator[Sequence[int]]:
    """Batches of at most `bucket` rows of a pool in random company, so that each row is in `count` of them.

    Every other round fills the bucket; the others fill it by chance, as requests do.
    """
    rng = np.random.default_rng([seed, bucket])
    times = -(-bucket // pool_rows)  # a bucket larger than the pool holds its rows more than once
    for number in range(-(-count // times)):
        order = np.concatenate([rng.permutation(pool_rows) for _ in range(times)])
        start = 0
        while start < len(order):
            size = bucket if number % 2 == 0 else int(rng.integers(1, bucket + 1))
            yield order[start : start + size].tolist()
            start += size
