"""Portions: every wanted row once, in order, in pieces that fit memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parity.capture import Capture, CaptureSettings, read_capture
from parity.profile import Profile
from parity.replay import Wanted, portions
from tests.replay.traffic import HOUR_NS, NOON_NS, incomes, record, write_handler

MINUTE_NS = 60 * 10**9


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Capture:
    """Three parts: 40 rows, 30 rows at buckets 4 and 8, and 20 rows without a name."""
    folder = tmp_path_factory.mktemp("traffic")
    ref = write_handler(folder / "credit", rejects="n3")
    captured = folder / "captured"
    record(captured, ref, incomes(40), prefix="a")
    record(
        captured, ref, incomes(30), prefix="b", start_ns=NOON_NS + HOUR_NS, profile=Profile(buckets=(4, 8))
    )
    hidden = CaptureSettings(folder=str(captured), drop=("name",))
    record(captured, ref, incomes(20), prefix="c", start_ns=NOON_NS + 2 * HOUR_NS, settings=hidden)
    return read_capture(captured)


@pytest.mark.slow
@settings(max_examples=40)
@given(
    rows=st.integers(1, 60),
    size_bytes=st.sampled_from([1, 3000, 2**28]),
    limit=st.none() | st.integers(1, 100),
    first=st.integers(-10, 150),
    minutes=st.integers(1, 200),
)
def test_every_wanted_row_is_in_one_portion(
    capture: Capture, rows: int, size_bytes: int, limit: int | None, first: int, minutes: int
):
    since, until = NOON_NS + first * MINUTE_NS, NOON_NS + (first + minutes) * MINUTE_NS
    wanted = Wanted(since_ns=since, until_ns=until, limit=limit)
    starts = {"a": (0, 40), "b": (60, 30), "c": (120, 20)}
    expected = [
        f"{prefix}{row}"
        for prefix, (start, count) in starts.items()
        for row in range(count)
        if first <= start + row < first + minutes
    ][:limit]
    found: list[str] = []
    for portion in portions(capture, wanted, rows=rows, size_bytes=size_bytes):
        names = [str(name) for name in portion.table.column("_request_id").to_pylist()]
        assert 0 < len(names) < 2 * rows
        assert [int(name[1:]) for name in names] == sorted(int(name[1:]) for name in names)
        assert len({name[0] for name in names}) == 1, "one profile and the same columns"
        buckets = set(portion.table.column("_bucket").to_pylist())
        if portion.bucket is not None:
            assert buckets == {portion.bucket}
        found += names
    assert sorted(found) == sorted(expected)


def test_only_rows_of_a_profile_with_buckets_are_cut_by_bucket(capture: Capture):
    found = [(portion.bucket, portion.table.num_rows) for portion in portions(capture, Wanted())]
    assert found == [(None, 40), (4, 2), (8, 27), (None, 1), (None, 20)]
    whole = [portion.table.num_rows for portion in portions(capture, Wanted(), by_bucket=False)]
    assert whole == [40, 30, 20]


def test_a_sample_is_of_requests_and_independent_of_the_captures_own(tmp_path: Path):
    ref = write_handler(tmp_path / "credit")
    record(
        tmp_path / "captured",
        ref,
        incomes(400),
        settings=CaptureSettings(folder="x", sample=0.5),
    )
    found = read_capture(tmp_path / "captured")
    kept = sum(portion.table.num_rows for portion in portions(found, Wanted(sample=0.5)))
    assert 0.3 < kept / found.parts[0].meta.rows < 0.7
