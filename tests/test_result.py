"""Results as tables: rows that failed are null, and the table is one that Parquet takes."""

from __future__ import annotations

import io
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parity.batch import Batch
from parity.column import spread
from parity.errors import RowError
from parity.result import ERROR_COLUMN, Result
from parity.schema import Float32, Int64, List, Schema, Struct, Tensor
from tests.strategies import batches


@given(batches(), st.data())
def test_a_result_with_failed_rows_is_a_table_that_parquet_keeps(batch: Batch, data: st.DataObject):
    failed = data.draw(st.sets(st.integers(0, batch.num_rows + 1), min_size=2, max_size=2))
    rows = batch.num_rows + 2
    index = np.array([row for row in range(rows) if row not in failed], np.int64)
    errors = tuple(RowError(row, "failed", "no") for row in sorted(failed))
    table = Result(rows, batch, index, errors).to_table()
    table.validate(full=True)
    file = io.BytesIO()
    pq.write_table(table, file)
    kept = pq.read_table(file)
    assert kept.num_rows == rows
    for name in batch.schema.names:
        # Null beneath null: beside the row errors, what is null is what was.
        wanted = batch[name].null_count + 2
        assert kept.column(name).null_count == table.column(name).null_count == wanted
        assert kept.take(cast("Any", pa.array(index))).column(name).null_count == batch[name].null_count
    assert [error is not None for error in table.column(ERROR_COLUMN).to_pylist()] == [
        row in failed for row in range(rows)
    ]


@pytest.mark.parametrize("rows", [[], [-1], [-1, 0, -1, 1], [1, 0]])
def test_records_are_spread_with_members_that_are_not_null(rows: list[int]):
    inner = Schema(p=Struct(a=Int64(), v=Tensor("float32", (2,))))["p"]
    field = Struct(a=Int64(), b=Float32(nullable=True), c=List(Int64()), d=inner)
    values = pa.array(
        [
            {"a": 1, "b": None, "c": [1, 2], "d": {"a": 3, "v": [1.0, 2.0]}},
            {"a": 2, "b": 0.5, "c": [], "d": {"a": 4, "v": [3.0, 4.0]}},
        ],
        type=field.arrow_type,
    )
    for source in (values, values.slice(0, 0)) if max(rows, default=-1) < 0 else (values,):
        found = spread(source, np.array(rows, np.int64))
        found.validate(full=True)
        assert found.to_pylist() == [None if row < 0 else values[row].as_py() for row in rows]
        assert cast("pa.StructArray", found).field(0).null_count == 0
