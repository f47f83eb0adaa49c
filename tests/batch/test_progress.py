"""The progress line, with a clock of its own."""

from __future__ import annotations

import io

import pytest

from parity_batch.progress import PlanningLine, ProgressLine, duration, size


def test_the_line_tells_share_rate_time_left_and_failures() -> None:
    now = [100.0]
    line = ProgressLine(1000, io.StringIO(), lambda: now[0], done=200)
    now[0] = 102.0
    assert line.text(600, 0) == " 60%  600 of 1,000 rows  200 rows/s  2 s left"
    assert line.text(1000, 3) == "100%  1,000 of 1,000 rows  400 rows/s  3 failed"


def test_the_line_is_rewritten_and_then_left() -> None:
    stream = io.StringIO()
    line = ProgressLine(0, stream, lambda: 0.0)
    line.show(0, 0)
    line.show(0, 0)
    line.close()
    assert stream.getvalue() == "\r100%  0 of 0 rows  0 rows/s\x1b[K" * 2 + "\n"


def test_a_line_that_was_never_shown_leaves_nothing() -> None:
    stream = io.StringIO()
    ProgressLine(10, stream).close()
    assert stream.getvalue() == ""


def test_planning_is_told_and_leaves_nothing_behind() -> None:
    stream = io.StringIO()
    line = PlanningLine(stream)
    line.show(1024, 2_000_000)
    line.close()
    assert stream.getvalue() == "\rplanning: 1,024 of 2,000,000 footers read\x1b[K\r\x1b[K"


@pytest.mark.parametrize(
    ("seconds", "text"), [(7.6, "8 s"), (59.6, "1 min 00 s"), (185, "3 min 05 s"), (7620, "2 h 07 min")]
)
def test_a_duration_is_told_as_people_do(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 bytes"),
        (0.2, "1 byte"),
        (412, "412 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (3_249, "3.2 kB"),
        (99_949, "99.9 kB"),
        (99_950, "100 kB"),
        (999_499, "999 kB"),
        (999_500, "1.0 MB"),
        (160e6, "160 MB"),
        (999_500_000, "1.0 GB"),
        (12_345e9, "12,345.0 GB"),
    ],
)
def test_a_size_is_told_as_people_do(size_bytes: float, text: str) -> None:
    assert size(size_bytes) == text
