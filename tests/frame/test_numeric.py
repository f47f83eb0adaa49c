"""Numbers: what each verb means, on null, NaN, extremes and ties, beside numpy and pandas."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from parity.frame import Frame, FrameError, Series
from tests.frame.columns import HIGH, INF, LOW, NAN, same, whole

OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
}

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def column(values: list[Any], dtype: pa.DataType | None = None) -> Series:
    return Series(pa.array(values, dtype))


def told(series: Series) -> list[Any]:
    """The values, NaN as text, so that lists compare."""
    return ["nan" if isinstance(v, float) and math.isnan(v) else v for v in series.to_pylist()]


floats = st.floats(width=32) | st.sampled_from([0.0, -0.0, INF, -INF, NAN, 0.5, 1.5, 2.5])
ints = st.integers(LOW, HIGH) | st.integers(-10, 10) | st.sampled_from([LOW, HIGH, 2**53 + 1, -1])


# --- arithmetic


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(floats, floats), max_size=9), st.sampled_from(sorted(OPERATIONS)))
def test_arithmetic_of_floats_is_numpys(pairs: list[tuple[float, float]], symbol: str) -> None:
    for dtype in (np.float32, np.float64):
        a, b = (np.array([pair[side] for pair in pairs], dtype) for side in (0, 1))
        with np.errstate(all="ignore"):
            expected = OPERATIONS[symbol](a, b)
        found = OPERATIONS[symbol](Series(pa.array(a)), Series(pa.array(b)))
        np.testing.assert_array_equal(found.to_numpy(), expected, strict=True)
        if pairs and not math.isnan(pairs[0][1]):
            with np.errstate(all="ignore"):
                expected = OPERATIONS[symbol](a, float(b[0]))
            number = OPERATIONS[symbol](Series(pa.array(a)), float(b[0]))
            np.testing.assert_array_equal(number.to_numpy(), expected, strict=True)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(ints, ints), min_size=1, max_size=6), st.sampled_from(["+", "-", "*", "//", "%"]))
def test_arithmetic_of_integers_is_pythons_or_an_error_that_names_the_rows(
    pairs: list[tuple[int, int]], symbol: str
) -> None:
    expected: list[int | None] = []
    for a, b in pairs:
        expected.append(None if symbol in ("//", "%") and b == 0 else OPERATIONS[symbol](a, b))
    outside = tuple(
        row for row, value in enumerate(expected) if value is not None and not LOW <= value <= HIGH
    )
    left, right = column([a for a, _ in pairs], pa.int64()), column([b for _, b in pairs], pa.int64())
    if outside:
        with pytest.raises(FrameError, match="outside -9223372036854775808") as error:
            OPERATIONS[symbol](left, right)
        assert error.value.failing_rows == outside
    else:
        assert OPERATIONS[symbol](left, right).to_pylist() == expected


@pytest.mark.parametrize("symbol", OPERATIONS)
@pytest.mark.parametrize(
    ("left", "right"),
    [
        (pa.int8(), pa.int8()),
        (pa.int8(), pa.uint8()),
        (pa.int32(), pa.uint32()),
        (pa.int16(), pa.float32()),
        (pa.int64(), pa.float32()),
        (pa.float16(), pa.float32()),
        (pa.float32(), pa.float64()),
        (pa.uint16(), pa.int64()),
    ],
)
def test_the_type_of_a_result_is_numpys(symbol: str, left: pa.DataType, right: pa.DataType) -> None:
    a, b = np.array([6, 5], left.to_pandas_dtype()), np.array([2, 3], right.to_pandas_dtype())
    expected = OPERATIONS[symbol](a, b)
    found = OPERATIONS[symbol](Series(pa.array(a)), Series(pa.array(b)))
    whole_numbers = pa.types.is_integer(left) and pa.types.is_integer(right)
    assert found.to_numpy().dtype == (np.float64 if symbol == "/" and whole_numbers else expected.dtype)
    np.testing.assert_array_equal(found.to_numpy(), expected)


@pytest.mark.parametrize("symbol", OPERATIONS)
def test_null_in_is_null_out(symbol: str) -> None:
    left, right = column([1.5, None, None, 2.0]), column([None, 2.5, None, 4.0])
    found = OPERATIONS[symbol](left, right).to_pylist()
    assert found[:3] == [None, None, None]
    assert found[3] is not None
    assert OPERATIONS[symbol](left, 2).to_pylist()[1] is None
    assert OPERATIONS[symbol](2, left).to_pylist()[1] is None


def test_overflow_of_a_null_row_is_no_error() -> None:
    assert (column([HIGH, None]) + column([None, 1])).to_pylist() == [None, None]


def test_narrow_integers_are_held_to_their_own_range() -> None:
    with pytest.raises(FrameError, match=r"outside -128 to 127; use .astype\('int64'\) first \(row 1\)"):
        column([1, 100], pa.int8()) + column([1, 100], pa.int8())
    with pytest.raises(FrameError, match="300 does not fit int8"):
        column([1], pa.int8()) + 300
    with pytest.raises(FrameError, match="outside 0 to 255"):
        column([1], pa.uint8()) - 2
    assert (column([200], pa.uint8()) + 55).dtype == pa.uint8()


def test_division_by_an_integer_zero_is_null_and_by_a_float_zero_ieee() -> None:
    ones = column([1, -1, 0])
    assert (ones // 0).to_pylist() == [None, None, None]
    assert (ones % 0).to_pylist() == [None, None, None]
    assert told(ones / 0) == [INF, -INF, "nan"]
    assert told(column([1.0, 0.0]) // 0) == [INF, "nan"]


def test_division_rounds_down_and_a_remainder_has_the_divisors_sign() -> None:
    assert (column([7, -7]) // 2).to_pylist() == [3, -4]
    assert (column([7, -7]) % 2).to_pylist() == [1, 1]
    assert (column([7, -7]) % -2).to_pylist() == [-1, -1]
    assert (column([7.5, -7.5]) // 2).to_pylist() == [3.0, -4.0]
    assert (7 // column([2, -2])).to_pylist() == [3, -4]


def test_an_integer_divided_is_a_float() -> None:
    assert (column([1, 3]) / 2).to_pylist() == [0.5, 1.5]
    assert (column([1, 3]) + 0.5).dtype == pa.float64()
    assert (column([1.0], pa.float32()) + 0.1).dtype == pa.float32()


def test_what_is_no_number_is_refused_with_a_hint() -> None:
    flag = column([True])
    with pytest.raises(FrameError, match=r"bool is no number; use .astype\('int64'\)"):
        flag + 1
    with pytest.raises(FrameError, match="True is no number"):
        column([1]) + True
    with pytest.raises(FrameError, match="neither a number nor a series"):
        column([1]) + "a"
    with pytest.raises(FrameError, match="string is no number"):
        column(["a"]) + 1
    with pytest.raises(FrameError, match=r"use .dt.epoch"):
        column([0], pa.timestamp("us")) - 1
    with pytest.raises(FrameError, match="1 rows beside 2"):
        column([1]) + column([1, 2])
    with pytest.raises(FrameError, match="neither true nor false"):
        bool(column([1]) == 1)


# --- comparison and logic


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(floats, floats), max_size=9), st.sampled_from(sorted(COMPARISONS)))
def test_comparison_of_floats_is_numpys_nan_is_equal_to_nothing(
    pairs: list[tuple[float, float]], symbol: str
) -> None:
    a, b = (np.array([pair[side] for pair in pairs], np.float32) for side in (0, 1))
    found = COMPARISONS[symbol](Series(pa.array(a)), Series(pa.array(b)))
    np.testing.assert_array_equal(found.to_numpy(), COMPARISONS[symbol](a, b))
    np.testing.assert_array_equal(
        COMPARISONS[symbol](Series(pa.array(a)), 0.1).to_numpy(), COMPARISONS[symbol](a, np.float32(0.1))
    )


@given(st.lists(ints, max_size=6), st.integers(-(2**65), 2**65) | ints, st.sampled_from(sorted(COMPARISONS)))
@settings(deadline=None, max_examples=60)
def test_comparison_of_integers_is_exact_whatever_the_number(
    values: list[int], number: int, symbol: str
) -> None:
    found = COMPARISONS[symbol](column(values, pa.int64()), number)
    assert found.to_pylist() == [COMPARISONS[symbol](value, number) for value in values]


def test_comparison_with_null_is_null() -> None:
    assert (column([1, None]) == column([None, None], pa.int64())).to_pylist() == [None, None]
    assert (column([1, None]) > 0).to_pylist() == [True, None]
    with pytest.raises(FrameError, match=r"use .isna\(\)"):
        _ = column([1]) == None  # noqa: E711


def test_logic_knows_what_null_cannot_change() -> None:
    known = [True, True, True, False, False, False, None, None, None]
    other = [True, False, None] * 3
    left, right = column(known, pa.bool_()), column(other, pa.bool_())
    series = pd.Series(known, dtype="boolean"), pd.Series(other, dtype="boolean")
    for mine, theirs in (
        (left & right, series[0] & series[1]),
        (left | right, series[0] | series[1]),
        (~left, ~series[0]),
        (left & True, series[0] & True),
        (False | left, False | series[0]),
    ):
        assert mine.to_pylist() == [None if value is pd.NA else bool(value) for value in theirs]
    with pytest.raises(FrameError, match="needs bool columns"):
        left & column([1] * 9)


# --- functions


@pytest.mark.parametrize("name", ["sqrt", "exp", "log", "log1p"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_are_numpys_to_the_last_place_but_two(name: str, dtype: Any) -> None:
    values = np.concatenate(
        [np.random.default_rng(1).normal(0, 3, 999), [0.0, -0.0, INF, -INF, NAN, 1e-30, -1.0, 700.0]]
    ).astype(dtype)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(values)
    found = getattr(Series(pa.array(values)), name)().to_numpy()
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    finite = np.isfinite(expected)
    np.testing.assert_array_max_ulp(found[finite], expected[finite], maxulp=2)
    np.testing.assert_array_equal(found[~finite], expected[~finite])


def test_functions_of_integers_are_float64_and_null_stays() -> None:
    found = column([4, None, -1]).sqrt()
    assert found.dtype == pa.float64()
    assert told(found) == [2.0, None, "nan"]
    with pytest.raises(FrameError, match="sqrt: a column of bool is no number"):
        column([True]).sqrt()


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.floats() | st.sampled_from([0.5, 1.5, 2.5, -0.5, 0.05, 0.15, 2.675, 1e22]), max_size=9),
    st.integers(0, 3),
)
def test_round_is_numpys_ties_to_even(values: list[float], decimals: int) -> None:
    array = np.array(values, np.float64)
    with np.errstate(all="ignore"):
        expected = np.round(array, decimals)
        kept = np.isfinite(array * 10.0**decimals)
    found = Series(pa.array(array)).round(decimals).to_numpy()
    np.testing.assert_array_equal(found[kept], expected[kept])
    np.testing.assert_array_equal(found[~kept], array[~kept])


def test_round_floor_and_ceil_of_ties_and_integers() -> None:
    ties = column([0.5, 1.5, 2.5, -0.5, None, NAN])
    assert told(ties.round()) == [0.0, 2.0, 2.0, -0.0, None, "nan"]
    assert told(ties.floor()) == [0.0, 1.0, 2.0, -1.0, None, "nan"]
    assert told(ties.ceil()) == [1.0, 2.0, 3.0, -0.0, None, "nan"]
    assert column([HIGH, 5]).round(2).to_pylist() == [HIGH, 5]
    assert column([HIGH]).floor().dtype == pa.int64()
    with pytest.raises(FrameError, match="-1 decimals"):
        ties.round(-1)


def test_abs_and_negation_of_what_has_no_opposite() -> None:
    assert told(column([-1.5, None, NAN, -0.0]).abs()) == [1.5, None, "nan", 0.0]
    assert (-column([1, None, HIGH])).to_pylist() == [-1, None, -HIGH]
    with pytest.raises(FrameError, match=r"abs: .*row 1"):
        column([1, LOW]).abs()
    with pytest.raises(FrameError, match="row 0"):
        -column([LOW])
    with pytest.raises(FrameError, match="outside -128"):
        column([-128], pa.int8()).abs()


def test_clip_keeps_nan_null_and_the_type() -> None:
    assert told(column([-INF, NAN, None, 5.0]).clip(0, 1)) == [0.0, "nan", None, 1.0]
    assert column([HIGH, LOW, None]).clip(lower=-5).to_pylist() == [HIGH, -5, None]
    assert column([5], pa.int8()).clip(0, 3).dtype == pa.int8()
    for wrong, message in (((2, 1), "above upper"), ((NAN, 1), "NaN"), ((0.5, None), "no integer")):
        with pytest.raises(FrameError, match=message):
            column([1] if wrong[0] == 0.5 else [1.0]).clip(*wrong)


def test_normalize_takes_constants_only() -> None:
    assert column([1, None, 5]).normalize(mean=3, std=2).to_pylist() == [-1.0, None, 1.0]
    assert column([1.0], pa.float32()).normalize(0.1, 3).dtype == pa.float32()
    for constants in ((0, 0), (NAN, 1), (0, INF)):
        with pytest.raises(FrameError, match="normalize"):
            column([1.0]).normalize(*constants)


# --- null and choice


def test_null_and_nan_are_two_things() -> None:
    values = column([1.0, None, NAN])
    assert values.isna().to_pylist() == [False, True, False]
    assert values.notna().to_pylist() == [True, False, True]
    assert values.isnan().to_pylist() == [False, None, True]
    assert told(values.fillna(0)) == [1.0, 0.0, "nan"]
    assert values.where(~values.isnan(), 7).to_pylist() == [1.0, 7.0, 7.0]


def test_fillna_takes_what_fits_and_keeps_the_type() -> None:
    assert column([1, None], pa.int8()).fillna(5).dtype == pa.int8()
    assert column([1, None]).fillna(column([7, 8])).to_pylist() == [1, 8]
    assert column([None, 1]).fillna(column([None, 8])).to_pylist() == [None, 1]
    for value, message in (
        (0.5, "no integer"),
        (2**63, "does not fit"),
        ("a", "no int64"),
        (None, "no int64"),
    ):
        with pytest.raises(FrameError, match=message):
            column([1, None]).fillna(value)
    with pytest.raises(FrameError, match="no integer"):  # whatever the rows hold
        column([1, 2]).fillna(0.5)


def test_where_takes_other_where_the_condition_is_null() -> None:
    condition = column([True, False, None])
    assert column([1, 2, 3]).where(condition).to_pylist() == [1, None, None]
    assert column([1, None, 3]).where(condition, column([7, 8, None])).to_pylist() == [1, 8, None]
    assert column(["a", "b", None]).where(condition, "z").to_pylist() == ["a", "z", "z"]
    with pytest.raises(FrameError, match="int64 of 3 rows beside float64"):
        column([1, 2, 3]).where(condition, column([1.0, 2.0, 3.0]))


# --- categories


@settings(deadline=None, max_examples=40)
@given(st.lists(floats, max_size=9), st.booleans(), st.booleans())
def test_cut_is_pandas(values: list[float], right: bool, include_lowest: bool) -> None:
    bins = [-1.0, 0.0, 0.5, 2.5]
    found = column(values, pa.float64()).cut(bins, right=right, include_lowest=include_lowest and right)
    expected = pd.cut(
        np.array(values, np.float64), bins, right=right, include_lowest=include_lowest and right, labels=False
    )
    assert found.to_pylist() == [None if np.isnan(code) else int(code) for code in expected]


@settings(deadline=None, max_examples=40)
@given(st.lists(floats.filter(lambda v: not math.isnan(v)), max_size=9), st.booleans())
def test_bucket_is_numpys_digitize(values: list[float], right: bool) -> None:
    edges = [-1.0, 0.0, 0.5, 2.5]
    found = column(values, pa.float64()).bucket(edges, right=right)
    assert found.to_pylist() == np.digitize(np.array(values), edges, right=right).tolist()


def test_buckets_of_null_nan_and_great_integers() -> None:
    assert column([None, NAN, 1.0]).bucket([0]).to_pylist() == [None, None, 1]
    assert column([2**53, 2**53 + 1, HIGH]).bucket([2**53 + 1]).to_pylist() == [0, 1, 1]
    assert column([None, 0.5, 9.0]).cut([0, 1, 2], labels=["low", "high"]).to_pylist() == [None, "low", None]
    assert column([2.0]).cut([0, 1, 2], right=False, include_lowest=True).to_pylist() == [1]
    for bins, message in (([1], "no bin"), ([2, 1], "rise strictly"), ([0, NAN], "rise strictly")):
        with pytest.raises(FrameError, match=message):
            column([1.0]).cut(bins)
    with pytest.raises(FrameError, match="2 bins and 1 labels"):
        column([1.0]).cut([0, 1, 2], labels=["a"])


def test_isin_of_null_is_null_and_finds_nan() -> None:
    assert column([1, 2, None]).isin([2, 3]).to_pylist() == [False, True, None]
    assert column([1.0, NAN]).isin([NAN]).to_pylist() == [False, True]
    assert column([HIGH, HIGH - 1]).isin([HIGH]).to_pylist() == [True, False]
    assert column(["a", None, "é"]).isin(["é"]).to_pylist() == [False, None, True]
    assert column([1, 2]).isin([]).to_pylist() == [False, False]
    with pytest.raises(FrameError, match="no integer"):
        column([1]).isin([1.5])
    with pytest.raises(FrameError, match="not one text"):
        column(["a"]).isin("a")


def test_map_gives_null_or_the_default_for_what_it_does_not_know() -> None:
    towns = column(["oslo", None, "rome"])
    assert towns.map({"oslo": 3}).to_pylist() == [3, None, None]
    assert towns.map({"oslo": 3}, default=-1).to_pylist() == [3, None, -1]
    assert towns.map({"oslo": "north", "rome": None}).to_pylist() == ["north", None, None]
    assert column([3, 1, None, HIGH]).map({1: 0.5, HIGH: 2}).to_pylist() == [None, 0.5, None, 2.0]
    assert column([True, False]).map({True: 1, False: 0}).to_pylist() == [1, 0]
    wrong: Any
    for wrong, message in (
        ({}, "empty"),
        ({"oslo": 1, "rome": "a"}, "expected one type"),
        ({1: 2}, "no text"),
        (str.lower, "needs a mapping"),
        ({"oslo": 2**70}, "does not fit"),
    ):
        with pytest.raises(FrameError, match=message):
            towns.map(wrong)


# --- astype


def test_astype_is_exact_or_refused() -> None:
    assert column([1.0, -3.0, None]).astype("int8").to_pylist() == [1, -3, None]
    assert column([True, None, False]).astype("int64").to_pylist() == [1, None, 0]
    assert column([0, 1]).astype("bool").to_pylist() == [False, True]
    assert column([2**53 + 1]).astype("float64").to_pylist() == [2.0**53]
    assert column([0.1, 1e300]).astype("float32").to_pylist() == [float(np.float32(0.1)), INF]
    assert column([7, 0]).astype("string").to_pylist() == ["7", "0"]
    assert column(["7", None, "-1"]).astype("int64").to_pylist() == [7, None, -1]
    assert column(["0.1", "nan"]).astype("float64").to_pylist()[0] == 0.1
    assert column([1]).astype(float).dtype == pa.float64()


@pytest.mark.parametrize(
    ("values", "dtype", "message", "rows"),
    [
        ([1.0, 1.5], "int64", "fractional", (1,)),
        ([NAN], "int64", "NaN", (0,)),
        ([2.0**63], "int64", "out of range", (0,)),
        ([1, 300], "uint8", "outside 0 to 255", (1,)),
        ([2], "bool", "compare with != 0", (0,)),
        (["1", "x"], "int64", "x", (1,)),
        ([1.5], "string", "different ways", ()),
        ([1], "int7", "did you mean", ()),
    ],
)
def test_astype_names_the_rows_that_do_not_fit(
    values: list[Any], dtype: str, message: str, rows: tuple[int, ...]
) -> None:
    with pytest.raises(FrameError, match=message) as error:
        column(values).astype(dtype)
    assert error.value.failing_rows == rows


@settings(deadline=None, max_examples=100)
@given(
    st.integers(-(2**17), 2**17),
    st.sampled_from([2.0**-25, 2.0**-24, 2.0**-12, 2.0**-11, 1.0, 32.0]),
    st.sampled_from([0.0, 2.0**-40, -(2.0**-40), 2.0**-52, -(2.0**-52)]),
)
def test_float16_is_rounded_once_as_numpy_does(whole: int, unit: float, tiny: float) -> None:
    values = np.array([whole * unit * (1 + tiny), (whole + 0.5) * unit * (1 + tiny)])
    with np.errstate(over="ignore"):
        expected = values.astype(np.float16)
    found = Series(pa.array(values)).astype("float16").to_numpy()
    assert found.tobytes() == expected.tobytes()


def test_float16_of_what_has_no_neighbours() -> None:
    values = np.array([NAN, INF, -INF, 0.0, -0.0, 1e-300, -1e-300, 1e300, -1e300, 65519.99999999, 65520.0])
    with np.errstate(over="ignore"):
        expected = values.astype(np.float16)
    found = Series(pa.array(values)).astype("float16").to_numpy()
    np.testing.assert_array_equal(found, expected)
    assert np.signbit(found[1:]).tolist() == np.signbit(values[1:]).tolist()


FLOAT, NARROW = Series(pa.array([1.0, None])), Series(pa.array([1.0, None], pa.float32()))
FLAGS, WORDS = Series(pa.array([True, False, None])), Series(pa.array(["a", None]))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: FLOAT + 10**400,
        lambda: FLOAT.fillna(10**400),
        lambda: FLOAT.clip(-(10**400)),
        lambda: FLOAT.isin([10**400]),
        lambda: FLOAT.isin(FLOAT),  # pyright: ignore[reportArgumentType]
        lambda: FLOAT.cut([0, 10**400]),
        lambda: FLOAT.bucket([0, 10**400]),
        lambda: FLOAT.normalize(10**400, 1),
        lambda: FLOAT.normalize(FLOAT, 1),  # pyright: ignore[reportArgumentType]
        lambda: NARROW * 1e300,
        lambda: NARROW.fillna(1e300),
        lambda: Frame({"x": [1]}).assign(y=2**70),
        lambda: Frame({"x": [1]}).assign(y="\ud800"),
        lambda: FLAGS.isin([1]),
        lambda: WORDS == "\ud800",
        lambda: WORDS.fillna("\ud800"),
        lambda: WORDS.map({"\ud800": 1}),
        lambda: WORDS.map({"a": "\ud800"}),
        lambda: Series(pa.array([0], pa.date32())).astype(pa.timestamp("s", "Europe/Berlin")),
    ],
)
def test_what_no_column_can_hold_is_a_frame_error(wrong: Callable[[], object]) -> None:
    with pytest.raises(FrameError):
        wrong()


def test_isin_of_bools() -> None:
    assert FLAGS.isin([True]).to_pylist() == [True, False, None]
    assert FLAGS.isin([]).to_pylist() == [False, False, None]


@pytest.mark.parametrize(
    ("dtype", "number"), [(pa.float64(), 10**400), (pa.float32(), 1e300), (pa.float16(), 70000)]
)
def test_a_float_is_compared_truly_with_a_number_beyond_its_type(dtype: Any, number: float) -> None:
    series = Series(pa.array([1.0, INF, -INF, NAN, None]).cast(dtype))
    assert (series < number).to_pylist() == [True, False, True, False, None]
    assert (series >= number).to_pylist() == [False, True, False, False, None]
    assert (series > -number).to_pylist() == [True, True, False, False, None]
    assert (series == number).to_pylist() == [False, False, False, False, None]
    assert (series != number).to_pylist() == [True, True, True, True, None]


def test_astype_takes_the_least_and_greatest_int64() -> None:
    assert column([-(2.0**63)]).astype("int64").to_pylist() == [LOW]
    assert column([HIGH, LOW]).astype("int64").to_pylist() == [HIGH, LOW]


# --- in and out


@pytest.mark.parametrize("name", ["i", "small", "u", "x", "y", "flag", "s", "t", "naive", "d", "l"])
def test_arrow_goes_in_and_comes_out_the_same(name: str) -> None:
    array = whole(name)
    assert same(Series(array).to_arrow(), array)
    assert same(Series(array.slice(2, 3)).to_arrow(), array.slice(2, 3))
    assert len(Series(array.slice(0, 0))) == 0


def test_a_frame_becomes_a_matrix_of_one_type() -> None:
    frame = Frame({"a": [1, 2], "b": [0.1, 0.2], "c": [True, False]})
    assert frame.to_torch().dtype == torch.float32
    np.testing.assert_array_equal(frame.to_numpy("float64"), [[1.0, 0.1, 1.0], [2.0, 0.2, 0.0]])
    assert frame.to_numpy("int64", columns=["a", "c"]).tolist() == [[1, 1], [2, 0]]
    assert frame.to_torch(columns=[]).shape == (2, 0)
    with pytest.raises(FrameError, match="'a' is null"):
        Frame({"a": [1, None]}).to_torch()
    with pytest.raises(FrameError, match=r"'a' is string, no number; use .map"):
        Frame({"a": ["x"]}).to_torch()


def test_a_tensor_is_the_callers_own() -> None:
    series = column([1, 2])
    series.to_torch().fill_(9)
    assert series.to_pylist() == [1, 2]
    source = np.array([1.0, 2.0])
    frame = Frame({"a": source})
    frame["a"].to_torch().fill_(9)
    assert source.tolist() == [1.0, 2.0]


def test_the_escape_hatches_keep_types_and_nulls() -> None:
    frame = Frame({"a": [1, None], "s": ["é", None]})
    assert str(frame.to_pandas()["a"].dtype) == "int64[pyarrow]"
    assert frame.to_pandas()["a"].isna().tolist() == [False, True]
    assert frame.to_polars()["a"].dtype == pl.Int64
    assert frame.to_polars()["s"].to_list() == ["é", None]
