"""Requests whose rows did not fit: recorded as they came, bounded, apart from the rows that have columns."""

from __future__ import annotations

import json
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parity.capture import CaptureSettings, CaptureWriter, Refused, place_of, read_capture, read_refused
from parity.capture.refused import METADATA, MOST_ERRORS, PREFIX, RefusedWriter
from parity.codec.rows import RowDecoder
from parity.errors import DatasetError, RowError
from tests.capture.recording import INPUTS, OUTPUTS, SOURCE, Clock, Heard, origin, scored

WAIT_S = 60.0
BODY = b'{"name": 7}'
ERROR = RowError(0, "invalid", "field 'name': 7 is a number", field="name")


def refused(name: str, *, body: bytes = BODY, most_bytes: float = 1024, rows: int = 1) -> Refused:
    errors = [ERROR.at(row) for row in range(rows)]
    return Refused.of(origin(name), errors, body, most_bytes=most_bytes, content_type="application/json")


def writer_of(folder: Path, settings: CaptureSettings | None = None, heard: Heard | None = None):
    settings = settings or CaptureSettings(folder=str(folder), rotate_s=3600)
    return CaptureWriter(SOURCE, INPUTS, OUTPUTS, settings, place_of(folder), observer=heard)


def recorded(folder: Path) -> list[dict[str, Any]]:
    return [row for table in read_refused(place_of(folder), str(folder)) for row in table.to_pylist()]


def test_a_refused_request_is_recorded_as_it_came_with_what_was_wrong(tmp_path: Path):
    heard = Heard()
    writer = writer_of(tmp_path, heard=heard)
    writer.offer_refused(refused("a", rows=2))
    assert writer.close(WAIT_S)
    (row,) = recorded(tmp_path)
    assert (row["_request_id"], row["_wire"], row["_handler"], row["_version"]) == (
        *("a", "rows", "echo", "1.0.0"),
    )
    assert (row["body"], row["body_bytes"], row["content_type"]) == (BODY, len(BODY), "application/json")
    assert row["refused_rows"] == 2
    assert row["errors"] == [{"row": at, "field": "name", "message": ERROR.message} for at in (0, 1)]
    assert (heard.rows, heard.lost_rows) == (2, 0)
    decoded = RowDecoder(INPUTS).decode([json.loads(row["body"])])
    assert decoded.errors, "the recorded body is refused again"


def test_a_message_with_half_a_character_is_recorded(tmp_path: Path):
    writer = writer_of(tmp_path)
    error = RowError(0, "invalid", "key '\ud800' is unknown", "\udfff")
    writer.offer_refused(Refused.of(origin("a"), [error], BODY, most_bytes=1024))
    assert writer.close(WAIT_S)
    (row,) = recorded(tmp_path)
    assert row["errors"] == [{"row": 0, "field": "\\udfff", "message": "key '\\ud800' is unknown"}]


def test_readers_of_the_answered_rows_do_not_see_refused_ones(tmp_path: Path):
    writer = writer_of(tmp_path)
    writer.offer(scored(["a", "b"]))
    writer.offer_refused(refused("c"))
    assert writer.close(WAIT_S)
    (part,) = read_capture(tmp_path).parts
    assert part.meta.rows == 2
    assert len(pd.read_parquet(tmp_path / "echo")) == 2
    counted: Any = duckdb.sql(f"select count(*) from '{tmp_path}/echo/*.parquet'")
    assert counted.fetchall() == [(2,)]
    assert [row["_request_id"] for row in recorded(tmp_path / "echo")] == ["c"], (
        "in the handler's folder, too"
    )


def test_a_large_body_is_left_out_and_its_length_told(tmp_path: Path):
    writer = writer_of(tmp_path)
    writer.offer_refused(refused("large", body=b"x" * 1025))
    writer.offer_refused(refused("fits", body=b"x" * 1024))
    writer.offer_refused(refused("many", rows=MOST_ERRORS + 50))
    assert writer.close(WAIT_S)
    large, fits, many = recorded(tmp_path)
    assert (large["body"], large["body_bytes"]) == (None, 1025)
    assert len(fits["body"]) == 1024
    assert (many["refused_rows"], len(many["errors"])) == (MOST_ERRORS + 50, MOST_ERRORS)


@pytest.mark.parametrize("hides", [{"drop": ("x",)}, {"hash": ("name",), "key": b"0123456789abcdef"}])
def test_where_a_field_is_hidden_neither_body_nor_message_is_recorded(tmp_path: Path, hides: dict[str, Any]):
    writer = writer_of(tmp_path, CaptureSettings(folder=str(tmp_path), **hides))
    writer.offer_refused(refused("a"))
    assert writer.close(WAIT_S)
    (row,) = recorded(tmp_path)
    assert row["body"] is None
    assert row["errors"] == [{"row": 0, "field": "name", "message": None}]
    assert b"is a number" not in b"".join(path.read_bytes() for path in tmp_path.rglob("*.parquet"))


