"""Exact arithmetic between number formats: nearest values, lossless casts, shortest digits. Pure numpy.

numpy and ml_dtypes round twice on the way from float64 or int64 to bfloat16, and from int64 to the narrow
floats; here every conversion rounds once, to nearest with ties to even, or says that it would have to round.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from parity.schema import BFLOAT16

Array = np.ndarray[Any, Any]

_EXACT_INT = 2**53
"""Up to here every integer is a float64."""


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether `dtype` is a floating-point dtype; bfloat16, which numpy calls a void, is one."""
    return dtype.kind == "f" or dtype == BFLOAT16


def plain_number(value: Any) -> int | float | None:
    """A Python, numpy or ml_dtypes number as a Python one, exactly; None for booleans and everything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, np.floating):
        return float(value) if value.dtype.itemsize <= 8 else None
    return float(value) if type(value).__module__ == "ml_dtypes" else None


def kind_problem(source: np.dtype[Any], wanted: np.dtype[Any]) -> str:
    """Why values of one dtype are not even the right kind for another; empty when they may fit."""
    if source == wanted:
        return ""
    if (source == np.bool_) != (wanted == np.bool_):
        return "is not boolean" if wanted == np.bool_ else "is boolean, not a number"
    if wanted.kind in "iu" and source.kind not in "iu":
        return "does not hold integers"
    if source.kind not in "iu" and not (is_float(source) and source.itemsize <= 8):
        return "does not hold numbers"
    return ""


def finite_limit(dtype: np.dtype[Any]) -> float:
    """The least magnitude that rounds to infinity in a float dtype; infinity for float64."""
    return _FINITE_LIMITS[dtype.name]


# The greatest value plus half a unit in its last place: 2**(emax + 1) - 2**(emax - digits).
_FINITE_LIMITS = {
    "float16": 65520.0,
    "bfloat16": float(2**128 - 2**119),
    "float32": float(2**128 - 2**103),
    "float64": float("inf"),
}


def nearest(values: Array, dtype: np.dtype[Any]) -> Array:
    """float64 values rounded once to a float dtype; magnitudes beyond its range become infinite."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        if dtype == BFLOAT16:
            return _sticky_float32(values).astype(BFLOAT16)
        return values.astype(dtype)


def float_of_int(value: int) -> float:
    """A float64 that rounds to the same float32, float16 or bfloat16 as the integer does.

    Integers up to 2**53 are themselves. Beyond, the dropped bits are kept as one sticky bit, so that rounding
    the result again, to a format of at most 51 digits, is as good as rounding the integer once.

    Raises:
        OverflowError: it is beyond 2**1013, far out of the range of any format that rounds twice.
    """
    if -_EXACT_INT <= value <= _EXACT_INT:
        return float(value)
    magnitude = abs(value)
    shift = magnitude.bit_length() - 53
    kept = magnitude >> shift
    if magnitude & ((1 << shift) - 1):
        kept |= 1
    if shift > 960:
        raise OverflowError("the integer is beyond the range of a float")
    result = float(kept) * 2.0**shift
    return -result if value < 0 else result


def exact_cast(values: Array, dtype: np.dtype[Any]) -> tuple[Array, Array | None]:
    """Values in another dtype, and which of them are the same number there.

    Integers go to integers and floats, floats to floats, booleans to booleans; the caller has ruled out the
    rest. NaN is the same as NaN.

    Returns:
        The values in `dtype`, and a boolean array of the same shape, or None when all are exact. Where it is
        False, the value is of no use.
    """
    if values.dtype == dtype:
        return values, None
    with np.errstate(all="ignore"):
        if values.dtype.kind in "iu" and dtype.kind in "iu":
            info = np.iinfo(dtype)
            if np.can_cast(values.dtype, dtype):
                return values.astype(dtype), None
            return _verdict(values.astype(dtype), _between(values, int(info.min), int(info.max)))
        if values.dtype.kind in "iu":
            return _int_to_float(values, dtype)
        wide = values.astype(np.float64)
        cast = nearest(wide, dtype)
        back = cast.astype(np.float64)
        return _verdict(cast, (back == wide) | (np.isnan(wide) & np.isnan(back)))


def shortest(values: Array) -> Array:
    """float64 values whose shortest digits are the shortest that tell `values` (16-bit floats) apart.

    Writing 0.1 held in a float16 as its exact value, 0.0999755859375, would be right but unkind; so each is
    replaced by the float64 nearest to its shortest decimal form. NaN and infinities stay.
    """
    digits = 4 if values.dtype == BFLOAT16 else 5  # tell any two apart: 1 + bits * log10(2), rounded up
    distinct, places = np.unique(values.view(np.uint16).reshape(-1), return_inverse=True)
    with np.errstate(invalid="ignore"):  # a signalling NaN
        wide = distinct.view(values.dtype).astype(np.float64)
    found = wide.copy()
    todo = np.isfinite(wide)
    for count in range(1, digits + 1):
        rows = np.flatnonzero(todo)
        if not len(rows):
            break
        tried = np.array([float(f"{wide[row]:.{count - 1}e}") for row in rows], dtype=np.float64)
        hit = nearest(tried, values.dtype).view(np.uint16) == distinct[rows]
        found[rows[hit]] = tried[hit]
        todo[rows[hit]] = False
    return found[places.reshape(-1)].reshape(values.shape)


def _sticky_float32(values: Array) -> Array:
    """float32 values rounded to odd: rounding them once more to bfloat16 equals rounding `values` once."""
    wide = np.asarray(values, dtype=np.float64)
    narrow = np.asarray(wide.astype(np.float32))
    back = narrow.astype(np.float64)
    bits = narrow.view(np.uint32).copy()
    inexact = (back != wide) & ~np.isnan(wide)
    bits[inexact & (np.abs(back) > np.abs(wide))] -= np.uint32(1)
    bits[inexact] |= np.uint32(1)
    return bits.view(np.float32)


def _int_to_float(values: Array, dtype: np.dtype[Any]) -> tuple[Array, Array | None]:
    wide = values.astype(np.float64)
    cast = nearest(wide, dtype)
    back = cast.astype(np.float64)
    same = back == wide
    if values.dtype.itemsize == 8:
        # A 64-bit integer may have been rounded on its way to float64: compare as integers, inside the range.
        info = np.iinfo(values.dtype)
        inside = (back >= float(info.min)) & (back < float(int(info.max) + 1))
        same &= inside & (np.where(inside, back, 0.0).astype(values.dtype) == values)
    return _verdict(cast, same)


def _between(values: Array, low: int, high: int) -> Array:
    info = np.iinfo(values.dtype)
    mask = np.ones(values.shape, dtype=np.bool_)
    if low > info.min:
        mask &= values >= low
    if high < info.max:
        mask &= values <= high
    return mask


def _verdict(cast: Array, same: Array) -> tuple[Array, Array | None]:
    return cast, None if bool(same.all()) else same
