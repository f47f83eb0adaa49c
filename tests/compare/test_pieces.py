"""What a comparison finds does not depend on how rows are cut, stored or ordered."""

# pyright: reportArgumentType=false, reportCallIssue=false
# The pyarrow stubs refuse what pyarrow takes: dicts of numpy arrays, dicts of fields.

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parity.compare import Close, Comparison, SetLike, Text, Tolerances, compare, compare_datasets
from parity.compare.plan import make_plan
from parity.compare.rows import FirstRows
from parity.compare.running import RunningComparison
from parity.compare.scales import Scales
from parity.compare.sides import Side
from tests.compare.cases import cut, facts, tables, write

RULES = Tolerances(
    {
        "f64": Close(rtol=0.01, atol=0.1),
        "text": Text(normalize=(), edits=1),
        "box.x": Close(ulp=2, scale="element"),
    }
)


def rules_for(table: pa.Table) -> Tolerances:
    return RULES.only(table.column_names)


def in_pieces(expected: pa.Table, obtained: pa.Table, rules: Tolerances, cuts: list[int]) -> Comparison:
    """Compare in order, in pieces."""
    plan = make_plan(expected.schema, obtained.schema, rules)
    running = RunningComparison(plan, Scales(lambda name: expected.column(name).chunks))
    for start, end in cut(expected.num_rows, cuts):
        rows = np.arange(start, end)
        running.add(*(Side(table.slice(start, end - start), rows) for table in (expected, obtained)))
    whole = compare(expected, obtained, rules)
    return running.finish(
        expected_rows=expected.num_rows,
        obtained_rows=obtained.num_rows,
        errors=(whole.errors_expected, whole.errors_obtained),
    )


@pytest.mark.slow
@given(tables(), st.lists(st.integers(1, 11), max_size=4))
@settings(max_examples=100, deadline=None)
def test_pieces_come_to_the_same_as_the_whole(pair: tuple[pa.Table, pa.Table], cuts: list[int]):
    expected, obtained = pair
    rules = rules_for(expected)
    whole = compare(expected, obtained, rules)
    cuts = [place for place in cuts if place < expected.num_rows]
    assert facts(in_pieces(expected, obtained, rules, cuts)) == facts(whole)


@pytest.mark.slow
@given(st.data())
@settings(max_examples=40, deadline=None)
def test_files_come_to_the_same_as_tables(data: st.DataObject):
    expected, obtained = data.draw(tables())
    files = st.integers(1, 3)
    with tempfile.TemporaryDirectory() as folder:
        sides = [
            write(table, Path(folder, name), files=data.draw(files), group=data.draw(files))
            for name, table in (("a", expected), ("b", obtained))
        ]
        found = compare_datasets(*sides, rules_for(expected))
    assert facts(found) == facts(compare(expected, obtained, rules_for(expected)))


@pytest.mark.slow
@given(st.data())
@settings(max_examples=40, deadline=None)
def test_files_paired_by_key_in_parts_come_to_the_same_as_tables(data: st.DataObject):
    expected, obtained = data.draw(tables())
    key = data.draw(st.sampled_from(["id", "name", ("part", "id")]))
    places = st.lists(st.integers(0, expected.num_rows - 1), min_size=1, max_size=14)
    sides = [
        named(table).take(data.draw(places | st.permutations(range(table.num_rows))))
        for table in (expected, obtained)
    ]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("parity.compare.partitions.MAX_PARTS", data.draw(st.sampled_from([3, 256])))
        paths = [write(table, Path(folder, name)) for name, table in zip("ab", sides, strict=True)]
        found = compare_datasets(
            *paths, rules_for(expected), key=key, part_bytes=data.draw(st.sampled_from([200, 1000, 10**6]))
        )
    assert facts(found) == facts(compare(*sides, rules_for(expected), key=key))


def named(table: pa.Table) -> pa.Table:
    """The table with a text that says its `id`, and a column that repeats."""
    numbers: list[Any] = table["id"].to_pylist()
    table = table.append_column("name", pa.array([None if n == 1 else f"row {n * 7}" for n in numbers]))
    return table.append_column("part", pa.array([n % 2 for n in numbers], pa.int8()))


