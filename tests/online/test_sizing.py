"""`max_batch = "auto"`: what is chosen from which measurements, and on a real server."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parity_online.memory import peak_bytes, room_bytes
from parity_online.process import ServerProcess
from parity_online.sizing import GROWTH_SHARE, Sizing, choose, sizes_to_try
from tests.online.serving import HANDLERS, ask

TRAY = str(HANDLERS / "tray")
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


def test_the_size_is_taken_from_which_more_rows_bring_nothing():
    found = choose(tray, POWERS, allowed_s=10.0)
    assert found.max_batch == 8
    assert found.batch_s == 0.02
    assert [timing.rows for timing in found.timings] == [1, 2, 4, 8, 16, 32]
    assert "beyond which a batch brings less than 5% more rows a second" in str(found)
    assert "8: 400, 16: 400" in str(found)


def test_a_rate_that_always_grows_ends_at_the_largest_size():
    found = choose(lambda _: 0.1, POWERS, allowed_s=10.0)
    assert (found.max_batch, found.reason) == (1024, "no larger size was tried than 1024")


def test_one_size_that_is_bad_by_itself_does_not_end_the_search():
    found = choose(lambda rows: 1.0 if rows == 4 else 0.1, POWERS, allowed_s=10.0)
    assert found.max_batch == 1024


def test_a_size_that_is_slower_than_the_one_before_is_not_taken():
    found = choose(lambda rows: 0.001 * rows * (1 if rows <= 16 else 3) + 0.01, POWERS, allowed_s=10.0)
    assert found.max_batch == 16


def test_a_batch_takes_no_longer_than_it_may():
    found = choose(fixed_cost(0.01, 0.001), POWERS, allowed_s=0.02)
    assert (found.max_batch, found.reason) == (8, "a batch of 16 takes 26 ms, and may take 20 ms")
    assert choose(tray, POWERS, allowed_s=0.03).max_batch == 8


def test_where_every_batch_takes_too_long_the_smallest_is_taken_and_it_is_said():
    found = choose(tray, POWERS, allowed_s=0.015)
    assert (found.max_batch, len(found.timings)) == (1, 1)
    assert found.reason == "the smallest, though a batch of 1 takes 20 ms, and may take 15 ms"


def test_no_size_is_tried_that_may_not_fit_into_memory():
    asked: list[tuple[int, int]] = []

    def has_memory(measured: int, rows: int) -> bool:
        asked.append((measured, rows))
        return rows <= 16

    found = choose(lambda _: 0.1, POWERS, allowed_s=10.0, has_memory=has_memory)
    assert (found.max_batch, found.reason) == (16, "a batch of 32 may not fit into memory")
    assert asked == [(1, 2), (2, 4), (4, 8), (8, 16), (16, 32)]


@given(
    seconds=st.lists(st.floats(1e-5, 10.0), min_size=11, max_size=11),
    allowed_s=st.floats(1e-4, 10.0),
    fits=st.integers(1, 2048),
)
def test_whatever_is_measured_the_choice_keeps_its_bounds(seconds: list[float], allowed_s: float, fits: int):
    times = dict(zip(POWERS, seconds, strict=True))
    found = choose(times.__getitem__, POWERS, allowed_s=allowed_s, has_memory=lambda _, rows: rows <= fits)
    tried = [timing.rows for timing in found.timings]
    assert tried == POWERS[: len(tried)]
    assert all(rows <= fits for rows in tried[1:])
    allowed = [timing for timing in found.timings if timing.seconds <= allowed_s]
    if not allowed:
        assert found.max_batch == 1
        return
    best = max(timing.rows_per_s for timing in allowed)
    good = [timing.rows for timing in allowed if timing.rows_per_s * (1 + GROWTH_SHARE) >= best]
    assert found.max_batch == good[0]
    assert found.batch_s == times[found.max_batch]


def test_memory_is_told_by_the_system_or_not_at_all(tmp_path: Path):
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "status").write_text("Name:\tpython\nVmHWM:\t  5120 kB\n")
    (tmp_path / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable: 4000 kB\n")
    assert peak_bytes(proc=tmp_path) == 5120 * 1024
    assert room_bytes(proc=tmp_path, cgroup=tmp_path) == 4000 * 1024
    (tmp_path / "memory.max").write_text("3000000\n")
    (tmp_path / "memory.current").write_text("1000000\n")
    assert room_bytes(proc=tmp_path, cgroup=tmp_path) == 2_000_000
    (tmp_path / "memory.max").write_text("max\n")
    assert room_bytes(proc=tmp_path, cgroup=tmp_path) == 4000 * 1024
    assert peak_bytes(7, proc=tmp_path) is None
    assert room_bytes(proc=tmp_path / "none", cgroup=tmp_path / "none") is None


def test_a_choice_without_measurements_says_why():
    told = str(Sizing(16, (), "the largest that its certificate proves exact"))
    assert told == "auto: 16 rows, the largest that its certificate proves exact"


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], ["--replicas", "1"]])
def test_a_server_measures_while_it_warms_up_and_tells(more: list[str]):
    with ServerProcess([TRAY, "--max-batch", "auto", *more]) as server:
        config = ask(server.url, "GET", "/v2/models/tray/config")[2]
        (model,) = ask(server.url, "GET", "/status.json")[2]["models"]
        answers = ask(server.url, "POST", "/predictions/tray", [{"x": x} for x in range(40)])[2]
        log = server.log()
    assert config["max_batch_size"] == 8
    assert config["parameters"]["max_batch"]["string_value"].startswith("auto: 8 rows, beyond which")
    assert (model["max_batch"], model["sizing"]["max_batch"]) == (8, 8)
    measured = {entry["rows"]: entry["seconds"] for entry in model["sizing"]["measured"]}
    assert list(measured) == [1, 2, 4, 8, 16, 32]
    assert all(seconds >= 10 * tray(rows) for rows, seconds in measured.items())
    assert [answer["y"] for answer in answers] == [2 * x + 1 for x in range(40)]
    assert [answer["rows"] for answer in answers] == [8] * 40
    assert "event=sized model=tray version=" in log
    assert "max_batch=8" in log


@pytest.mark.slow
def test_a_server_keeps_to_what_a_request_should_take():
    with ServerProcess([TRAY, "--max-batch", "auto", "--slo-ms", "30"]) as server:
        config = ask(server.url, "GET", "/v2/models/tray/config")[2]
    assert config["max_batch_size"] == 1
    assert "the smallest, though a batch of 1 takes" in config["parameters"]["max_batch"]["string_value"]


@pytest.mark.slow
def test_a_server_measures_the_buckets_of_its_profile():
    arguments = [TRAY, "--max-batch", "auto", "--set", "buckets=[4, 8, 24]"]
    with ServerProcess(arguments) as server:
        (model,) = ask(server.url, "GET", "/status.json")[2]["models"]
    assert model["max_batch"] == 8
    assert [entry["rows"] for entry in model["sizing"]["measured"]] == [4, 8, 24]
