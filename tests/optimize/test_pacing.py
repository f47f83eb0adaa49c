"""Two calls are measured in turns until it is clear which is faster, whatever the noise."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from parity.optimize import measure


class Machine:
    """A clock, and calls that take a time on it."""

    def __init__(self, noise: float = 0.0) -> None:
        self.now = 0.0
        self.calls: list[str] = []
        self._noise, self._random = noise, random.Random(5)

    def clock(self) -> float:
        return self.now

    def taking(self, name: str, seconds: float) -> Callable[[], None]:
        def call() -> None:
            self.calls.append(name)
            self.now += seconds * (1 + self._noise * self._random.random())

        return call


@pytest.mark.parametrize(
    ("base", "other", "ratio"), [(0.01, 0.005, 2.0), (0.005, 0.01, 0.5), (0.01, 0.01, 1.0)]
)
def test_the_ratio_is_that_of_the_times(base: float, other: float, ratio: float) -> None:
    machine = Machine()
    pace = measure(
        machine.taking("base", base),
        machine.taking("other", other),
        goal=1.1,
        seconds=60,
        clock=machine.clock,
    )
    assert pace.ratio == pytest.approx(ratio)
    assert pace.low == pytest.approx(ratio)
    assert pace.base_ms == pytest.approx(base * 1000)
    assert pace.ms == pytest.approx(other * 1000)
    assert pace.p99_ms == pytest.approx(other * 1000)
    assert pace.pairs == 15  # clear from the first pair on


def test_noise_is_measured_longer_and_ends_with_the_time() -> None:
    machine = Machine(noise=1.0)
    pace = measure(
        machine.taking("base", 0.011), machine.taking("other", 0.01), goal=1.1, seconds=2, clock=machine.clock
    )
    assert pace.pairs > 15
    assert machine.now < 3
    assert pace.low < 1.1 < pace.high
    assert pace.low <= pace.ratio <= pace.high


def test_the_order_changes_from_pair_to_pair() -> None:
    machine = Machine()
    measure(machine.taking("a", 0.01), machine.taking("b", 0.01), goal=1.1, seconds=60, clock=machine.clock)
    assert machine.calls[4:12] == ["b", "a", "a", "b", "b", "a", "a", "b"]


def test_no_time_gives_one_pair_that_proves_nothing() -> None:
    machine = Machine()
    pace = measure(
        machine.taking("a", 9.0), machine.taking("b", 1.0), goal=1.1, seconds=0.1, clock=machine.clock
    )
    assert pace.pairs == 1
    assert (pace.low, pace.high) == (0.0, math.inf)
