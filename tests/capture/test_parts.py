"""Rotation, sampling, failing targets and what a part says, with an injected clock and real files."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from parity.capture import CaptureSettings, Place, Scored, in_sample, place_of, read_capture
from parity.capture.format import PREFIX
from parity.durable import is_temporary
from tests.capture.recording import SOURCE, Clock, Heard, origin, part_writer, scored


def rows_in(folder: Path) -> list[str]:
    """The request ids that the capture holds, in order."""
    capture = read_capture(folder)
    tables = [piece for part in capture.parts for piece in capture.read(part)]
    return [str(name) for table in tables for name in table.column("_request_id").to_pylist()]


def test_a_part_is_written_when_its_first_row_is_old_enough(tmp_path: Path):
    clock, heard = Clock(), Heard()
    writer = part_writer(
        tmp_path, CaptureSettings(folder=str(tmp_path), rotate_s=60), clock=clock, observer=heard
    )
    assert writer.due_at is None
    writer.add(scored(["a"]))
    clock.now += 59
    writer.add(scored(["b"]))
    writer.tick()
    assert writer.due_at == 160.0
    assert not list(tmp_path.rglob("*.parquet"))
    clock.now += 1
    writer.tick()
    assert rows_in(tmp_path) == ["a", "b"]
    assert (heard.rows, heard.lost_rows, writer.due_at) == (2, 0, None)
    writer.tick()
    writer.add(scored(["c"], time_ns=2 * 3600 * 10**9))
    assert writer.due_at == 220.0, "its age counts from its own first row"
    writer.flush()
    assert rows_in(tmp_path) == ["a", "b", "c"]
    assert len(list(tmp_path.rglob("*.parquet"))) == 2


def test_a_part_is_written_when_it_is_large_enough(tmp_path: Path):
    writer = part_writer(tmp_path, CaptureSettings(folder=str(tmp_path), rotate_mb=0.01), clock=Clock())
    for number in range(40):
        writer.add(scored([f"{number}-{'x' * 1000}"]))
        writer.tick()
    writer.flush()
    parts = read_capture(tmp_path).parts
    assert 3 <= len(parts) <= 10
    assert sum(part.meta.rows for part in parts) == 40


@pytest.mark.slow
def test_many_small_batches_are_one_part_in_order(tmp_path: Path):
    writer = part_writer(tmp_path, clock=Clock())
    for number in range(200):
        writer.add(scored([f"{number}a", f"{number}b"], failing=[0] if number % 5 == 0 else []))
    writer.flush()
    assert rows_in(tmp_path) == [f"{number}{letter}" for number in range(200) for letter in "ab"]


def test_the_sample_is_the_same_requests_everywhere_and_keeps_them_whole(tmp_path: Path):
    ids = [f"request-{number}" for number in range(400)]
    kept = [name for name in ids if in_sample(name, 0.25)]
    assert 60 < len(kept) < 140
    assert set(kept) < {name for name in ids if in_sample(name, 0.5)}, (
        "a smaller sample is a part of a larger"
    )
    assert [name for name in ids if in_sample(name, 0.25, b"other")] != kept
    assert not any(in_sample(name, 0) for name in ids)
    assert all(in_sample(name, 1) for name in ids)
    writer = part_writer(tmp_path, CaptureSettings(folder=str(tmp_path), sample=0.25), clock=Clock())
    for start in range(0, 400, 8):
        writer.add(scored(ids[start : start + 8]))
    writer.flush()
    assert rows_in(tmp_path) == kept


def test_failed_rows_are_kept_beside_the_sample_and_marked(tmp_path: Path):
    keep = CaptureSettings(folder=str(tmp_path), sample=0, keep_errors=True)
    writer = part_writer(tmp_path, keep, clock=Clock())
    batch = scored(["a", "b", "c", "d"], failing=[1, 3])
    writer.add(Scored(batch.batch, batch.result, [(origin("r"), (5, 6, 9, 11), 4)], 2, 1.5))
    writer.flush()
    capture = read_capture(tmp_path)
    (table,) = capture.read(capture.parts[0])
    assert table.column("input.name").to_pylist() == ["b", "d"]
    assert table.column("_row").to_pylist() == [6, 11]
    assert table.column("_position").to_pylist() == [1, 3]
    assert table.column("_sampled").to_pylist() == [False, False]
    assert pc.struct_field(table.column("_error"), "kind").to_pylist() == ["failed", "failed"]
    assert table.column("output.y").null_count == 2


def test_rows_of_no_request_are_not_recorded(tmp_path: Path):
    writer = part_writer(tmp_path, clock=Clock())
    batch = scored(["golden", "b", "golden", "d"], failing=[3])
    shares = [(None, None, 1), (origin("b"), None, 1), (None, None, 1), (origin("d"), None, 1)]
    writer.add(Scored(batch.batch, batch.result, shares, 2, 1.5))
    writer.flush()
    (table,) = (lambda c: c.read(c.parts[0]))(read_capture(tmp_path))
    assert table.column("input.name").to_pylist() == ["b", "d"]
    assert table.column("output.name").to_pylist() == ["B", None]
    assert table.column("_bucket").to_pylist() == [8, None]
    assert table.column("_batch_rows").to_pylist() == [4, 4]


class Broken:
    """A place that fails until it is mended, with a real one behind it."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.is_broken = True
        self.tries = 0

    def prepare(self) -> None:
        self.place.prepare()

    def write(self, name: str, data: pa.Buffer) -> None:
        self.tries += 1
        if self.is_broken:
            raise OSError(28, "No space left on device")
        self.place.write(name, data)

    def parts(self, prefix: str = PREFIX) -> list[str]:
        return self.place.parts(prefix)

    def open(self, name: str) -> object:
        return self.place.open(name)


