"""Floats against floats: bits first, then distances at the scale of the column.

A distance in ulp is |expected - obtained| over the spacing of the dtype at the element's scale, which is
max(|expected|, median |expected| of the column): near zero the spacing of the element itself says nothing
about how good a sum is, since the terms that cancelled had the size of the column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from parity.compare.distances import RunningDistances
from parity.compare.rules import Bits, Close, Rule
from parity.compare.sketch import BLOCK, Median

Floats = npt.NDArray[np.floating[Any]]
Doubles = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_PRECISION = {"float16": (11, -24), "bfloat16": (8, -133), "float32": (24, -149), "float64": (53, -1074)}
"""For each dtype the bits of its significand, and the exponent of its smallest positive number."""

_EXPONENT = np.int64(0x7FF0000000000000)


@dataclass(frozen=True)
class FloatDifferences:
    """Where two float arrays differ in bits, and by how much.

    `positions` index the compared arrays, None for all of them; the other arrays have one entry per position.
    `ulp` is 0 for values that are equal (-0.0 and 0.0, two NaNs) and inf where a NaN or infinity stands on
    one side only, which `odd` marks; None where nothing does. `fails` is None where everything passes.
    """

    positions: Positions | None
    ulp: Doubles
    fails: Mask | None
    odd: Mask | None
    severity: Doubles
    weight: float
    worst: float
    """The largest severity times `weight`."""


def narrower(one: str, other: str) -> str:
    """The float dtype of the two with fewer bits of significand."""
    return min(one, other, key=significand_bits)


def significand_bits(dtype: str) -> int:
    """The bits of a float dtype's significand, the implied one included."""
    return _PRECISION[dtype][0]


def spacing(scale: npt.ArrayLike, dtype: str) -> Doubles:
    """The distance between neighbouring numbers of `dtype` at magnitude `scale`; always a power of two."""
    bits, smallest = _PRECISION[dtype]
    exponent = np.frexp(scale)[1].astype(np.int32) - bits
    return np.ldexp(1.0, np.maximum(exponent, smallest))


def column_scale(expected: npt.ArrayLike) -> float:
    """The median magnitude of the finite values as `Median` tells it; 0 when there are none."""
    median = Median(np.dtype(np.float64))
    median.add(np.ascontiguousarray(np.asarray(expected).astype(np.float64)).reshape(-1))
    return median.value or 0.0


def float_differences(
    expected: Floats, obtained: Floats, dtype: str, rule: Rule, scale: float | None = None
) -> FloatDifferences:
    """Compare two flat arrays of one length on their own; `scale` is the column scale where it is known.

    `dtype` is the one to measure in.
    """
    one, other = (np.ascontiguousarray(side.astype(np.float64)) for side in (expected, obtained))

    def known() -> float:
        return column_scale(one) if scale is None else scale

    found = measure(one, other, dtype, rule, known, RunningDistances())
    none = np.empty(0)
    return found or FloatDifferences(np.empty(0, np.int64), none, None, None, none, 1.0, 0.0)


def measure(
    expected: Floats,
    obtained: Floats,
    dtype: str,
    rule: Rule,
    scale: Callable[[], float],
    distances: RunningDistances,
) -> FloatDifferences | None:
    """Compare two arrays of one length and numpy dtype under `Close`, or for equality under any other rule.

    `dtype` is the one to measure in, narrower than the arrays' where bfloat16 is stored as float32. `scale`
    gives the column scale, and is called only where something differs. The distances are added to
    `distances`. None when all bits agree.
    """
    unsigned = np.dtype(f"u{expected.dtype.itemsize}")
    differs = expected.view(unsigned) != obtained.view(unsigned)
    count = int(np.count_nonzero(differs))
    if not count:
        distances.add_equal(len(expected))
        return None
    distances.add_equal(len(expected) - count)
    positions = None
    if count < len(expected):
        positions = np.flatnonzero(differs)
        expected, obtained = expected[positions], obtained[positions]
    measure = _Measure(dtype, rule, 0.0 if _of_element(rule) else scale(), distances)
    ulp = np.empty(count)
    severity = ulp if measure.weight else np.empty(count)
    fails, odd = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    for start in range(0, count, BLOCK):
        part = slice(start, start + BLOCK)
        measure.block(expected[part], obtained[part], ulp[part], severity[part], fails[part], odd[part])
    worst = measure.largest * measure.weight if measure.weight else float(severity.max())
    return FloatDifferences(
        positions=positions,
        ulp=ulp,
        fails=fails if measure.any_fails else None,
        odd=odd if measure.any_odd else None,
        severity=severity,
        weight=measure.weight or 1.0,
        worst=worst,
    )


