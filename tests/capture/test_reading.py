"""A folder that is no capture, or not as it was written, is told from one that is."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parity.capture import place_of, read_capture
from parity.errors import ConfigError, DatasetError, NothingComparedError
from tests.capture.recording import Clock, part_writer, scored


@pytest.fixture
def part(tmp_path: Path) -> Path:
    writer = part_writer(tmp_path, clock=Clock())
    writer.add(scored(["a", "b"]))
    writer.flush()
    (path,) = tmp_path.rglob("*.parquet")
    return path


def rewrite(part: Path, change: dict[str, Any] | bytes | None) -> None:
    """The part again, its metadata changed, or replaced, or removed."""
    table = pq.read_table(part)
    said = (pq.ParquetFile(part).metadata.metadata or {})[b"parity.capture"]
    text = json.dumps({**json.loads(said), **change}).encode() if isinstance(change, dict) else change
    metadata = {"parity.capture": text} if text is not None else {}
    pq.write_table(table.replace_schema_metadata(metadata), part)


def test_a_handlers_own_folder_is_a_capture_too(part: Path):
    assert [item.name for item in read_capture(part.parent).parts] == [part.name]


def test_parts_can_be_chosen_by_what_they_say(part: Path):
    assert read_capture(part.parent, lambda meta: meta.source.version == "9").parts == ()


def test_a_folder_that_is_not_there_and_one_without_parts(tmp_path: Path):
    with pytest.raises(DatasetError, match=r"no folder .*nowhere"):
        read_capture(tmp_path / "nowhere")
    with pytest.raises(NothingComparedError, match="--capture-rotate-s"):
        read_capture(tmp_path)


def test_a_part_that_is_cut_short_is_named(part: Path):
    part.write_bytes(part.read_bytes()[:-100])
    with pytest.raises(DatasetError, match=rf"{part.name} cannot be read: .*damaged afterwards"):
        read_capture(part.parent)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (None, "no part of a capture"),
        (b"not json", "damaged"),
        (b"[]", "damaged"),
        (b"{}", "damaged"),
        ({"format": 2}, "capture format 2; this parity reads 1 to 1"),
        ({"format": "1"}, "capture format '1'"),
        ({"source": 3}, "damaged"),
        ({"source": {}}, "damaged"),
        ({"schema": "AAAA"}, "damaged"),
        ({"schema": base64.b64encode(b"x" * 100).decode()}, "damaged"),
        ({"rows": 3}, "has 2 rows, its metadata says 3"),
        ({"dropped": 3}, "damaged"),
    ],
    ids=str,
)
def test_hostile_metadata_is_an_error_with_the_parts_name(
    part: Path, change: dict[str, Any] | bytes | None, said: str
):
    rewrite(part, change)
    with pytest.raises(DatasetError, match=said) as caught:
        read_capture(part.parent)
    assert part.name in str(caught.value)


def test_columns_other_than_the_metadata_names_are_refused(part: Path):
    schema = pa.schema([pa.field("x", pa.int64())])
    rewrite(part, {"schema": base64.b64encode(schema.serialize().to_pybytes()).decode()})
    capture = read_capture(part.parent)
    with pytest.raises(DatasetError, match="columns are not those"):
        list(capture.read(capture.parts[0]))


def test_what_later_versions_add_is_passed_by(part: Path):
    rewrite(part, {"weather": "fine"})
    assert read_capture(part.parent).handlers == ("echo",)


def test_a_url_of_an_unknown_kind_is_refused():
    pytest.importorskip("fsspec")
    with pytest.raises(ConfigError, match="nosuch"):
        place_of("nosuch://bucket/x")


def test_a_folder_that_cannot_be_made_is_told_at_start(tmp_path: Path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match="cannot be made"):
        place_of(tmp_path / "file" / "captured").prepare()
