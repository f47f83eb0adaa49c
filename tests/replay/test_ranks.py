"""Rank statistics against their definitions, whatever the pieces they come in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parity.replay.ranks import PairSample, TopRows, kendall, spearman

VALUES = st.lists(st.integers(-4, 4), min_size=1, max_size=30)


@pytest.mark.slow
@given(VALUES, st.integers(1, 8), st.lists(st.integers(1, 7), min_size=1, max_size=5))
def test_the_top_rows_are_those_of_a_sort_whatever_the_pieces(values: list[int], size: int, cuts: list[int]):
    top = TopRows(size)
    array, start = np.array(values, np.float64), 0
    while start < len(array):
        stop = start + cuts[start % len(cuts)]
        top.add(array[start:stop], np.arange(start, min(stop, len(array))))
        start = stop
    wanted = sorted(range(len(values)), key=lambda row: (-values[row], row))[:size]
    assert top.first(size).tolist() == wanted


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), max_size=12))
def test_correlations_are_those_of_their_definitions(pairs: list[tuple[int, int]]):
    one, other = (np.array([pair[side] for pair in pairs], np.float64) for side in (0, 1))
    if len(set(one.tolist())) < 2 or len(set(other.tolist())) < 2:
        assert spearman(one, other) is None
        assert kendall(one, other) is None
        return
    ranks = pd.Series(one).rank().corr(pd.Series(other).rank())
    assert spearman(one, other) == pytest.approx(ranks)
    assert kendall(one, other) == pytest.approx(tau_b(one, other))


def tau_b(one: Any, other: Any) -> float:
    """Kendall's tau-b, pair by pair."""
    total = first = second = 0
    for row in range(len(one)):
        for before in range(row):
            signs = np.sign(one[row] - one[before]), np.sign(other[row] - other[before])
            total += signs[0] * signs[1]
            first += signs[0] != 0
            second += signs[1] != 0
    return total / np.sqrt(float(first) * float(second))


def test_a_sample_is_bounded_uniform_and_the_same_every_time():
    def drawn(pieces: int) -> Any:
        sample = PairSample(1000)
        for piece in np.split(np.arange(50_000, dtype=np.float64), pieces):
            sample.add(piece, -piece)
        return sample.pairs

    one, other = drawn(10)
    assert len(one) == 1000
    assert (other == -one).all()
    counts, _ = np.histogram(one, bins=5, range=(0, 50_000))
    assert counts.min() > 120, "every part of the rows is in it"
    assert sorted(one) == sorted(drawn(10)[0]) == sorted(drawn(50)[0])


def test_a_small_sample_is_everything():
    sample = PairSample(10)
    sample.add(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    assert sorted(sample.pairs[0].tolist()) == [1.0, 2.0]
