"""Whether two batches hold the same bits: NaN equals NaN, -0.0 does not equal 0.0, null equals null only."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from parity.batch import Batch


def assert_same_bits(obtained: Batch, expected: Batch) -> None:
    """Fail where the schema, the number of rows, a type or a value differs."""
    assert obtained.schema == expected.schema
    assert obtained.num_rows == expected.num_rows
    for name in expected.schema.names:
        assert obtained[name].arrow.type.equals(expected[name].arrow.type, check_metadata=True), name
        obtained[name].arrow.validate(full=True)
        ours, theirs = (batch[name].to_pylist() for batch in (obtained, expected))
        for row, (got, want) in enumerate(zip(ours, theirs, strict=True)):
            assert same(got, want), f"column {name}, row {row}: {got!r} is not {want!r}"


def same(got: Any, want: Any) -> bool:
    """Whether two Python values are the same value of the same type."""
    if type(got) is not type(want):
        return False
    if isinstance(want, np.ndarray):
        return got.dtype == want.dtype and got.shape == want.shape and _same_arrays(got, want)
    if isinstance(want, float):
        return (math.isnan(got) and math.isnan(want)) or (
            got == want and math.copysign(1, got) == math.copysign(1, want)
        )
    if isinstance(want, list):
        return len(got) == len(want) and all(same(a, b) for a, b in zip(got, want, strict=True))
    if isinstance(want, dict):
        return list(got) == list(want) and all(same(got[key], want[key]) for key in want)
    if isinstance(want, np.generic):
        return got.dtype == want.dtype and got == want
    return bool(got == want)


def _same_arrays(got: Any, want: Any) -> bool:
    if got.dtype.kind in "iub":
        return bool(np.array_equal(got, want))
    a, b = got.astype(np.float64), want.astype(np.float64)
    return bool(
        (np.array_equal(a, b, equal_nan=True) and np.array_equal(np.signbit(a), np.signbit(b)))
        or (
            np.array_equal(a, b, equal_nan=True)
            and np.array_equal(np.signbit(a)[~np.isnan(a)], np.signbit(b)[~np.isnan(b)])
        )
    )
