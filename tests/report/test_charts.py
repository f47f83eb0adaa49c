"""Plots put every value where it belongs, whatever its size."""

# pyright: reportArgumentType=false, reportCallIssue=false
# The pyarrow stubs refuse dicts of numpy arrays, which pyarrow takes.

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from parity.compare import Close, Tolerances, compare
from parity.report import charts
from parity.report.axes import Axis, axis
from parity.report.charts import MAX_BARS, MAX_POINTS
from parity.report.samples import BucketShare, ColumnSample, samples

FINITE = st.floats(allow_nan=False, allow_infinity=False)
NUMBER = re.compile(r'\b(?:x1?|y1?|cx|cy|width|height)="([^"]*)"')


def sample(expected: Any, obtained: Any) -> ColumnSample:
    sides = (
        pa.table({"x": np.asarray(expected, np.float64)}),
        pa.table({"x": np.asarray(obtained, np.float64)}),
    )
    kept = samples(compare(*sides), *sides).column("x")
    assert kept is not None
    return kept


@given(st.lists(FINITE, min_size=1, max_size=20))
def test_every_finite_value_lies_on_its_axis(values: list[float]):
    found = axis(np.array(values), 50.0, 350.0)
    pixels = found.at(np.array(values))
    assert np.isfinite(pixels).all()
    assert (pixels > 49).all()
    assert (pixels < 351).all()
    assert found.low < found.high


@example([0.4])
@given(st.lists(FINITE, min_size=1, max_size=20))
def test_ticks_are_few_and_on_the_axis(values: list[float]):
    found = axis(np.array(values), 50.0, 350.0)
    ticks = found.ticks()
    assert len(ticks) <= 12
    assert all(found.low <= value <= found.high for value, _ in ticks)
    assert len({word for _, word in ticks}) == len(ticks) or found.high - found.low < 1e-6 * abs(found.high)


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0, 1, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (-5, 5, ["-4", "-2", "0", "2", "4"]),
        (0, 1.2, ["0.00", "0.25", "0.50", "0.75", "1.00"]),
        (0, 60, ["0", "20", "40", "60"]),
    ],
)
def test_ticks_are_round(low: float, high: float, words: list[str]):
    assert [word for _, word in Axis(low, high, 0, 100).ticks()] == words


def test_wide_ranges_are_logarithmic():
    found = axis(np.array([1e-6, 1.0]), 0, 100)
    assert found.log
    assert [word for _, word in found.ticks()] == ["1e-6", "1e-4", "0.01", "1"]
    assert not axis(np.array([0.0, 1.0]), 0, 100).log


def test_a_point_for_each_pair_and_crosses_for_those_beyond_tolerance():
    expected = np.arange(1.0, 41.0)
    obtained = expected * np.where(np.arange(40) % 4, 1, 2)
    drawn = charts.scatter(sample(expected, obtained))
    assert drawn.count('class="point same"') == 30
    assert drawn.count('class="point outside"') == 10
    assert "40 of 40 rows, 10 of them beyond tolerance (crosses)" in drawn


def test_points_of_large_columns_are_thinned_but_those_beyond_tolerance_stay_in_the_majority():
    expected = np.arange(1.0, 5001.0)
    drawn = charts.scatter(sample(expected, expected * np.where(np.arange(5000) % 2, 1, 2)))
    assert drawn.count('class="point') == MAX_POINTS
    assert drawn.count('class="point outside"') == MAX_POINTS * 3 // 4


def test_what_cannot_be_drawn_is_counted():
    expected = np.arange(10.0)
    obtained = expected + 1
    obtained[:3] = np.nan, np.inf, -np.inf
    for drawn in (charts.scatter(sample(expected, obtained)), charts.by_position(sample(expected, obtained))):
        assert drawn.count('class="point') == 7
        assert "3 with null, NaN or infinity are not drawn" in drawn


def test_few_different_values_are_no_scatter_plot():
    assert charts.scatter(sample([0, 1] * 20, [1, 1] * 20)) == ""
    assert charts.by_position(sample([0, 1] * 20, [1, 1] * 20)) != ""


@settings(max_examples=40)
@given(st.lists(st.tuples(st.floats(), st.floats()), min_size=6, max_size=12))
def test_no_coordinate_is_outside_the_plot_whatever_the_values(pairs: list[tuple[float, float]]):
    expected, obtained = np.array(pairs).T
    rows = np.arange(len(pairs))
    found = ColumnSample("x", len(pairs), rows, rows * 0, expected, obtained, rows % 2 == 0)
    for drawn in (charts.scatter(found), charts.by_position(found)):
        for text in NUMBER.findall(drawn):
            assert -1 <= float(text) <= charts.WIDTH + 1
            assert math.isfinite(float(text))


def test_the_histogram_tells_bars_beyond_the_allowed_distance_from_those_within():
    expected = np.full(64, 1.0, np.float32)
    obtained = expected + np.float32(2**-23) * np.repeat([0, 1, 100, 5000], 16).astype(np.float32)
    found = compare(pa.table({"x": expected}), pa.table({"x": obtained}), Tolerances({"x": Close(ulp=64)}))
    drawn = charts.histogram(found.column("x"))
    assert drawn.count('class="bar within"') == 1
    assert drawn.count('class="bar outside"') == 2
    assert "64 ulp allowed" in drawn
    assert "48 of 64 elements differ" in drawn
    few = pa.table({"x": expected}), pa.table({"x": np.concatenate([obtained[16:17], expected[1:]])})
    counts = re.findall(r'text-anchor="end">([^<]*)<', charts.histogram(compare(*few).column("x")))
    assert counts[:2] == ["0", "1"]
    assert charts.histogram(compare(pa.table({"x": [1]}), pa.table({"x": [2]})).column("x")) == ""


def test_batch_sizes_are_compared_when_there_are_several():
    shares = [BucketShare(size, 10, 5, size % 3) for size in range(1, 20)]
    drawn = charts.by_bucket(shares)
    assert drawn.count('class="bar outside"') == MAX_BARS
    assert "9 rarer sizes left out" in drawn
    assert "batches of 1: 1 of 10 rows beyond tolerance, 5 with other bits" in drawn
    assert charts.by_bucket(shares[:1]) == charts.by_bucket([]) == ""