def _of_element(rule: Rule) -> bool:
    return isinstance(rule, Close) and rule.scale == "element"


class _Measure:
    """One leaf's rule, applied to pairs of floats that differ in bits, a block at a time."""

    def __init__(self, dtype: str, rule: Rule, scale: float, distances: RunningDistances) -> None:
        bits, smallest = _PRECISION[dtype]
        self.rule = rule
        self.scale = scale
        self.distances = distances
        self.least_power = 2.0 ** (smallest + bits - 1)
        self.epsilon = 2.0 ** (1 - bits)
        self.any_fails = self.any_odd = False
        self.largest = 0.0
        self.only_ulp = isinstance(rule, Close) and not (rule.rtol or rule.atol)
        # Where severity is the distance in ulp but for a factor, the one array serves for both.
        self.weight = 0.0
        if not isinstance(rule, Close):
            self.weight = 1.0
        elif self.only_ulp:
            self.weight = 1.0 / rule.ulp

    def block(
        self, expected: Floats, obtained: Floats, ulp: Doubles, severity: Doubles, fails: Mask, odd: Mask
    ) -> None:
        """Measure some pairs into the given arrays."""
        one = expected.astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            distance = np.abs(one - obtained)
            usual = bool(np.isfinite(distance).all())
            if not usual:
                self._settle(one, obtained, distance, odd)
            sizes = np.abs(one, out=one)
            if not usual:
                sizes[~np.isfinite(sizes)] = 0.0
            np.maximum(sizes, self.scale, out=sizes)
            spacing = (sizes.view(np.int64) & _EXPONENT).view(np.float64)
            if self.scale < self.least_power:
                np.maximum(spacing, self.least_power, out=spacing)
            spacing *= self.epsilon
            np.divide(distance, spacing, out=ulp)
            largest = float(ulp.max())
            self.largest = max(self.largest, largest)
            self._judge(distance, sizes, spacing, ulp, largest, severity, fails)
            equal = not distance.min() > 0
            rel = np.divide(distance, sizes, out=sizes)
        if usual and not equal:
            self.distances.add(distance, rel, ulp)
        else:
            self._add_some(expected, distance, rel, ulp, odd)

    def _settle(self, one: Doubles, obtained: Floats, distance: Doubles, odd: Mask) -> None:
        """Give the pairs their distance in which not both are finite: 0 for two NaNs, else infinite."""
        unusual = ~(np.isfinite(one) & np.isfinite(obtained))
        both_nan = np.isnan(one) & np.isnan(obtained)
        distance[both_nan] = 0.0
        np.logical_and(unusual, ~both_nan, out=odd)
        distance[odd] = np.inf
        self.any_odd |= bool(odd.any())

    def _judge(
        self,
        distance: Doubles,
        sizes: Doubles,
        spacing: Doubles,
        ulp: Doubles,
        largest: float,
        severity: Doubles,
        fails: Mask,
    ) -> None:
        rule = self.rule
        if isinstance(rule, Close) and self.only_ulp and largest <= rule.ulp:
            return
        if isinstance(rule, Close) and not self.only_ulp:
            limit = np.maximum(rule.ulp * spacing, rule.atol + rule.rtol * sizes)
            limit[np.isinf(limit)] = np.finfo(np.float64).max  # an infinite distance passes no rule
            np.greater(distance, limit, out=fails)
            severity[:] = np.where(distance == 0, 0.0, np.where(limit > 0, distance / limit, ulp))
        elif isinstance(rule, Close):
            np.greater(ulp, rule.ulp, out=fails)
        elif isinstance(rule, Bits):
            fails[:] = True
        else:
            np.greater(distance, 0.0, out=fails)
        self.any_fails = self.any_fails or bool(fails.any())

    def _add_some(self, expected: Floats, distance: Doubles, rel: Doubles, ulp: Doubles, odd: Mask) -> None:
        """Add the distances of a block in which some pairs are equal, or not finite on one side."""
        equal = distance == 0
        nans = int(np.count_nonzero(np.isnan(expected[equal])))
        zeros = int(np.count_nonzero(equal)) - nans
        keep = ~(equal | odd)
        self.distances.add_equal(nans + zeros, negative_zeros=zeros, nan_payloads=nans)
        if keep.any():
            self.distances.add(distance[keep], rel[keep], ulp[keep])
