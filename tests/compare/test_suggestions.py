"""The tightest tolerance that measured noise supports."""

# pyright: reportArgumentType=false, reportCallIssue=false
# The pyarrow stubs refuse what pyarrow takes: dicts of numpy arrays, dicts of fields.

from __future__ import annotations

import json
import math
import tomllib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parity.compare import (
    Close,
    Exact,
    Ignore,
    Label,
    Tolerances,
    compare,
    suggest_tolerance,
)
from parity.errors import ConfigError

VALUES = np.linspace(1.0, 1.9, 100, dtype=np.float32)
STEP = np.spacing(np.float32(1.0))


def noisy(*ulps: float, count: int = 100) -> pa.Table:
    off = VALUES[:count].copy()
    off[: len(ulps)] += np.array(ulps, np.float32) * STEP
    return pa.table({"id": np.arange(count), "x": off})


def test_the_worst_distance_with_headroom_becomes_the_rule():
    found = suggest_tolerance(compare(noisy(), noisy(1, 3, 0, 2)))
    (only,) = found.columns
    assert only.rule == Close(ulp=6, reason="noise floor 3 ulp over 100 values of 100 rows, times 2")
    assert only.ulp == 3
    assert suggest_tolerance(compare(noisy(), noisy(3)), headroom=1).columns[0].rule == Close(
        ulp=3, reason="noise floor 3 ulp over 100 values of 100 rows, times 1"
    )


def test_of_several_comparisons_the_worst_counts():
    runs = [compare(noisy(), noisy(*ulps)) for ulps in ((1,), (5,), ())]
    (only,) = suggest_tolerance(runs).columns
    assert isinstance(only.rule, Close)
    assert only.rule.ulp == 10
    assert "300 values of 300 rows" in only.reason


def test_answers_that_never_differ_support_exactness():
    (only,) = suggest_tolerance(compare(noisy(), noisy())).columns
    assert only.rule == Exact(reason="100 values of 100 rows were bit-identical")


def changed(column: str, value: Any) -> pa.Table:
    table = noisy()
    values = [value, *table[column].to_pylist()[1:]]
    return table.set_column(
        table.schema.get_field_index(column), column, pa.array(values, table[column].type)
    )


@pytest.mark.parametrize(
    ("obtained", "column", "message"),
    [
        (changed("x", None), "x", "1 rows with null on one side, which no tolerance covers"),
        (changed("x", math.nan), "x", "1 rows with NaN or infinity on one side"),
        (changed("x", 1.5), "x", "beyond 4096, where rounding ends; look for a cause"),
        (changed("id", 7), "id", "1 of 100 rows differ in more than rounding"),
        (noisy().set_column(1, "x", pa.array(["a"] * 100)), "x", "types are too different"),
        (noisy().set_column(1, "x", pa.array(VALUES.astype("f8"))), "x", "declared differently"),
    ],
)
def test_what_is_no_noise_gets_no_rule(obtained: pa.Table, column: str, message: str):
    found = suggest_tolerance(compare(noisy(), obtained))
    told = {one.column: one for one in found.columns}
    assert told[column].rule is None
    assert message in told[column].reason
    assert f"# {column}: " in found.to_toml()
    assert tomllib.loads(found.to_toml()).get("tolerance", {}).get(column) is None
    assert json.dumps(found.to_dict(), allow_nan=False)


def test_a_row_far_worse_than_the_rest_is_pointed_out():
    reason = suggest_tolerance(compare(noisy(), noisy(3000, 1, 1))).columns[0].reason
    assert "99 % are within 1, so look at the worst row first" in reason


def test_the_narrowest_float_says_where_rounding_ends():
    kind = pa.struct({"wide": pa.float64(), "half": pa.list_(pa.float16())})
    sides = [pa.table({"s": pa.array([{"wide": 1.0, "half": [v]}], kind)}) for v in (1.0, 1.05)]
    assert "beyond 32" in suggest_tolerance(compare(*sides)).columns[0].reason


def test_columns_with_a_rule_of_their_own_keep_it():
    table = pa.table({"v": [[0.1, 0.9]], "t": [1.0], "n": [1]})
    rules = Tolerances({"v": Label(tie=0.1), "t": Ignore(reason="a clock")})
    found = suggest_tolerance(compare(table, table, rules))
    assert found.tolerances().columns == dict(rules.columns)


def test_names_and_reasons_of_any_kind_are_written_as_toml():
    name = 'a "b"\n\x7f é 😀 [c]'
    table = pa.table({name: [1.0], "t": [1.0]})
    rules = Tolerances({"t": Ignore(reason='say "no"\n\x7f')})
    found = suggest_tolerance(compare(table, table, rules))
    assert Tolerances.from_mapping(tomllib.loads(found.to_toml())["tolerance"]).columns == (
        found.tolerances().columns
    )


def test_nothing_compared_suggests_nothing():
    empty = noisy().slice(0, 0)
    for noise in (compare(empty, empty), []):
        with pytest.raises(ConfigError, match="no row was compared"):
            suggest_tolerance(noise)
    with pytest.raises(ConfigError, match=r"headroom = 0\.5 is below 1"):
        suggest_tolerance(compare(noisy(), noisy()), headroom=0.5)


@pytest.mark.slow
@given(st.lists(st.integers(0, 2000), min_size=1, max_size=100), st.sampled_from([1.0, 1.5, 2.0]))
@settings(max_examples=60, deadline=None)
def test_what_was_measured_passes_under_what_is_suggested(ulps: list[int], headroom: float):
    expected, obtained = noisy(count=len(ulps)), noisy(*ulps, count=len(ulps))
    found = suggest_tolerance(compare(expected, obtained), headroom=headroom)
    rules = Tolerances.from_mapping(tomllib.loads(found.to_toml())["tolerance"])
    assert compare(expected, obtained, rules)
    assert rules.columns == found.tolerances().columns
