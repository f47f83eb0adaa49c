"""Floats against floats: bits first, then distances at the scale of the column.

A distance in ulp is |expected - obtained| over the spacing of the dtype at the element's scale, which is
max(|expected|, median |expected| of the column): near zero the spacing of the element itself says nothing
about how good a sum is, since the terms that cancelled had the size of the column.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from parity.compare.comparison import Distances, Spread
from parity.compare.rules import Close, Rule

Floats = npt.NDArray[np.floating[Any]]
Doubles = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_PRECISION = {"float16": (11, -24), "bfloat16": (8, -133), "float32": (24, -149), "float64": (53, -1074)}
"""For each dtype the bits of its significand, and the exponent of its smallest positive number."""


@dataclass(frozen=True)
class FloatDifferences:
    """Where two float arrays differ in bits, and by how much.

    `positions` index the compared arrays; the other arrays have one entry per position. `ulp` is 0 for
    values that are equal (-0.0 and 0.0, two NaNs) and inf where a NaN or infinity stands on one side only.
    """

    elements: int
    positions: Positions
    fails: Mask
    severity: Doubles
    abs: Doubles
    rel: Doubles
    ulp: Doubles
    odd: Mask
    negative_zeros: int
    nan_payloads: int


def narrower(one: str, other: str) -> str:
    """The float dtype of the two with fewer bits of significand."""
    return min(one, other, key=lambda name: _PRECISION[name][0])


def spacing(scale: Doubles, dtype: str) -> Doubles:
    """The distance between neighbouring numbers of `dtype` at magnitude `scale`; always a power of two."""
    bits, smallest = _PRECISION[dtype]
    exponent = np.frexp(scale)[1].astype(np.int32) - bits
    return np.ldexp(1.0, np.maximum(exponent, smallest))


def column_scale(expected: Floats) -> float:
    """The median magnitude of the finite values; 0 when there are none."""
    sizes = np.abs(expected[np.isfinite(expected)])
    return float(np.median(sizes)) if len(sizes) else 0.0


def float_differences(
    expected: Floats, obtained: Floats, dtype: str, rule: Rule, scale: float | None = None
) -> FloatDifferences:
    """Compare two arrays of one length and numpy dtype under `Close`, or for equality under any other rule.

    `dtype` is the one to measure in, narrower than the arrays' where bfloat16 is stored as float32. `scale`
    is the column scale when the caller knows it from more rows than these.
    """
    unsigned = np.dtype(f"u{expected.dtype.itemsize}")
    positions = np.flatnonzero(expected.view(unsigned) != obtained.view(unsigned)).astype(np.int64)
    one, other = expected[positions].astype(np.float64), obtained[positions].astype(np.float64)
    equal = one == other
    both_nan = np.isnan(one) & np.isnan(other)
    odd = ~(np.isfinite(one) & np.isfinite(other)) & ~equal & ~both_nan
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        distance = np.abs(one - other)
        distance[equal | both_nan] = 0.0
        distance[odd] = np.inf
        sizes = np.where(np.isfinite(one), np.abs(one), 0.0)
        if len(positions) and not (isinstance(rule, Close) and rule.scale == "element"):
            np.maximum(sizes, column_scale(expected) if scale is None else scale, out=sizes)
        ulp = distance / spacing(sizes, dtype)
        rel = np.where(distance == 0, 0.0, distance / sizes)
        limit = _limit(rule, sizes, dtype)
        fails = (distance > limit) | odd
        severity = np.where(distance == 0, 0.0, np.where(limit > 0, distance / limit, ulp))
        severity[np.isinf(distance)] = np.inf
    return FloatDifferences(
        elements=len(expected),
        positions=positions,
        fails=fails,
        severity=severity,
        abs=distance,
        rel=rel,
        ulp=ulp,
        odd=odd,
        negative_zeros=int(np.count_nonzero(equal)),
        nan_payloads=int(np.count_nonzero(both_nan)),
    )


def distances(parts: Sequence[FloatDifferences], *, passable: bool) -> Distances:
    """The distances of all float leaves of a column as one; `passable` is False when no ulp could pass."""
    finite = [~part.odd for part in parts]
    elements = sum(part.elements - int(np.count_nonzero(part.odd)) for part in parts)
    ulp = np.concatenate([part.ulp[keep] for part, keep in zip(parts, finite, strict=True)])
    largest = float(ulp.max(initial=0.0))
    passable = passable and not any(part.odd.any() for part in parts) and math.isfinite(largest)
    return Distances(
        elements=elements,
        differing=int(np.count_nonzero(ulp)),
        abs=_spread(
            np.concatenate([part.abs[keep] for part, keep in zip(parts, finite, strict=True)]), elements
        ),
        rel=_spread(
            np.concatenate([part.rel[keep] for part, keep in zip(parts, finite, strict=True)]), elements
        ),
        ulp=_spread(ulp, elements),
        needed_ulp=math.ceil(largest) if passable else None,
        histogram=_histogram(ulp),
    )


def _limit(rule: Rule, sizes: Doubles, dtype: str) -> Doubles:
    if not isinstance(rule, Close):
        return np.zeros_like(sizes)
    return np.maximum(rule.ulp * spacing(sizes, dtype), rule.atol + rule.rtol * sizes)


def _spread(values: Doubles, elements: int) -> Spread:
    """Quantiles over `elements` values, of which `values` may be other than zero."""
    values = values[values > 0]
    if not len(values):
        return Spread()
    equal = elements - len(values)
    wanted = {name: math.ceil(share * elements) - 1 - equal for name, share in _QUANTILES.items()}
    inside = sorted({index for index in wanted.values() if index >= 0})
    ordered = np.partition(values, inside) if inside else values
    found = {name: float(ordered[index]) if index >= 0 else 0.0 for name, index in wanted.items()}
    finite = values[np.isfinite(values)]
    mean = float(finite.sum() / (elements - (len(values) - len(finite)))) if len(finite) else 0.0
    return Spread(largest=float(values.max()), mean=mean, **found)


_QUANTILES = {"q50": 0.5, "q90": 0.9, "q99": 0.99}


def _histogram(ulp: Doubles) -> tuple[tuple[int, int], ...]:
    ulp = ulp[(ulp > 0) & np.isfinite(ulp)]
    if not len(ulp):
        return ()
    counts = np.bincount(np.clip(np.frexp(ulp)[1] - 1, -8, 64) + 8)
    return tuple((power - 8, int(counts[power])) for power in np.flatnonzero(counts).tolist())
