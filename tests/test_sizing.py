"""Batch sizes of "auto": what is chosen from which measurements."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from parity.sizing import GROWTH_SHARE, Sizing, Timing, choose, sizes_to_try

POWERS = sizes_to_try((), 1024)


def fixed_cost(overhead_s: float, row_s: float) -> Callable[[int], float]:
    """The time of a batch that costs so much, and so much for each row."""
    return lambda rows: overhead_s + row_s * rows


def tray(rows: int) -> float:
    """The time of rows that go eight at a time; the handler takes ten times as long."""
    return 0.02 * -(-rows // 8)


def test_powers_of_two_are_tried_or_the_buckets():
    assert sizes_to_try((), 1024)[:4] == [1, 2, 4, 8]
    assert sizes_to_try((), 1024)[-1] == 1024
    assert sizes_to_try((), 100)[-1] == 64
    assert sizes_to_try((), 1) == [1]
    assert sizes_to_try((32, 16, 64), 48) == [16, 32]
    assert sizes_to_try((32,), 8) == [8]
    assert sizes_to_try((), 512, 64) == [64, 128, 256, 512]
    assert sizes_to_try((), 20, 64) == [20]


def test_the_size_is_taken_from_which_more_rows_bring_nothing():
    found = choose(tray, POWERS, allowed_s=10.0)
    assert found.rows == 8
    assert found.batch_s == 0.02
    assert [timing.rows for timing in found.timings] == [1, 2, 4, 8, 16, 32]
    assert "beyond which a batch brings less than 5% more rows a second" in str(found)
    assert "8: 400, 16: 400" in str(found)


def test_a_rate_that_always_grows_ends_at_the_largest_size():
    found = choose(lambda _: 0.1, POWERS, allowed_s=10.0)
    assert (found.rows, found.reason) == (1024, "no larger size was tried than 1024")


def test_one_size_that_is_bad_by_itself_does_not_end_the_search():
    found = choose(lambda rows: 1.0 if rows == 4 else 0.1, POWERS, allowed_s=10.0)
    assert found.rows == 1024


def test_a_size_that_is_slower_than_the_one_before_is_not_taken():
    found = choose(lambda rows: 0.001 * rows * (1 if rows <= 16 else 3) + 0.01, POWERS, allowed_s=10.0)
    assert found.rows == 16


def test_a_batch_takes_no_longer_than_it_may():
    found = choose(fixed_cost(0.01, 0.001), POWERS, allowed_s=0.02)
    assert (found.rows, found.reason) == (8, "a batch of 16 takes 26 ms, and may take 20 ms")
    assert choose(tray, POWERS, allowed_s=0.03).rows == 8


def test_where_every_batch_takes_too_long_the_smallest_is_taken_and_it_is_said():
    found = choose(tray, POWERS, allowed_s=0.015)
    assert (found.rows, len(found.timings)) == (1, 1)
    assert found.reason == "the smallest, though a batch of 1 takes 20 ms, and may take 15 ms"


def test_no_size_is_tried_that_is_refused():
    asked: list[tuple[int, int]] = []

    def refused(last: Timing, rows: int) -> str:
        asked.append((last.rows, rows))
        return "" if rows <= 16 else f"a batch of {rows} may not fit into memory"

    found = choose(lambda _: 0.1, POWERS, refused=refused)
    assert (found.rows, found.reason) == (16, "a batch of 32 may not fit into memory")
    assert asked == [(1, 2), (2, 4), (4, 8), (8, 16), (16, 32)]


@given(
    seconds=st.lists(st.floats(1e-5, 10.0), min_size=11, max_size=11),
    allowed_s=st.floats(1e-4, 10.0),
    fits=st.integers(1, 2048),
)
def test_whatever_is_measured_the_choice_keeps_its_bounds(seconds: list[float], allowed_s: float, fits: int):
    times = dict(zip(POWERS, seconds, strict=True))
    refused = {rows: "" if rows <= fits else "too large" for rows in POWERS}
    found = choose(times.__getitem__, POWERS, allowed_s=allowed_s, refused=lambda _, rows: refused[rows])
    tried = [timing.rows for timing in found.timings]
    assert tried == POWERS[: len(tried)]
    assert all(rows <= fits for rows in tried[1:])
    allowed = [timing for timing in found.timings if timing.seconds <= allowed_s]
    if not allowed:
        assert found.rows == 1
        return
    best = max(timing.rows_per_s for timing in allowed)
    good = [timing.rows for timing in allowed if timing.rows_per_s * (1 + GROWTH_SHARE) >= best]
    assert found.rows == good[0]
    assert found.batch_s == times[found.rows]


def test_a_choice_without_measurements_says_why():
    told = str(Sizing(16, (), "the largest that its certificate proves exact"))
    assert told == "auto: 16 rows, the largest that its certificate proves exact"
