"""A name in a folder stands for a whole file, whoever looks and whenever the writer is stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

from parity.durable import is_temporary, write_json, write_text

UNWRITABLE = "half of it \ud800"


def test_a_text_is_written_under_its_name_and_nothing_is_left_beside_it(tmp_path: Path):
    write_text(tmp_path / "ready", "a: é\n")
    assert (tmp_path / "ready").read_bytes() == "a: é\n".encode()
    assert [path.name for path in tmp_path.iterdir()] == ["ready"]


@pytest.mark.parametrize("write", [write_text, lambda path, text: write_json(path, {"text": text})])
def test_a_writer_that_is_stopped_leaves_no_half_file_under_the_name(tmp_path: Path, write):
    with pytest.raises(UnicodeEncodeError):
        write(tmp_path / "ready", UNWRITABLE)
    assert all(is_temporary(path) for path in tmp_path.iterdir())


def test_a_writer_that_is_stopped_leaves_the_earlier_file_as_it_was(tmp_path: Path):
    write_text(tmp_path / "ready", "earlier")
    with pytest.raises(UnicodeEncodeError):
        write_text(tmp_path / "ready", UNWRITABLE)
    assert (tmp_path / "ready").read_text() == "earlier"
