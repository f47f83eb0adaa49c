"""Counts of positive numbers in buckets of equal relative width: quantiles and medians in bounded memory.

The bucket of a number is its float64 exponent and the first bits of its significand, so that a bucket's lower
edge is the number with the rest of its bits cut off. Counting does not depend on the order of the numbers nor
on how they were cut into pieces.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

QUANTILE_BITS = 7
"""Bits of the significand that tell buckets of distances apart: a quantile is at most 1/128 too small."""

SCALE_BITS = 8
"""The same for the column scale: the median rounded down, at most 1/256 too small."""

BLOCK = 32_768
"""Elements to work on at once: few enough that they stay in the processor's cache."""

_NEAR = 64
"""Powers of two that a number may be below all before it and still be expected to have company."""

_SIGNIFICANDS = {2: 10, 4: 23, 8: 52}
"""The bits of the significand that a float of so many bytes stores."""

_SIGNIFICAND_BITS = _SIGNIFICANDS[8]


class Buckets:
    """How many numbers fell into each bucket. All numbers are above 0 and no NaN."""

    def __init__(self, bits: int) -> None:
        self._shift = _SIGNIFICAND_BITS - bits
        self._counts: Counts = np.zeros((0x7FF << bits) + 1, np.int64)  # touched where there are numbers
        self._first: int | None = None
        self._near = _NEAR << bits

    def add(self, values: Doubles) -> None:
        """Count some more numbers."""
        places = values.view(np.int64) >> self._shift
        first = int(places.min()) if self._first is None else self._first
        places -= first
        try:
            found = np.bincount(places)
        except ValueError:  # one is smaller than any before
            lower = int(places.min())
            places -= lower
            first += lower
            found = np.bincount(places)
        if self._first is None or 0 < self._first - first < self._near:
            self._first = first
        self._counts[first : first + len(found)] += found

    def filled(self) -> tuple[Doubles, Counts]:
        """The lower edges of the buckets that hold numbers, ascending, and how many each holds."""
        places = np.flatnonzero(self._counts)
        return (places << self._shift).view(np.float64), self._counts[places]


class Median:
    """The median magnitude of many floats of one dtype, rounded down to its first bits.

    Of an even number of values it is the larger of the two in the middle. Values that are not finite do not
    count; without any value it is 0.
    """

    def __init__(self, dtype: np.dtype[Any]) -> None:
        # The bits of a magnitude, cut to exponent and `SCALE_BITS`, order magnitudes as integers.
        self._dtype, self._bits = dtype, np.dtype(f"i{dtype.itemsize}")
        self._shift = _SIGNIFICANDS[dtype.itemsize] - SCALE_BITS
        self._magnitude = np.array(np.iinfo(self._bits).max, self._bits)
        infinite = int(np.array(np.inf, dtype).view(self._bits)) >> self._shift
        self._counts: Counts = np.zeros(infinite, np.int64)

    def add(self, values: npt.NDArray[np.floating[Any]]) -> None:
        """Take in some more values."""
        for start in range(0, len(values), BLOCK):
            places = (values[start : start + BLOCK].view(self._bits) & self._magnitude) >> self._shift
            if int(places.max()) >= len(self._counts):
                places = places[places < len(self._counts)]
            if len(places):
                first = int(places.min())
                places -= first
                found = np.bincount(places)
                self._counts[first : first + len(found)] += found

    @property
    def value(self) -> float | None:
        """The median of what was taken in so far; None without a finite value."""
        places = np.flatnonzero(self._counts)
        if not len(places):
            return None
        below = np.cumsum(self._counts[places])
        middle = places[np.searchsorted(below, below[-1] // 2, side="right")] << self._shift
        return float(np.array(middle, self._bits).view(self._dtype))
