"""The distances between the floats of one column, taken in piece by piece and summed up once."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from parity.compare.comparison import Distances, Spread
from parity.compare.sketch import QUANTILE_BITS, Buckets

Doubles = npt.NDArray[np.float64]

EXACT = 100_000
"""Differing elements of a column up to which quantiles are exact; of more, they are those of `Buckets`."""

_QUANTILES = {"q50": 0.5, "q90": 0.9, "q99": 0.99}
_LEAST_POWER, _MOST_POWER = -8, 64


class RunningDistances:
    """The distances of a column so far. What they sum up to depends on neither order nor pieces."""

    def __init__(self) -> None:
        self.elements = 0
        self.differing = 0
        self.negative_zeros = 0
        self.nan_payloads = 0
        self._abs, self._rel, self._ulp = _Distance(), _Distance(), _Distance()

    def add_equal(self, elements: int, *, negative_zeros: int = 0, nan_payloads: int = 0) -> None:
        """Count elements that are equal, some of them in another representation."""
        self.elements += elements
        self.negative_zeros += negative_zeros
        self.nan_payloads += nan_payloads

    def add(self, distance: Doubles, rel: Doubles, ulp: Doubles) -> None:
        """Take in elements that are finite on both sides and differ: all distances are above 0.

        The arrays are kept, and must not be written to afterwards.
        """
        self.elements += len(ulp)
        self.differing += len(ulp)
        keep = self.differing <= EXACT
        for one, values in ((self._abs, distance), (self._rel, rel), (self._ulp, ulp)):
            one.add(values, keep=keep)

    def total(self, *, passable: bool) -> Distances:
        """All of it as one; `passable` is False when no tolerance in ulp could pass the column."""
        largest = self._ulp.largest
        return Distances(
            elements=self.elements,
            differing=self.differing,
            abs=self._abs.spread(self.elements),
            rel=self._rel.spread(self.elements),
            ulp=self._ulp.spread(self.elements),
            needed_ulp=math.ceil(largest) if passable and math.isfinite(largest) else None,
            histogram=_histogram(*self._ulp.counted()),
            exact=self.differing <= EXACT,
        )


class _Distance:
    """One measure of distance: its largest, its sum, and either all values or how many are in each bucket."""

    def __init__(self) -> None:
        self.largest = 0.0
        self._sum = 0.0
        self._finite = 0
        self._count = 0
        self._kept: list[Doubles] = []
        self._buckets: Buckets | None = None

    def add(self, values: Doubles, *, keep: bool) -> None:
        largest = float(values.max())
        self._count += len(values)
        self.largest = max(self.largest, largest)
        if math.isinf(largest):
            finite = values[np.isfinite(values)]
            self._sum += float(finite.sum())
            self._finite += len(finite)
        else:
            self._sum += float(values.sum())
            self._finite += len(values)
        if keep:
            self._kept.append(values)
            return
        if self._buckets is None:
            self._buckets = Buckets(QUANTILE_BITS)
            for kept in self._kept:
                self._buckets.add(kept)
            self._kept.clear()
        self._buckets.add(values)

    def spread(self, elements: int) -> Spread:
        """Quantiles over `elements` values, of which all that were not taken in are zero."""
        if not self._count:
            return Spread()
        equal = elements - self._count
        wanted = {name: math.ceil(share * elements) - 1 - equal for name, share in _QUANTILES.items()}
        found = dict(zip(wanted, self._at(list(wanted.values())), strict=True))
        mean = self._sum / (elements - (self._count - self._finite)) if self._finite else 0.0
        return Spread(largest=self.largest, mean=mean, **found)

    def counted(self) -> tuple[Doubles, npt.NDArray[np.int64]]:
        """Values, in ascending order or not, and how often each occurs."""
        if self._buckets is not None:
            return self._buckets.filled()
        values = np.concatenate(self._kept) if self._kept else np.empty(0)
        return values, np.ones(len(values), np.int64)

    def _at(self, indices: list[int]) -> list[float]:
        """The values at these places of the ascending order; 0 for a place below all of them."""
        inside = sorted({index for index in indices if index >= 0})
        if self._buckets is None:
            values = np.concatenate(self._kept)
            ordered = np.partition(values, inside) if inside else values
            found = {index: float(ordered[index]) for index in inside}
        else:
            edges, counts = self._buckets.filled()
            places = np.searchsorted(np.cumsum(counts), inside, side="right")
            found = dict(zip(inside, edges[places].tolist(), strict=True))
        return [found.get(index, 0.0) for index in indices]


def _histogram(values: Doubles, counts: npt.NDArray[np.int64]) -> tuple[tuple[int, int], ...]:
    keep = (values > 0) & np.isfinite(values)
    if not keep.any():
        return ()
    powers = np.clip(np.frexp(values[keep])[1] - 1, _LEAST_POWER, _MOST_POWER) - _LEAST_POWER
    found = np.bincount(powers, weights=counts[keep]).astype(np.int64)
    return tuple((power + _LEAST_POWER, int(found[power])) for power in np.flatnonzero(found).tolist())
