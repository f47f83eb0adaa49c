"""Batches: named columns of one length that nobody can change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parity.batch import Batch
from parity.column import Column
from parity.errors import SchemaError
from parity.schema import Int64, Schema
from tests.codec.identity import assert_same_bits
from tests.strategies import batches

AB = Schema(a=Int64(), b=Int64())


def column(*values: int) -> Column:
    return Column(Int64(), numpy=np.array(values, dtype=np.int64))


def numbers(rows: int) -> Batch:
    return Batch(AB, {"a": column(*range(rows)), "b": column(*range(rows))})


def test_a_batch_is_a_mapping_of_columns_and_its_length_its_rows() -> None:
    batch = Batch(AB, {"b": column(3, 4, 5), "a": column(0, 1, 2)})
    assert list(batch) == ["a", "b"]
    assert len(batch) == batch.num_rows == 3
    assert "a" in batch
    assert batch["b"].to_pylist() == [3, 4, 5]
    assert [name for name, _ in batch.items()] == ["a", "b"]
    assert repr(batch) == "Batch(3 rows; a: Int64, b: Int64)"
    with pytest.raises(SchemaError, match="no column 'c' in this batch; known: 'a', 'b'"):
        batch["c"]


@pytest.mark.parametrize(
    ("columns", "rows", "text"),
    [
        ({"a": column(1)}, None, "missing ['b'], superfluous []"),
        ({"a": column(1), "b": column(1), "c": column(1)}, None, "missing [], superfluous ['c']"),
        ({"a": column(1), "b": column(1, 2)}, None, "differ in length: {'a': 1, 'b': 2}"),
        ({"a": column(1), "b": column(1)}, 2, "differ in length"),
    ],
)
def test_columns_that_do_not_fit_are_refused(columns: dict[str, Column], rows: Any, text: str) -> None:
    with pytest.raises(SchemaError) as caught:
        Batch(AB, columns, rows)
    assert text in str(caught.value)


def test_rows_may_be_rejected_once_each() -> None:
    batch = numbers(3)
    batch.reject(1, "first")
    batch.reject(np.int64(1), "second")  # type: ignore[arg-type]
    assert batch.rejections == {1: "first"}
    for row in (-1, 3):
        with pytest.raises(IndexError, match=f"reject: row {row} of a batch of 3 rows"):
            batch.reject(row, "no")
    assert batch.slice(0, 2).rejections == {}
    assert batch.take([1]).rejections == {}


def test_a_schema_without_fields_still_counts_rows() -> None:
    empty = Batch(Schema(), {}, 5)
    assert empty.num_rows == 5
    assert empty.slice(1, 3).num_rows == 2
    assert empty.take([0, 0]).num_rows == 2
    assert Batch.concat([empty, empty]).num_rows == 10
    assert empty.to_table().num_columns == 0


def test_splitting() -> None:
    assert [piece.num_rows for piece in numbers(5).split(2)] == [2, 2, 1]
    assert [piece.num_rows for piece in numbers(0).split(2)] == [0]


def test_concatenating_what_does_not_fit_is_refused() -> None:
    with pytest.raises(SchemaError, match="needs at least one batch"):
        Batch.concat([])
    with pytest.raises(SchemaError, match="different schemas"):
        Batch.concat([numbers(1), Batch(Schema(a=Int64()), {"a": column(1)})])


def test_slices_beyond_the_end_are_cut() -> None:
    batch = numbers(3)
    assert batch.slice(2, 9).num_rows == 1
    assert batch.slice(5, 9).num_rows == 0
    assert batch.slice(2, 1).num_rows == 0
    assert batch.slice(-2, 2).num_rows == 2


def test_batches_are_equal_to_themselves_only() -> None:
    batch = numbers(1)
    assert batch == batch
    assert batch != numbers(1)
    assert len({batch, numbers(1)}) == 2


@pytest.mark.slow
@given(batches(), st.integers(1, 3))
def test_splitting_and_concatenating_give_the_batch_back(batch: Batch, rows: int) -> None:
    assert_same_bits(Batch.concat(batch.split(rows)), batch)


@pytest.mark.slow
@given(batches())
def test_the_table_has_the_schemas_types_and_metadata(batch: Batch) -> None:
    table = batch.to_table()
    table.validate(full=True)
    assert table.schema.equals(batch.schema.to_arrow(), check_metadata=True)
    assert table.num_rows == batch.num_rows
    for name in batch.schema.names:
        assert table[name].null_count == batch[name].null_count
