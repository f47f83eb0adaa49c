"""Distances between floats, at the scale of the column."""

# pyright: reportArgumentType=false, reportCallIssue=false
# The pyarrow stubs refuse what pyarrow takes: dicts of numpy arrays, dicts of fields.

from __future__ import annotations

import json
import math

import ml_dtypes
import numpy as np
import pyarrow as pa
import pytest

from parity.compare import Close, Comparison, Exact, Tolerances, compare


def floats(expected: list[float], obtained: list[float], dtype: str = "float32", **rule: float) -> Comparison:
    tolerances = Tolerances({"x": Close(**rule)}) if rule else Tolerances()
    sides = [pa.table({"x": np.array(side, dtype)}) for side in (expected, obtained)]
    return compare(sides[0], sides[1], tolerances)


def test_small_values_that_differ_fivefold_fail_by_default():
    found = floats([1e-9], [5e-9], "float64")
    assert not found
    assert found.column("x").worst[0].expected == 1e-9


def test_negative_zero_equals_zero_and_is_noted():
    found = floats([0.0, 1.0], [-0.0, 1.0])
    assert found.verdict == "within"
    assert (found.identical_rows, found.within_rows, found.column("x").negative_zeros) == (1, 2, 1)
    distances = found.column("x").distances
    assert distances is not None
    assert (distances.needed_ulp, distances.elements, distances.differing) == (0, 2, 0)


def test_nan_equals_nan_whatever_its_payload():
    quiet = np.array([0x7FC00000, 0x7FC00000], np.uint32).view(np.float32)
    payload = np.array([0x7FC00001, 0xFFC00000], np.uint32).view(np.float32)
    assert compare(pa.table({"x": quiet}), pa.table({"x": quiet})).verdict == "identical"
    found = compare(pa.table({"x": quiet}), pa.table({"x": payload}))
    assert found.verdict == "within"
    assert found.column("x").nan_payloads == 2


@pytest.mark.parametrize(
    ("one", "other"), [(math.nan, 1.0), (math.inf, 1.0), (math.inf, -math.inf), (math.inf, math.nan)]
)
def test_nan_and_infinity_on_one_side_fail_under_any_tolerance(one: float, other: float):
    for found in (floats([one], [other], rtol=1e9), floats([other], [one], rtol=1e9)):
        assert not found
        column = found.column("x")
        assert column.non_finite_mismatches == 1
        assert column.worst_ulp == math.inf
        assert column.distances is not None
        assert column.distances.needed_ulp is None
        assert json.dumps(found.to_dict(), allow_nan=False)


def test_infinities_of_one_sign_are_equal():
    assert floats([math.inf, -math.inf], [math.inf, -math.inf]).verdict == "identical"


def test_null_is_not_nan():
    expected, obtained = pa.table({"x": pa.array([None], pa.float64())}), pa.table({"x": [math.nan]})
    assert compare(expected, obtained).column("x").null_mismatches == 1


@pytest.mark.parametrize("kind", [pa.float64(), pa.int64(), pa.string(), pa.list_(pa.float32())])
def test_nulls_in_other_places_differ_though_the_buffers_agree(kind: pa.DataType):
    zero = {"string": "", "double": 0.0, "int64": 0}.get(str(kind), [])
    one, other = (pa.table({"x": pa.array(values, kind)}) for values in ([None, zero], [zero, None]))
    assert compare(one, other).failing_rows.tolist() == [0, 1]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_default_bound_is_exact_to_the_ulp(dtype: str):
    allowed = 8 if dtype == "float16" else 64
    step = float(np.spacing(np.array(1.0, dtype)))
    assert floats([1.0], [1.0 + allowed * step], dtype)
    beyond = floats([1.0], [1.0 + (allowed + 1) * step], dtype)
    assert not beyond
    distances = beyond.column("x").distances
    assert distances is not None
    assert distances.needed_ulp == allowed + 1
    assert floats([1.0], [1.0 + (allowed + 1) * step], dtype, ulp=distances.needed_ulp)


def test_column_scale_forgives_noise_near_zero_and_element_scale_does_not():
    step = float(np.spacing(np.float32(1.0)))
    sides = [
        pa.table({"x": np.array(side, np.float32)}) for side in ([1.0, 1.0, 1e-7], [1.0, 1.0, 1e-7 + step])
    ]
    assert compare(sides[0], sides[1])
    assert not compare(sides[0], sides[1], Tolerances({"x": Close(ulp=64, scale="element")}))