@pytest.mark.slow
@given(tables(), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_the_order_of_rows_means_nothing_with_a_key(pair: tuple[pa.Table, pa.Table], random: Any):
    expected, obtained = pair
    order = list(range(expected.num_rows))
    random.shuffle(order)
    rules = rules_for(expected)
    straight = compare(expected, obtained, rules, key="id")
    assert facts(compare(expected, obtained.take(order), rules, key="id"), rows=False) == facts(
        straight, rows=False
    )
    both = compare(expected.take(order), obtained.take(order[::-1]), rules, key="id")
    assert facts(both, rows=False) == facts(straight, rows=False)


@pytest.mark.slow
def test_quantiles_of_many_elements_are_those_of_buckets_however_cut():
    random = np.random.default_rng(1)
    values = random.standard_normal(250_000)
    off = values + random.exponential(3.0, len(values)) * np.spacing(values)
    lists = pa.ListArray.from_arrays(pa.array(np.arange(0, 250_001, 5), pa.int32()), pa.array(values))
    other = pa.ListArray.from_arrays(lists.offsets, pa.array(off))
    expected, obtained = pa.table({"v": lists}), pa.table({"v": other})
    rules = Tolerances({"v": Close(ulp=8)})
    whole = compare(expected, obtained, rules)
    assert facts(in_pieces(expected, obtained, rules, [1, 17, 20_000, 49_999])) == facts(whole)
    distances = whole.column("v").distances
    assert distances is not None
    assert not distances.exact
    scale = float(np.median(np.abs(values)))
    sizes = np.maximum(np.abs(values), scale)
    ulp, rel = np.abs(values - off) / np.spacing(sizes), np.abs(values - off) / sizes
    for name, share in (("q50", 0.5), ("q90", 0.9), ("q99", 0.99)):
        for measured, spread in ((ulp, distances.ulp), (rel, distances.rel)):
            exact = np.quantile(measured, share, method="inverted_cdf") * (1 + 1e-12)
            told = getattr(spread, name)
            assert exact * (1 - 1 / 100) <= told <= exact
            assert (told * 128 / 2.0 ** math.floor(math.log2(told))).is_integer()
    assert distances.ulp.largest == ulp.max()
    assert distances.ulp.mean == pytest.approx(ulp.mean())
    assert sum(count for _, count in distances.histogram) == distances.differing == np.count_nonzero(ulp)


def test_quantiles_of_few_elements_are_exact():
    random = np.random.default_rng(2)
    values = random.standard_normal(2_000)
    off = values * (1 + random.random(len(values)) * 1e-9)
    distances = compare(pa.table({"v": values}), pa.table({"v": off})).column("v").distances
    assert distances is not None
    assert distances.exact
    assert distances.abs.q90 == np.quantile(np.abs(values - off), 0.9, method="inverted_cdf")


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("count", [1, 2, 9, 70_001])
def test_the_scale_of_a_column_is_its_median_rounded_down(dtype: str, count: int):
    from parity.compare.sketch import Median

    values = np.random.default_rng(count).lognormal(size=count).astype(dtype)
    values = np.concatenate([values, np.array([np.nan, np.inf, -np.inf], dtype)])
    whole, cut_up = Median(values.dtype), Median(values.dtype)
    whole.add(-values)
    for part in np.array_split(values, 7):
        cut_up.add(part)
    exact = float(np.sort(values[:count])[count // 2])
    assert whole.value == cut_up.value
    assert whole.value is not None
    assert exact * (1 - 1 / 256) <= whole.value <= exact
    assert Median(values.dtype).value is None


def test_a_column_that_one_piece_cannot_convert_fails_in_all_its_rows():
    expected = pa.table({"x": pa.array([1, 2, 3, 4], pa.int8()), "y": [1, 2, 3, 4]})
    obtained = pa.table({"x": pa.array([1, 2, 3, 400]), "y": [1, 2, 9, 4]})
    for cuts in ([], [1], [3]):
        found = in_pieces(expected, obtained, Tolerances(), cuts)
        assert facts(found) == facts(compare(expected, obtained))
        assert not found.column("x").comparable
        assert (found.column("x").failing, found.failing, found.column("y").failing) == (4, 4, 1)


@pytest.mark.slow
def test_of_rows_that_differ_alike_the_first_are_shown_whatever_the_parts(tmp_path: Path):
    ids = np.arange(300)
    expected = pa.table({"id": ids, "x": np.ones(300), "t": ["a"] * 300})
    obtained = pa.table({"id": ids, "x": np.full(300, 2.0), "t": ["b"] * 300})
    shuffled = obtained.take(np.random.default_rng(3).permutation(300))
    found = compare_datasets(
        write(expected, tmp_path / "a"), write(shuffled, tmp_path / "b"), key="id", part_bytes=500
    )
    assert facts(found) == facts(compare(expected, shuffled, key="id"))
    for name in ("x", "t"):
        assert [row.row for row in found.column(name).worst] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("ordered", [True, False])
def test_of_many_rows_the_first_are_kept_and_all_are_counted(ordered: bool):
    order = np.random.default_rng(4).permutation(1_000)
    kept = FirstRows(ordered=ordered, most=30)
    everything = FirstRows(ordered=ordered, most=None)
    for part in np.array_split(np.arange(1_000) if ordered else order, 9):
        part = np.sort(part)
        for rows in (kept, everything):
            rows.add(part, part % 3 == 0)
    assert kept.count == everything.count == 334
    assert kept.total().tolist() == list(range(0, 90, 3))
    assert everything.total().tolist() == list(range(0, 1_000, 3))


def test_lists_judged_as_wholes_do_not_depend_on_the_cut():
    expected = pa.table({"s": [["a", "b"], ["c"], ["d"], []]})
    obtained = pa.table({"s": [["b", "a"], ["c", "c"], ["e"], []]})
    rules = Tolerances({"s": SetLike()})
    found = in_pieces(expected, obtained, rules, [1, 2])
    assert facts(found) == facts(compare(expected, obtained, rules))
    assert found.failing_rows.tolist() == [2]
