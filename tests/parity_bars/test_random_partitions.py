"""Rows cut at random over the engine, runners, wire forms and batch sizes; benchmarks has 10,000 of them."""

from __future__ import annotations

import pytest

from benchmarks.random_partitions import partitioned

ROWS = 300

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.mark.parametrize(
    ("profile", "allowed"), [("default", {"identical", "within"}), ("exact", {"identical"})]
)
def test_whichever_way_a_row_goes_its_answer_is_the_same(profile: str, allowed: set[str]):
    comparison = partitioned("films", profile, ROWS)
    assert comparison.rows == ROWS
    assert comparison.verdict in allowed
    assert len(comparison.failing_rows) == 0