def test_the_sample_decides_and_failures_may_be_kept_beside_it(tmp_path: Path):
    for keep_errors, expected in ((False, []), (True, [False])):
        folder = tmp_path / str(keep_errors)
        writer = writer_of(folder, CaptureSettings(folder=str(folder), sample=0, keep_errors=keep_errors))
        place_of(folder).prepare()
        writer.offer_refused(refused("a"))
        assert writer.close(WAIT_S)
        assert [row["_sampled"] for row in recorded(folder)] == expected


def test_a_full_queue_loses_refused_rows_and_counts_them(tmp_path: Path):
    heard = Heard()
    settings = CaptureSettings(folder=str(tmp_path), queue_mb=0.01, rotate_s=3600)
    writer = writer_of(tmp_path, settings, heard)
    for number in range(500):
        writer.offer_refused(refused(f"{number}", body=b"x" * 4000, most_bytes=8192, rows=3))
    assert writer.close(WAIT_S)
    assert heard.rows + heard.lost_rows == 1500
    assert heard.rows == 3 * len(recorded(tmp_path))


def test_what_a_client_says_at_length_is_cut_and_whatever_is_held_is_counted(tmp_path: Path):
    long = "\u732b" * 65536
    errors = [RowError(row, "invalid", f"{row}{long}", field=f"{row}{'f' * 5000}") for row in range(8)]
    one = Refused.of(origin("i" * 128), errors, b"b" * 1000, most_bytes=1024, content_type=long)
    assert (one.content_type, {len(error.message) for error in one.errors}) == (long[:200], {1000})
    held = [one.content_type, one.origin.request_id, one.body]
    held += [text for error in one.errors for text in (error.message, error.field)]
    size = sum(map(sys.getsizeof, held))
    assert size <= one.nbytes <= 2 * size
    writer = writer_of(tmp_path)
    writer.offer_refused(one)
    assert writer.close(WAIT_S)
    (row,) = recorded(tmp_path)
    assert row["content_type"] == long[:200]
    assert [error["message"] for error in row["errors"]] == [f"{at}{long}"[:1000] for at in range(8)]


def test_requests_that_wait_hold_no_more_than_they_count():
    tracemalloc.start()
    try:
        kept = [
            Refused.of(
                origin(f"{number}"), [ERROR], b"", most_bytes=1024, content_type="x" * (65536 + number)
            )
            for number in range(500)
        ]
        held_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held_bytes <= sum(one.nbytes for one in kept) < 500 * 2048


def writer_here(folder: Path, clock: Clock, lost: list[int], **more: Any) -> RefusedWriter:
    from parity.capture.privacy import Privacy

    settings = CaptureSettings(folder=str(folder), **more)
    place = place_of(folder)
    return RefusedWriter(SOURCE, Privacy(), settings, place, lose=lost.append, clock=clock)


def test_files_are_written_when_they_are_old_or_large_enough(tmp_path: Path):
    clock, lost = Clock(), list[int]()
    writer = writer_here(tmp_path, clock, lost, rotate_s=60, rotate_mb=0.01)
    writer.add(refused("old"))
    clock.now += 60
    writer.tick()
    assert [row["_request_id"] for row in recorded(tmp_path)] == ["old"]
    for number in range(10):
        writer.add(refused(f"{number}", body=b"x" * 4000, most_bytes=8192))
        writer.tick()
    assert len(recorded(tmp_path)) >= 4
    assert not lost


def test_a_target_that_goes_on_failing_costs_rows_and_no_memory(tmp_path: Path):
    clock, lost = Clock(), list[int]()
    folder = tmp_path / "gone"
    writer = writer_here(folder, clock, lost, rotate_s=1, rotate_mb=0.01)
    for number in range(100):
        writer.add(refused(f"{number}", body=b"x" * 1000))
        clock.now += 10
        writer.tick()
    assert 50 < sum(lost) < 100
    folder.mkdir()
    clock.now += 3600
    writer.tick()
    assert len(recorded(folder)) + sum(lost) == 100


def test_what_cannot_be_made_a_row_of_is_lost_once_and_the_next_are_recorded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    clock, lost = Clock(), list[int]()
    writer = writer_here(tmp_path, clock, lost, rotate_s=1)
    errors = [ERROR.at(2**40)]  # no int32
    writer.add(Refused.of(origin("bad"), errors, BODY, most_bytes=1024))
    clock.now += 1
    writer.tick()
    assert (lost, writer.due_at) == ([1], None)
    assert caplog.text.count("event=capture_failed") == 1
    writer.add(refused("good"))
    assert writer.flush()
    assert [row["_request_id"] for row in recorded(tmp_path)] == ["good"]


@pytest.mark.parametrize("damage", ["bytes", "meta", "later"])
def test_a_damaged_file_is_named(tmp_path: Path, damage: str):
    writer = writer_of(tmp_path)
    writer.offer_refused(refused("a"))
    assert writer.close(WAIT_S)
    (path,) = (tmp_path / "echo" / "_refused").iterdir()
    assert path.name.startswith(PREFIX)
    if damage == "bytes":
        path.write_bytes(path.read_bytes()[:-9])
    else:
        told = {METADATA: json.dumps({"format": 2}).encode()} if damage == "later" else {b"other": b"1"}
        pq.write_table(pa.table({"x": [1]}).replace_schema_metadata(told), path)
    with pytest.raises(DatasetError, match=path.name):
        recorded(tmp_path)