@pytest.mark.slow
def test_a_target_that_fails_is_retried_ever_later_and_nothing_is_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    clock, heard, place = Clock(), Heard(), Broken(place_of(tmp_path))
    writer = part_writer(
        tmp_path,
        CaptureSettings(folder=str(tmp_path), rotate_s=1),
        clock=clock,
        observer=heard,
        place=place,
    )
    waits: list[float] = []
    with caplog.at_level(logging.INFO, "parity.capture"):
        writer.add(scored(["a"]))
        for _ in range(150):
            due = writer.due_at
            assert due is not None
            waits.append(due - clock.now)
            clock.now = due
            writer.tick()
        writer.add(scored(["b"]))
        place.is_broken = False
        clock.now += 60
        writer.tick()
    assert waits[:5] == [1.0, 1.0, 2.0, 4.0, 8.0]
    assert waits[-1] == 60.0
    assert (heard.failures, heard.lost_rows, heard.rows) == (150, 0, 2)
    assert rows_in(tmp_path) == ["a", "b"]
    messages = [record.getMessage() for record in caplog.records]
    assert len([text for text in messages if text.startswith("event=capture_failed")]) == 2, (
        "one of a hundred"
    )
    assert "No space left" in messages[0]
    assert messages[-1].startswith("event=capture_recovered")


@pytest.mark.parametrize(
    ("error", "is_told"), [(PermissionError(13, "secret-42"), True), (ValueError("secret-42"), False)]
)
def test_the_log_line_has_the_text_of_what_a_target_raised_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, error: Exception, is_told: bool
):
    class Raising(Broken):
        def write(self, name: str, data: pa.Buffer) -> None:
            raise error

    clock = Clock()
    settings = CaptureSettings(folder=str(tmp_path), rotate_s=1)
    writer = part_writer(tmp_path, settings, clock=clock, place=Raising(place_of(tmp_path)))
    writer.add(scored(["a"]))
    assert not writer.flush()
    (record,) = caplog.records
    assert record.getMessage().startswith("event=capture_failed")
    assert type(error).__name__ in record.getMessage()
    assert ("secret-42" in record.getMessage()) is is_told
    assert (record.exc_info is None) is is_told, (
        "a traceback, which whoever formats it may leave texts out of"
    )


def test_a_target_that_goes_on_failing_costs_rows_and_no_memory(tmp_path: Path):
    clock, heard, place = Clock(), Heard(), Broken(place_of(tmp_path))
    writer = part_writer(
        tmp_path,
        CaptureSettings(folder=str(tmp_path), rotate_mb=0.01),
        clock=clock,
        observer=heard,
        place=place,
    )
    for number in range(100):
        writer.add(scored([f"{number}-{'x' * 1000}"]))
        writer.tick()
    assert heard.lost_rows > 50
    place.is_broken = False
    clock.now += 60
    writer.add(scored(["later"]))  # finds the buffer full
    writer.tick()
    writer.add(scored(["last"]))
    writer.flush()
    first, second = read_capture(tmp_path).parts
    assert first.meta.rows + first.meta.lost_rows == 101
    assert first.meta.lost_rows == heard.lost_rows
    assert (second.meta.lost_rows, second.meta.lost_rows_total) == (0, heard.lost_rows)


def test_a_folder_that_was_removed_is_a_failure_until_it_is_back(tmp_path: Path):
    folder = tmp_path / "captured"
    clock, heard = Clock(), Heard()
    settings = CaptureSettings(folder=str(folder), rotate_s=1)
    writer = part_writer(folder, settings, clock=clock, observer=heard)
    folder.rmdir()
    writer.add(scored(["a"]))
    clock.now += 1
    writer.tick()
    assert heard.failures == 1
    assert not folder.exists()
    folder.mkdir()
    clock.now += 1
    writer.tick()
    assert rows_in(folder) == ["a"]


