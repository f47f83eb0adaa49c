"""Laws of the comparison, for every type, null, NaN, infinity, chunking and offset."""

# pyright: reportArgumentType=false, reportCallIssue=false
# The pyarrow stubs refuse what pyarrow takes: dicts of numpy arrays, dicts of fields.

from __future__ import annotations

import json
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parity.compare import (
    Bits,
    Close,
    Cosine,
    Exact,
    Label,
    Pixels,
    Rule,
    SetLike,
    Text,
    Tolerances,
    TopK,
    compare,
)
from tests.compare.cases import tables

SCALARS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.bool_(), st.booleans()),
    (pa.int8(), st.integers(-128, 127)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.uint64(), st.integers(0, 2**64 - 1)),
    (pa.float16(), st.floats(width=16)),
    (pa.float32(), st.floats(width=32)),
    (pa.float64(), st.floats()),
    (pa.string(), st.text(max_size=4)),
    (pa.large_string(), st.text(max_size=4)),
    (pa.string_view(), st.text(max_size=4)),
    (pa.binary(), st.binary(max_size=4)),
    (pa.binary(3), st.binary(min_size=3, max_size=3)),
    (pa.timestamp("us", "UTC"), st.integers(-(2**55), 2**55)),
    (pa.timestamp("ns"), st.integers(-(2**62), 2**62)),
    (pa.date32(), st.dates()),
    (pa.time64("us"), st.times()),
    (pa.duration("us"), st.integers(-(2**60), 2**60)),
    (pa.decimal128(9, 2), st.decimals(-1000, 1000, places=2)),
    (pa.dictionary(pa.int32(), pa.string()), st.text(max_size=2)),
    (pa.null(), st.none()),
]


def nested(
    of: tuple[pa.DataType, st.SearchStrategy[Any]],
) -> list[tuple[pa.DataType, st.SearchStrategy[Any]]]:
    kind, values = of
    maybe = st.none() | values
    return [
        (pa.list_(kind), st.lists(maybe, max_size=3)),
        (pa.large_list(kind), st.lists(maybe, max_size=3)),
        (pa.list_(kind, 2), st.lists(maybe, min_size=2, max_size=2)),
        (
            pa.struct({"a": kind, "b": pa.int64()}),
            st.fixed_dictionaries({"a": maybe, "b": st.integers(0, 9)}),
        ),
        (
            pa.struct({"data": pa.list_(kind), "shape": pa.list_(pa.int32(), 2)}),
            st.fixed_dictionaries(
                {"data": st.lists(maybe, max_size=3), "shape": st.tuples(*[st.integers(0, 3)] * 2)}
            ),
        ),
        (pa.list_(pa.list_(kind, 1)), st.lists(st.lists(maybe, min_size=1, max_size=1), max_size=2)),
        (
            pa.list_(pa.struct({"a": kind})),
            st.lists(st.none() | st.fixed_dictionaries({"a": maybe}), max_size=2),
        ),
    ]


PLAIN = [of for of in SCALARS if not pa.types.is_dictionary(of[0]) and not pa.types.is_null(of[0])]
TYPES = [*SCALARS, *(inner for of in PLAIN for inner in nested(of))]


@st.composite
def columns(draw: st.DrawFn) -> pa.Array[Any]:
    kind, values = draw(st.sampled_from(TYPES))
    return pa.array(draw(st.lists(st.none() | values, min_size=1, max_size=6)), kind)


@st.composite
def laid_out(draw: st.DrawFn, values: pa.Array[Any]) -> pa.ChunkedArray[Any]:
    """The same values in another memory layout: others in front and behind, sliced, and in chunks."""
    others = pa.concat_arrays([values.slice(place, 1) for place in reversed(range(len(values)))])
    padded = pa.concat_arrays([others, values, others]).slice(len(values), len(values))
    cut = draw(st.integers(0, len(values)))
    chunks = [padded.slice(0, cut), padded.slice(cut)]
    return pa.chunked_array(chunks, values.type)


@pytest.mark.slow
@given(st.data())
@settings(max_examples=150, deadline=None)
def test_a_table_equals_itself_in_any_memory_layout(data: st.DataObject):
    values = data.draw(columns())
    table = pa.table({"x": values})
    assert compare(table, table).verdict == "identical"
    other = pa.table({"x": data.draw(laid_out(values))})
    for found in (compare(table, other), compare(other, table)):
        assert found.verdict == "identical"
        assert found.columns[0].worst == ()


def same(one: object, other: object) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return all(same(one[name], other[name]) for name in one)
    return one == other or (one != one and other != other)


@pytest.mark.slow
@given(st.data())
@settings(max_examples=200, deadline=None)
def test_any_changed_value_is_found_in_its_row(data: st.DataObject):
    kind, strategy = data.draw(st.sampled_from([of for of in TYPES if of[0] != pa.null()]))
    rows = data.draw(st.lists(st.none() | strategy, min_size=1, max_size=6))
    row = data.draw(st.integers(0, len(rows) - 1))
    changed = data.draw(st.none() | strategy)
    expected, obtained = pa.array(rows, kind), pa.array([*rows[:row], changed, *rows[row + 1 :]], kind)
    found = compare(
        pa.table({"x": data.draw(laid_out(expected))}), pa.table({"x": obtained}), Tolerances({"x": Exact()})
    )
    if same(_plain(expected, row), _plain(obtained, row)):
        assert found
    else:
        assert not found
        assert found.failing_rows.tolist() == [row]
        assert [worst.row for worst in found.column("x").worst] == [row]