def test_scale_can_come_from_more_rows():
    expected, obtained = pa.table({"x": np.array([1e-7], "f4")}), pa.table({"x": np.array([2e-7], "f4")})
    assert not compare(expected, obtained)
    assert compare(expected, obtained, scale_from=pa.table({"x": np.ones(9, "f4")}))


def test_either_bound_of_a_rule_is_enough():
    assert floats([1.0], [1.001], rtol=1e-2)
    assert floats([0.0], [1e-6], atol=1e-5)
    assert not floats([1.0], [1.001], rtol=1e-4, atol=1e-4)
    assert floats([1.0], [1.0 + 1e-7], rtol=1e-12, ulp=2)


@pytest.mark.parametrize(
    "metadata", [{"parity.type": "BFloat16"}, {"parity.type": "Tensor", "parity.dtype": "bfloat16"}]
)
def test_bfloat16_is_measured_in_its_own_ulp(metadata: dict[str, str]):
    tensor = "parity.dtype" in metadata
    kind = pa.list_(pa.float32(), 1) if tensor else pa.float32()
    schema = pa.schema([pa.field("x", kind, metadata=metadata)])

    def table(value: float) -> pa.Table:
        stored = float(np.array(value, ml_dtypes.bfloat16))
        return pa.table([pa.array([[stored] if tensor else stored], kind)], schema=schema)

    step = 2.0**-7
    assert compare(table(1.0), table(1.0 + 8 * step))
    found = compare(table(1.0), table(1.0 + 9 * step))
    assert not found
    assert found.column("x").dtype == "bfloat16"
    assert found.column("x").worst_ulp == 9


def test_a_lost_bfloat16_mark_is_noted():
    marked = pa.schema([pa.field("x", pa.float32(), metadata={"parity.type": "BFloat16"})])
    found = compare(
        pa.table([pa.array([1.0], pa.float32())], schema=marked), pa.table({"x": np.ones(1, "f4")})
    )
    assert found
    assert [finding.kind for finding in found.findings] == ["metadata"]


def test_quantiles_mean_and_histogram_describe_all_elements():
    step = float(np.spacing(np.float32(1.0)))
    obtained = [1.0] * 90 + [1.0 + step] * 8 + [1.0 + 4 * step, 1.0 + 6 * step]
    distances = floats([1.0] * 100, obtained).column("x").distances
    assert distances is not None
    assert (distances.elements, distances.differing, distances.needed_ulp) == (100, 10, 6)
    assert (distances.ulp.q50, distances.ulp.q90, distances.ulp.q99, distances.ulp.largest) == (0, 0, 4, 6)
    assert distances.ulp.mean == pytest.approx(0.18)
    assert distances.histogram == ((0, 8), (2, 2))


def test_the_worst_row_decides_and_comes_first():
    expected = np.ones(1000, np.float32)
    obtained = expected.copy()
    obtained[123], obtained[7] = 2.0, 1.5
    found = compare(pa.table({"x": expected}), pa.table({"x": obtained}))
    assert not found
    assert found.summary() == "x: 2 of 1000 rows differ"
    assert [row.row for row in found.column("x").worst] == [123, 7]


def test_a_row_counts_once_however_many_of_its_elements_fail():
    expected = np.zeros((4, 50), np.float32)
    obtained = expected.copy()
    obtained[1] = 1.0
    obtained[3, 49] = 2.0
    sides = [
        pa.table({"v": pa.FixedSizeListArray.from_arrays(a.reshape(-1), 50)}) for a in (expected, obtained)
    ]
    column = compare(sides[0], sides[1]).column("v")
    assert column.failing == 2
    assert [(row.row, row.where) for row in column.worst] == [(3, "v[49]"), (1, "v[0]")]


def test_exact_floats_are_still_measured():
    step = float(np.spacing(np.float32(1.0)))
    sides = [pa.table({"x": np.array([v], "f4")}) for v in (1.0, 1.0 + 3 * step)]
    found = compare(sides[0], sides[1], Tolerances({"x": Exact()}))
    assert not found
    assert found.worst_ulp == 3


def test_overflowing_distances_stay_ordered():
    found = floats([1e308, 1.0], [-1e308, 2.0], "float64")
    assert found.column("x").worst[0].row == 0
    distances = found.column("x").distances
    assert distances is not None
    assert distances.needed_ulp is None


def test_subnormals_are_measured():
    found = floats([2e-45], [5e-45])
    assert found.worst_ulp == 3
