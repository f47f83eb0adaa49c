"""A plot's axis: where values lie on it, and the ticks that people read."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]

_LOG_SPAN = 200.0


@dataclass(frozen=True)
class Axis:
    """A range of values laid on a line from pixel `start` to pixel `end`, evenly or by their logarithm."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, values: Doubles) -> Doubles:
        """The pixels of values; on a logarithmic axis they are positive."""
        low, high = self.low, self.high
        if self.log:
            values, low, high = np.log10(values), math.log10(low), math.log10(high)
        share = (values / 2 - low / 2) / (high / 2 - low / 2)  # halves, so that no span overflows
        return self.start + share * (self.end - self.start)

    def pixel(self, value: float) -> float:
        """The pixel of one value."""
        return float(self.at(np.array([value]))[0])

    def ticks(self, most: int = 5) -> list[tuple[float, str]]:
        """About so many round values on the axis, with their text."""
        if self.log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            step = max(1, math.ceil((last - first) / most))
            low, high = self.low * (1 - 1e-9), self.high * (1 + 1e-9)
            powers = [power for power in range(first, last + 1, step) if low <= _ten(power) <= high]
            return [(_ten(power), _power(power)) for power in powers]
        step = _round_step((self.high / most) - (self.low / most))
        if not step:
            return [(self.low, f"{self.low:.3g}")]
        first = math.ceil(self.low / step)
        # The first one may be rounded off the axis.
        values = [step * (first + place) for place in range(most * 3)]
        return [(value, _text(value, step)) for value in values if self.low <= value <= self.high]


def axis(values: Doubles, start: float, end: float, *, log: bool | None = None) -> Axis:
    """An axis that holds the finite values, with a little room at both ends.

    `log` is decided by the values where it is None: all positive, and over several powers of ten.
    """
    values = values[np.isfinite(values)]
    if not len(values):
        return Axis(0.0, 1.0, start, end)
    low, high = float(values.min()), float(values.max())
    if log is None:
        log = low > 0 and high / low > _LOG_SPAN
    if log:
        powers = math.floor(math.log10(low)), math.ceil(math.log10(high))
        return Axis(_ten(powers[0]), _ten(max(powers[1], powers[0] + 1)), start, end, log=True)
    room = (high / 2 - low / 2) / 10 if low < high else abs(low) / 10 or 0.5
    limit = sys.float_info.max
    return Axis(max(low - room, -limit), min(high + room, limit), start, end)


def _ten(power: int) -> float:
    return 10.0 ** max(power, -323) if power <= 308 else sys.float_info.max


def _round_step(step: float) -> float:
    if not step or not math.isfinite(step):
        return 0.0
    size = 10.0 ** math.floor(math.log10(step))
    return next((size * factor for factor in (1, 2, 2.5, 5) if size * factor >= step), size * 10)


def _text(value: float, step: float) -> str:
    digits = max(0, -math.floor(math.log10(step)))
    digits += round(step, digits) != round(step, digits + 1)  # steps of 2.5
    if abs(value) >= 1e6 or step >= 1e5:
        return f"{value:.4g}"
    if digits > 6:
        return f"{value:.3g}" if abs(value) < 1e3 * step else f"{value:.{min(digits, 9)}f}"
    return f"{value:.{digits}f}"


def _power(power: int) -> str:
    return f"{10.0**power:g}" if -3 <= power <= 4 else f"1e{power}"
