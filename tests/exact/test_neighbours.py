"""Every row of the pool gets random company, and the hostile neighbours fit the schema."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parity import Float32, Int64, Schema, Tensor
from parity.codec.arrow import decode_table
from parity.exact.neighbours import LEAST_ROWS, POOL_ROWS, hostile_neighbours, pool_of, shuffles
from parity.examples import example_batch
from tests.test_examples import EVERY_TYPE


@pytest.mark.slow
@given(st.integers(1, 100), st.integers(1, 130), st.integers(1, 6), st.integers(0, 3))
def test_each_row_is_in_as_many_batches_as_asked(rows: int, bucket: int, count: int, seed: int) -> None:
    seen: Counter[int] = Counter()
    full = 0
    for batch in shuffles(rows, bucket, count, seed):
        assert 1 <= len(batch) <= bucket
        seen.update(batch)
        full += len(batch) == bucket
    assert {*seen} == {*range(rows)}
    assert min(seen.values()) >= count
    assert full >= 1 or rows < bucket


def test_company_is_the_same_every_time() -> None:
    assert list(shuffles(64, 16, 4, 0)) == list(shuffles(64, 16, 4, 0))
    assert list(shuffles(64, 16, 4, 0)) != list(shuffles(64, 16, 4, 1))


def test_hostile_rows_fit_every_type_of_the_schema() -> None:
    pool = example_batch(EVERY_TYPE, 8)
    kinds = dict(hostile_neighbours(pool))
    assert {"zero", "nan", "infinite", "null", "empty", "longest", "odd", "huge"} <= set(kinds)
    for kind, rows in kinds.items():
        assert not decode_table(EVERY_TYPE, rows.to_table()).errors, kind


def test_huge_rows_are_real_ones_times_ten_thousand_within_their_range() -> None:
    schema = Schema(free=Float32(), bounded=Float32(ge=-1.0, le=1.0), n=Int64(), t=Tensor("float32", (2,)))
    pool = example_batch(schema, 8)
    huge = dict(hostile_neighbours(pool))["huge"]
    factor = np.float64(1e4)
    for name in ("free", "t"):
        expected = (pool[name].numpy().astype(np.float64) * factor).astype(np.float32)
        np.testing.assert_array_equal(huge[name].numpy(), expected)
    assert np.abs(huge["bounded"].numpy()).max() <= 1.0
    assert huge["n"].to_pylist() == pool["n"].to_pylist()
    assert "huge" not in dict(hostile_neighbours(example_batch(Schema(n=Int64()), 4)))


def test_few_rows_are_filled_up_and_many_are_thinned_out_evenly() -> None:
    schema = Schema(n=Int64())
    real = example_batch(schema, 10, seed=3)
    pool, made = pool_of(schema, real)
    assert (pool.num_rows, made) == (LEAST_ROWS, LEAST_ROWS - 10)
    assert pool["n"].to_pylist()[:10] == real["n"].to_pylist()
    assert pool_of(schema, None)[1] == LEAST_ROWS
    many, made = pool_of(schema, example_batch(schema, 1000))
    assert (many.num_rows, made) == (POOL_ROWS, 0)
    assert many["n"].to_pylist()[-1] == example_batch(schema, 1000)["n"].to_pylist()[-1]
