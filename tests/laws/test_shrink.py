from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parity import Batch, Float64, Int64, List, Schema, String, Struct, Tensor
from parity.column import Column
from parity.examples import example_batch
from parity.laws.candidates import Candidate
from parity.laws.shrink import Budget, shrink
from parity.laws.simpler import simple, simplest_row, simplify, value_of
from parity.schema import Field
from tests.strategies import fields, values


@given(
    size=st.integers(1, 60),
    needed=st.sets(st.integers(0, 59), min_size=1, max_size=4),
)
def test_shrinking_finds_exactly_the_items_that_are_needed(size: int, needed: set[int]) -> None:
    items = list(range(60))[: max(size, max(needed) + 1)]
    found = shrink(items, lambda chosen: needed <= set(chosen), Budget(10_000))
    assert found == sorted(needed)


def test_shrinking_stops_after_its_trials_with_the_best_so_far() -> None:
    calls: list[list[int]] = []

    def fails(chosen: list[int]) -> bool:
        calls.append(chosen)
        return 7 in chosen and 90 in chosen

    found = shrink(list(range(100)), fails, Budget(5))
    assert {7, 90} <= set(found)
    assert len(calls) == 5


def test_shrinking_stops_when_its_time_is_over() -> None:
    now = [0.0]

    def fails(chosen: list[int]) -> bool:
        now[0] += 1.0
        return 7 in chosen and 90 in chosen

    found = shrink(list(range(100)), fails, Budget(10_000, 3.0, lambda: now[0]))
    assert {7, 90} <= set(found)
    assert now[0] == 3.0


def fits(field: Field, value: Any) -> bool:
    """Whether a value in stored form is one of the field's."""
    import pyarrow as pa

    from parity.codec import arrow

    schema = Schema(value=field)
    column = Column(field, arrow=pa.array([value], field.arrow_type))
    return not arrow.decode_table(schema, Batch(schema, {"value": column}).to_table()).errors


@given(fields())
def test_simple_values_fit_their_field(field: Field) -> None:
    found = list(simple(field))
    assert found
    assert all(fits(field, value) for value in found)


@settings(max_examples=40)
@given(st.data())
def test_what_a_value_is_simplified_to_fits_and_still_fails(data: st.DataObject) -> None:
    field = data.draw(fields())
    schema = Schema(value=field)
    from parity.codec.build import columns_of_rows

    batch = Batch(schema, columns_of_rows(schema, [(data.draw(values(field)),)]), 1)
    tried: list[Any] = []

    def fails(value: Any) -> bool:
        tried.append(value)
        return len(tried) % 3 == 2

    found = simplify(field, value_of(batch, "value", 0), fails, Budget(60))
    assert all(fits(field, value) for value in tried)
    if found is not None:
        assert any(found is value for value in tried)


@pytest.mark.parametrize(
    ("field", "value", "fails", "expected"),
    [
        (Int64(), 123_456, lambda value: value > 1000, 1001),
        (Int64(), -99, lambda value: value < -7, -8),
        (Int64(ge=5), 70, lambda value: value >= 5, 5),
        (Float64(), 1234.5678, lambda value: value >= 17, 17.0),
        (Float64(), 0.123456789, lambda value: value > 0.1, 1.0),
        (Float64(), math.nan, lambda value: value != value, None),
        (String(), "the quick brown fox", lambda value: "q" in value, "q"),
        (String(), "the quick brown fox", lambda value: len(value) >= 3, "aaa"),
        (List(Int64()), [5, 6, 7, 8], lambda value: len(value) >= 2, [0, 0]),
        (
            Struct(a=Int64(), b=String()),
            {"a": 9, "b": "xyz"},
            lambda value: value["a"] > 3,
            {"a": 4, "b": ""},
        ),
    ],
)
def test_values_become_as_simple_as_they_can(field: Field, value: Any, fails: Any, expected: Any) -> None:
    found = simplify(field, value, fails, Budget(500))
    assert found == expected


def test_a_tensor_keeps_only_the_elements_that_matter() -> None:
    field = Tensor("float32", (4, 4))
    array = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
    found = simplify(field, array, lambda value: value.reshape(4, 4)[2, 1] != 0, Budget(500))
    assert found is not None
    assert np.flatnonzero(found).tolist() == [9]
    assert found[9] == 1


def test_a_candidate_says_which_rows_were_simplified() -> None:
    schema = Schema(x=Int64(), y=String())
    batch = example_batch(schema, 3)
    candidate = Candidate(batch, ("a", "b", "c"), (0, 1, 2), (True, True, True))
    changed = candidate.with_value("x", [1], 12_345)
    assert changed.labels == ("a", "b, simplified", "c")
    assert changed.batch["x"].to_pylist()[1] == 12_345
    assert changed.with_value("x", [1], 12_345) is changed
    assert changed.take([2, 1]).labels == ("c", "b, simplified")
    assert simplest_row(schema) == {"x": 0, "y": ""}
