"""`parity pack`, and the other commands on what it makes."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Parity


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARITY_CACHE", str(tmp_path / "cache"))


def test_an_archive_runs_as_the_folder_does(parity: Parity, scale: str, rows_file: Path):
    recorded = parity("golden", "record", scale, rows_file, "--case", "first", "--reason", "first")
    assert recorded.code == 0, recorded.err
    done = parity("pack", scale, "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert (told["archive"], told["goldens"]) == ("scale.parity", 1)
    assert parity("run", "scale.parity", rows_file).out == parity("run", scale, rows_file).out
    checked = parity("golden", "check", "scale.parity")
    assert checked.code == 0, checked.err
    again = parity("pack", scale, "--output", "other.parity")
    assert again.code == 0
    assert "1 golden case" in again.out
    assert Path("other.parity").read_bytes() == Path("scale.parity").read_bytes()
    assert (
        json.loads(parity("pack", "scale.parity", "-o", "third.parity", "--json").out)["sha256"]
        == told["sha256"]
    )


def test_bad_names_of_archives_are_refused(parity: Parity, scale: str):
    assert "end it with .parity" in parity("pack", scale, "--output", "scale.zip").err
    assert "no folder" in parity("pack", scale, "--output", "nowhere/scale.parity").err
    Path("broken.parity").write_text("not a zip")
    done = parity("run", "broken.parity", "rows.json")
    assert done.code == 2
    assert "broken.parity is no handler archive, or damaged" in done.err
