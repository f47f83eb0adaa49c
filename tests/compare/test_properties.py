"""Laws of the comparison, for every type, null, NaN, infinity, chunking and offset."""

# pyright: reportArgumentType=false, reportCallIssue=false
# The pyarrow stubs refuse what pyarrow takes: dicts of numpy arrays, dicts of fields.

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parity.compare import Close, Exact, Tolerances, compare

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
    """The same values in another memory layout: padded in front and behind, sliced, and in chunks."""
    padded = pa.concat_arrays([values, values, values]).slice(len(values), len(values))
    cut = draw(st.integers(0, len(values)))
    chunks = [padded.slice(0, cut), padded.slice(cut)]
    return pa.chunked_array(chunks, values.type)


@pytest.mark.slow
@given(st.data())
@settings(max_examples=300, deadline=None)
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
@settings(max_examples=300, deadline=None)
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