def test_what_cannot_be_written_at_the_end_is_counted(tmp_path: Path):
    heard = Heard()
    writer = part_writer(tmp_path, observer=heard, place=Broken(place_of(tmp_path)), clock=Clock())
    writer.add(scored(["a", "b"]))
    assert not writer.flush()
    writer.give_up()
    assert (heard.failures, heard.lost_rows) == (1, 2)
    assert writer.due_at is None


def test_a_part_that_fails_half_way_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    writer = part_writer(tmp_path, clock=Clock())
    writer.add(scored(["a"]))

    def fail(path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("parity.capture.places.publish", fail)
    assert not writer.flush()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_reader_passes_by_what_is_being_written(tmp_path: Path):
    writer = part_writer(tmp_path, clock=Clock())
    writer.add(scored(["a"]))
    writer.flush()
    (whole,) = tmp_path.rglob("*.parquet")
    unfinished = whole.with_name(f".{whole.name}.tmp")
    unfinished.write_bytes(b"PAR1 half a file")
    assert is_temporary(unfinished)
    assert rows_in(tmp_path) == ["a"]


def test_a_part_says_what_it_is(tmp_path: Path):
    writer = part_writer(tmp_path, CaptureSettings(folder=str(tmp_path), keep_errors=True), clock=Clock())
    writer.lose(3)
    writer.add(scored(["a", "b"], failing=[0]))
    writer.flush()
    (path,) = tmp_path.rglob("*.parquet")
    assert path.parent.name == "echo"
    assert path.name.startswith("part-19700101T010000000Z-")
    said = json.loads((pq.ParquetFile(path).metadata.metadata or {})[b"parity.capture"])
    assert said["format"] == 1
    assert said["source"] == {
        "handler": "echo",
        "version": "1.0.0",
        "reference": "handlers/echo",
        "digests": {"source": "ab", "artifacts": "cd"},
        "profile": {"name": "default", "device": "cpu", "buckets": [8]},
        "fingerprint": {"python": "3"},
        "runner": "online",
    }
    assert (said["rows"], said["lost_rows"], said["keep_errors"], said["sample"]) == (2, 3, True, 1.0)
    (part,) = read_capture(tmp_path).parts
    assert part.meta.source == SOURCE


def test_two_writers_share_a_folder(tmp_path: Path):
    for name in ("a", "b"):
        writer = part_writer(tmp_path, clock=Clock())
        writer.add(scored([name]))
        writer.flush()
    assert sorted(rows_in(tmp_path)) == ["a", "b"]


@pytest.mark.parametrize("name", ["a/b", "..", ".x", "_x", "x y", "é"])
def test_a_handlers_name_is_one_folder(tmp_path: Path, name: str):
    folder = tmp_path / "captured"
    source = type(SOURCE)(handler=name, version="1", profile={"name": "default"})
    writer = part_writer(folder, source=source, clock=Clock())
    writer.add(scored(["a"]))
    assert writer.flush()
    (path,) = tmp_path.rglob("*.parquet")
    assert path.parent.parent == folder
    assert path.parent.name[0] not in "._"
    assert read_capture(folder).handlers == (name,)


@pytest.mark.slow
def test_others_read_it_by_its_documented_columns(tmp_path: Path):
    writer = part_writer(tmp_path, clock=Clock())
    writer.add(scored(["a", "b", "c"], failing=[1]))
    writer.flush()
    (path,) = tmp_path.rglob("*.parquet")
    frame = pd.read_parquet(path)
    assert frame["input.name"].tolist() == ["a", "b", "c"]
    assert str(frame["_time"].dtype) == "datetime64[ns, UTC]"
    query = f"""select "input.name", "output.y", _error.kind, _latency_s, _version
                from read_parquet('{tmp_path}/echo/*.parquet') order by _position"""
    with duckdb.connect() as connection:
        found = connection.execute(query).fetchall()
    assert [row[0] for row in found] == ["a", "b", "c"]
    assert [row[2] for row in found] == [None, "failed", None]
    assert {row[3:] for row in found} == {(0.25, "1.0.0")}


def test_a_url_works_through_fsspec():
    pytest.importorskip("fsspec")
    url = "memory://captured-by-a-test/traffic"
    writer = part_writer(url, clock=Clock())
    writer.add(scored(["a", "b"]))
    assert writer.flush()
    capture = read_capture(url)
    assert [part.name.partition("/")[0] for part in capture.parts] == ["echo"]
    (table,) = capture.read(capture.parts[0])
    assert table.column("input.name").to_pylist() == ["a", "b"]