def _plain(values: pa.Array[Any], row: int) -> object:
    """The value as Python sees it; times as text, since datetime lacks nanoseconds."""
    kind = values.type
    if pa.types.is_temporal(kind):
        return values.view(pa.int32() if kind.bit_width == 32 else pa.int64())[row].as_py()
    timed = any(name in str(kind) for name in ("timestamp", "duration"))
    return str(values[row]) if timed else values[row].as_py()


@pytest.mark.slow
@given(st.lists(st.integers(), min_size=1, unique=True, max_size=20), st.randoms(use_true_random=False))
def test_rows_in_any_order_pass_with_a_key(keys: list[int], random: Any):
    keys = [key % 2**62 for key in keys]
    table = pa.table({"id": list(dict.fromkeys(keys))})
    table = table.append_column("x", pa.array([float(key) for key in table["id"].to_pylist()]))
    order = list(range(table.num_rows))
    random.shuffle(order)
    assert compare(table, table.take(order), key="id").verdict == "identical"


@pytest.mark.slow
@given(
    st.lists(st.floats(width=32), min_size=1, max_size=8),
    st.lists(st.floats(width=32), min_size=8, max_size=8),
)
def test_every_comparison_serialises_and_its_needed_ulp_passes(ours: list[float], theirs: list[float]):
    expected = pa.table({"x": pa.array(ours, pa.float32())})
    obtained = pa.table({"x": pa.array(theirs[: len(ours)], pa.float32())})
    found = compare(expected, obtained)
    json.dumps(found.to_dict(), allow_nan=False)
    distances = found.column("x").distances
    assert distances is not None
    if distances.needed_ulp is not None and distances.needed_ulp < 2**52:
        assert compare(expected, obtained, Tolerances({"x": Close(ulp=max(distances.needed_ulp, 1))}))
        if distances.needed_ulp > 1:
            assert not compare(expected, obtained, Tolerances({"x": Close(ulp=distances.needed_ulp - 1)}))


FLOAT_LISTS = st.lists(st.floats(0, 1, width=32), max_size=4)
SYMMETRIC: list[tuple[Rule, pa.DataType, st.SearchStrategy[Any]]] = [
    (Exact(), pa.float32(), st.floats(width=32)),
    (Bits(), pa.float32(), st.floats(width=32)),
    (Close(atol=0.25), pa.float64(), st.floats(-2, 2)),
    (Exact(nulls="nan"), pa.float32(), st.none() | st.floats(width=32)),
    (Text(edits=1), pa.string(), st.text("ab ", max_size=4)),
    (Label(), pa.list_(pa.float32()), FLOAT_LISTS),
    (TopK(k=2), pa.list_(pa.float32()), FLOAT_LISTS),
    (Cosine(least=0.9), pa.list_(pa.float32()), FLOAT_LISTS),
    (SetLike(), pa.list_(pa.string()), st.lists(st.text("ab", max_size=1), max_size=3)),
    (SetLike(multiset=True), pa.list_(pa.int64()), st.lists(st.integers(0, 2), max_size=3)),
    (Pixels(lsb=2), pa.list_(pa.uint8()), st.lists(st.integers(0, 9), max_size=3)),
]


@pytest.mark.slow
@given(st.data())
@settings(max_examples=100, deadline=None)
def test_rules_without_a_reference_judge_both_ways_alike(data: st.DataObject):
    rule, kind, values = data.draw(st.sampled_from(SYMMETRIC))
    sides = [
        pa.table({"x": pa.array(data.draw(st.lists(values, min_size=4, max_size=4)), kind)}) for _ in range(2)
    ]
    rules = Tolerances({"x": rule})
    there, back = compare(sides[0], sides[1], rules), compare(sides[1], sides[0], rules)
    assert there.verdict == back.verdict
    assert there.failing_rows.tolist() == back.failing_rows.tolist()
    assert there.differing_rows.tolist() == back.differing_rows.tolist()


@pytest.mark.slow
@given(st.data(), st.sampled_from(["ulp", "atol", "rtol"]), st.sampled_from(["column", "element"]))
@settings(max_examples=100, deadline=None)
def test_a_wider_tolerance_never_fails_a_row_that_a_narrower_one_passes(
    data: st.DataObject, measure: str, scale: Any
):
    near = st.floats(-4, 4, width=32) | st.sampled_from([math.nan, math.inf, 0.0, -0.0, 1e-40])
    rows = st.lists(st.none() | near, min_size=5, max_size=5)
    sides = [pa.table({"x": pa.array(data.draw(rows), pa.float32())}) for _ in range(2)]
    bounds = st.floats(1e-9, 1e9) if measure == "ulp" else st.floats(1e-9, 4)
    small, large = sorted([data.draw(bounds), data.draw(bounds)])
    failing = [
        set(
            compare(
                *sides, Tolerances({"x": Close(**{measure: bound, "scale": scale})})
            ).failing_rows.tolist()
        )
        for bound in (small, large)
    ]
    assert failing[1] <= failing[0]
    exact = compare(*sides, Tolerances({"x": Exact()}))
    assert failing[0] <= set(exact.failing_rows.tolist())


@pytest.mark.slow
@given(tables())
@settings(max_examples=60, deadline=None)
def test_counts_agree_with_the_rows_they_count(pair: tuple[pa.Table, pa.Table]):
    found = compare(*pair)
    assert (found.failing, found.differing) == (len(found.failing_rows), len(found.differing_rows))
    for column in found.columns:
        assert column.failing == len(column.failing_rows) == column.rows - column.within
        assert len(column.differing_rows) == column.rows - column.identical
        assert {row.row for row in column.worst} <= set(column.differing_rows.tolist())
    failing = {row for column in found.columns for row in column.failing_rows.tolist()}
    assert failing == set(found.failing_rows.tolist())
    assert compare(pair[0], pair[0]).verdict == "identical"
