"""Rounding once, casting without loss, writing the fewest digits."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parity.codec.numbers import exact_cast, finite_limit, float_of_int, nearest, plain_number, shortest
from parity.schema import BFLOAT16

NARROW = [np.dtype(np.float16), BFLOAT16, np.dtype(np.float32)]
ALL_INTS = [np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)]


def every_16_bit_float(dtype: np.dtype) -> np.ndarray:
    return np.arange(2**16, dtype=np.uint16).view(dtype)


def is_nearest(got: float, want: Fraction, dtype: np.dtype) -> bool:
    """Whether no neighbour of `got` in its dtype is nearer to `want`; of two as near, the even one wins."""
    bits = {2: np.uint16, 4: np.uint32}[dtype.itemsize]
    place = np.array(got).astype(dtype).view(bits)
    distance = abs(Fraction(got) - want)
    for step in (-1, 1):
        with np.errstate(over="ignore"):
            neighbour = float((place + bits(step) if step > 0 else place - bits(1)).view(dtype))
        if np.isfinite(neighbour) and np.signbit(neighbour) == np.signbit(got):
            other = abs(Fraction(neighbour) - want)
            if other < distance or (other == distance and int(place) % 2):
                return False
    return True


@pytest.mark.parametrize("dtype", NARROW, ids=str)
@given(value=st.floats(allow_nan=False, allow_infinity=False))
@example(value=1 + 2**-8 + 2**-40)  # ml_dtypes rounds this twice, and wrongly
@example(value=2.0**-133 + 2.0**-160)
@example(value=-(1 + 3 * 2**-8 - 2**-40))
def test_a_float_becomes_the_nearest(dtype: np.dtype, value: float) -> None:
    got = float(nearest(np.array(value), dtype))
    if abs(value) >= finite_limit(dtype):
        assert np.isinf(got)
    elif got != 0:
        assert is_nearest(got, Fraction(value), dtype)
    assert np.signbit(got) == np.signbit(value)


@pytest.mark.parametrize("dtype", NARROW, ids=str)
@given(value=st.integers(-(2**70), 2**70))
@example(value=2**60 + 2**36 + 1)  # by way of float64 this would be rounded twice
@example(value=2**24 + 1)
def test_an_integer_becomes_the_nearest_float(dtype: np.dtype, value: int) -> None:
    got = float(nearest(np.array(float_of_int(value)), dtype))
    if np.isfinite(got) and value:
        assert is_nearest(got, Fraction(value), dtype)


def test_an_integer_beyond_every_float_is_told() -> None:
    with pytest.raises(OverflowError):
        float_of_int(10**400)


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), BFLOAT16], ids=str)
def test_the_limit_is_the_least_that_becomes_infinite(dtype: np.dtype) -> None:
    limit = finite_limit(dtype)
    assert np.isinf(float(nearest(np.array(limit), dtype)))
    assert np.isfinite(float(nearest(np.array(np.nextafter(limit, 0)), dtype)))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.dtype(np.float16), BFLOAT16], ids=str)
def test_every_16_bit_float_survives_its_shortest_digits(dtype: np.dtype) -> None:
    values = every_16_bit_float(dtype)
    wide = shortest(values)
    back = nearest(wide, dtype)
    finite = np.isfinite(wide)
    assert np.array_equal(back.view(np.uint16)[finite], values.view(np.uint16)[finite])
    assert (
        max(
            len(repr(abs(value)).split("e")[0].replace(".", "").strip("0")) for value in wide[finite].tolist()
        )
        <= 5
    )


def test_the_shortest_digits_are_kind() -> None:
    assert shortest(np.array([0.1, 65504, 1 / 3], np.float16)).tolist() == [0.1, 65500.0, 0.3333]
    assert shortest(np.array([[0.1], [-0.0]], BFLOAT16)).tolist() == [[0.1], [-0.0]]


@pytest.mark.slow
@given(st.data())
def test_an_integer_is_cast_only_where_it_stays_itself(data: st.DataObject) -> None:
    source = data.draw(st.sampled_from(ALL_INTS))
    target = data.draw(st.sampled_from([*ALL_INTS, *NARROW, np.dtype(np.float64)]))
    info = np.iinfo(source)
    numbers = st.integers(int(info.min), int(info.max)) | st.sampled_from([int(info.min), int(info.max), 0])
    values = np.array(data.draw(st.lists(numbers, max_size=6)), dtype=source)
    cast, exact = exact_cast(values, target)
    mask = np.ones(len(values), bool) if exact is None else exact
    bits, low = target.itemsize * 8, target.kind == "i"
    limits = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if low else (0, 2**bits - 1)
    for got, want, same in zip(cast, values, mask, strict=True):
        if same:
            assert Fraction(float(got)) == int(want) if target.kind not in "iu" else int(got) == int(want)
        elif target.kind in "iu":
            assert not limits[0] <= int(want) <= limits[1]
        else:
            closest = float(nearest(np.array(float_of_int(int(want))), target))
            assert np.isinf(closest) or Fraction(closest) != int(want)


@pytest.mark.slow
@pytest.mark.parametrize("target", [*NARROW, np.dtype(np.float64)], ids=str)
@given(values=st.lists(st.floats(), max_size=6))
def test_a_float_is_cast_only_where_it_stays_itself(target: np.dtype, values: list[float]) -> None:
    cast, exact = exact_cast(np.array(values, np.float64), target)
    mask = np.ones(len(values), bool) if exact is None else exact
    for got, want, same in zip(cast, values, mask, strict=True):
        equal = float(got) == want or (np.isnan(float(got)) and np.isnan(want))
        assert bool(same) == equal


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, 1),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (0.5, 0.5),
        (np.float32(0.5), 0.5),
        (np.float16(0.5), 0.5),
        (ml_dtypes.bfloat16(0.5), 0.5),
        (True, None),
        (np.True_, None),
        ("1", None),
        (np.longdouble(1), None),
        (1j, None),
        (None, None),
    ],
)
def test_plain_numbers(value: object, expected: float | None) -> None:
    got = plain_number(value)
    assert got == expected
    assert type(got) is type(expected)
