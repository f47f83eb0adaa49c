"""The thread: bounded, counting, never in anybody's way. Where order matters its target waits."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from parity.capture import CaptureSettings, CaptureWriter, Place, place_of, read_capture
from parity.capture.format import PREFIX
from tests.capture.recording import INPUTS, OUTPUTS, SOURCE, Heard, scored

WAIT_S = 60.0


class Held:
    """A place whose writes wait until they are let go."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.reached = threading.Event()
        self.let_go = threading.Event()

    def prepare(self) -> None:
        self.place.prepare()

    def write(self, name: str, data: pa.Buffer) -> None:
        self.reached.set()
        assert self.let_go.wait(WAIT_S)
        self.place.write(name, data)

    def parts(self, prefix: str = PREFIX) -> list[str]:
        return self.place.parts(prefix)

    def open(self, name: str) -> object:
        return self.place.open(name)


def writer_of(
    folder: Path,
    settings: CaptureSettings | None = None,
    place: Place | None = None,
    heard: Heard | None = None,
) -> CaptureWriter:
    settings = settings or CaptureSettings(folder=str(folder), rotate_s=3600)
    return CaptureWriter(SOURCE, INPUTS, OUTPUTS, settings, place or place_of(folder), observer=heard)


def names_in(folder: Path) -> list[str]:
    capture = read_capture(folder)
    tables = [piece for part in capture.parts for piece in capture.read(part)]
    return [str(name) for table in tables for name in table.column("input.name").to_pylist()]


def test_closing_writes_what_was_offered_in_order(tmp_path: Path):
    heard = Heard()
    writer = writer_of(tmp_path, heard=heard)
    for number in range(100):
        writer.offer(scored([f"{number}a", f"{number}b"]))
    assert writer.close(WAIT_S)
    assert names_in(tmp_path) == [f"{number}{letter}" for number in range(100) for letter in "ab"]
    assert (heard.rows, heard.lost_rows, heard.failures) == (200, 0, 0)
    writer.offer(scored(["too late"]))
    assert writer.close(WAIT_S), "closing twice does no harm"
    assert len(names_in(tmp_path)) == 200


def test_an_idle_writer_writes_what_is_old_enough(tmp_path: Path):
    place = Held(place_of(tmp_path))
    writer = writer_of(tmp_path, CaptureSettings(folder=str(tmp_path), rotate_s=0.01), place)
    writer.offer(scored(["a"]))
    assert place.reached.wait(WAIT_S), "nobody offered anything more, and it was written all the same"
    place.let_go.set()
    assert writer.close(WAIT_S)
    assert names_in(tmp_path) == ["a"]


def test_what_does_not_fit_the_queue_is_lost_counted_and_told_in_the_part(tmp_path: Path):
    heard, place = Heard(), Held(place_of(tmp_path))
    settings = CaptureSettings(folder=str(tmp_path), rotate_s=0.01, queue_mb=0.01)
    writer = writer_of(tmp_path, settings, place, heard)
    writer.offer(scored(["first"]))
    assert place.reached.wait(WAIT_S)
    for number in range(100):  # the thread is busy with the first part, so these wait
        writer.offer(scored([f"{number}-{'x' * 1000}"]))
    place.let_go.set()
    assert writer.close(WAIT_S)
    kept = names_in(tmp_path)
    assert kept[0] == "first"
    assert 2 < len(kept) < 50
    assert [name.partition("-")[0] for name in kept[1:]] == [str(number) for number in range(len(kept) - 1)]
    assert heard.rows == len(kept)
    assert heard.lost_rows == 101 - len(kept)
    assert sum(part.meta.lost_rows for part in read_capture(tmp_path).parts) == heard.lost_rows


def test_a_batch_larger_than_the_queue_is_taken_by_an_idle_writer(tmp_path: Path):
    writer = writer_of(tmp_path, CaptureSettings(folder=str(tmp_path), queue_mb=0.0001))
    writer.offer(scored(["x" * 10_000]))
    assert writer.close(WAIT_S)
    assert len(names_in(tmp_path)) == 1


def test_a_target_that_hangs_does_not_keep_the_server(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    place = Held(place_of(tmp_path))
    writer = writer_of(tmp_path, place=place)
    writer.offer(scored(["a"]))
    with caplog.at_level(logging.ERROR, "parity.capture"):
        assert not writer.close(0.01)
    assert "event=capture_close_timeout" in caplog.text
    place.let_go.set()
    assert writer.close(WAIT_S)


def test_a_batch_that_makes_no_sense_costs_its_rows_only(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    heard = Heard()
    writer = writer_of(tmp_path, heard=heard)
    good, bad = scored(["a", "b"]), scored(["c", "d"])
    object.__setattr__(bad.result, "outputs", good.batch)  # columns of another schema
    with caplog.at_level(logging.ERROR, "parity.capture"):
        writer.offer(good)
        writer.offer(bad)
        assert writer.close(WAIT_S)
    assert heard.lost_rows == 4, "the rows that were gathered with it"
    assert "event=capture_failed" in caplog.text
