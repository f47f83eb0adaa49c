from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Parity
from tests.test_golden import write_handler


@pytest.fixture
def recorded(parity: Parity, scale: str, rows_file: Path) -> str:
    done = parity("golden", "record", scale, rows_file, "--case", "first", "--reason", "for the tests")
    assert done.code == 0, done.err
    said = "scale/golden/first: 3 rows, 1 of them expected to fail; look at it, then commit it\n"
    assert done.out.endswith(said)
    return scale


def snapshot(folder: Path) -> list[tuple[str, bytes]]:
    files = (path for path in folder.rglob("*") if path.is_file() and "golden" in path.parts)
    return sorted((str(path), path.read_bytes()) for path in files)


def test_a_recorded_case_checks(parity: Parity, recorded: str) -> None:
    done = parity("golden", "check", recorded)
    assert done.code == 0
    assert "AGREES: 3 rows in 1 comparisons" in done.out
    report = json.loads(parity("golden", "check", recorded, "--json").out)
    assert (report["verdict"], report["exit_code"]) == ("agrees", 0)


def test_a_divergence_is_exit_code_1_and_shows_where(parity: Parity, recorded: str) -> None:
    write_handler(Path(recorded), factor=2.5)
    done = parity("golden", "check", recorded)
    assert done.code == 1
    assert "expected 3.0, obtained 3.5" in done.out
    assert "source changed" in done.out


def test_a_missing_golden_is_exit_code_3(parity: Parity, scale: str) -> None:
    done = parity("golden", "check", scale)
    assert done.code == 3
    assert "parity golden record scale ROWS --case NAME" in done.err


def test_a_second_recording_is_refused(parity: Parity, recorded: str, rows_file: Path) -> None:
    done = parity("golden", "record", recorded, rows_file, "--case", "first")
    assert done.code == 3
    assert "parity golden update" in done.err


@pytest.mark.parametrize(
    "arguments",
    [("record", "scale", "rows.json", "--case", "second"), ("update", "scale", "--yes"), ("update", "scale")],
)
def test_nothing_is_written_in_ci(
    parity: Parity, recorded: str, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    write_handler(Path(recorded), factor=2.5)
    before = snapshot(tmp_path)
    done = parity("golden", *arguments, ci=True)
    assert done.code == 3
    assert "in CI (CI=true) nothing does" in done.err
    assert snapshot(tmp_path) == before
    assert parity("golden", "check", recorded, ci=True).code == 1


def test_an_update_shows_what_moved_and_without_a_person_needs_yes(
    parity: Parity, recorded: str, tmp_path: Path
) -> None:
    write_handler(Path(recorded), factor=2.5)
    before = snapshot(tmp_path)
    done = parity("golden", "update", recorded)
    assert done.code == 2
    assert "row 0: expected 3.0, obtained 3.5" in done.out
    assert "--yes accepts" in done.err
    assert snapshot(tmp_path) == before
    done = parity("golden", "update", recorded, "--yes", "--reason", "a better factor")
    assert (done.code, done.out.splitlines()[-1]) == (0, "updated 1 of 1 cases")
    assert parity("golden", "check", recorded).code == 0
    assert "a better factor" in parity("golden", "list", recorded).out


def test_an_update_of_what_did_not_move_writes_nothing(parity: Parity, recorded: str, tmp_path: Path) -> None:
    before = snapshot(tmp_path)
    done = parity("golden", "update", recorded, "--yes")
    assert (done.code, done.out) == (0, "case first: no answer moved\nnothing was written\n")
    assert snapshot(tmp_path) == before


def test_an_update_as_json_tells_what_moved(parity: Parity, recorded: str) -> None:
    write_handler(Path(recorded), factor=2.5)
    found = json.loads(parity("golden", "update", recorded, "--yes", "--json").out)
    assert [(case["case"], case["moved"], case["accepted"]) for case in found["cases"]] == [
        ("first", True, True)
    ]


def test_cases_are_listed_and_shown(parity: Parity, recorded: str) -> None:
    done = parity("golden", "list", recorded)
    assert "scale: 1 golden case in" in done.out
    assert "first  3 rows, 1 failing  version 1" in done.out
    done = parity("golden", "show", recorded, "first", "--rows", "2")
    assert 'row 1: {"x": 0.1, "n": 2}\n    -> {"y": 2.2, "_error": null}' in done.out
    found = json.loads(parity("golden", "show", recorded, "first", "--json").out)
    assert (found["case"], found["rows"], len(found["first_rows"])) == ("first", 3, 3)
    assert (
        json.loads(parity("golden", "list", recorded, "--json").out)["cases"][0]["reason"] == "for the tests"
    )


def test_an_orphan_is_exit_code_3(parity: Parity, recorded: str) -> None:
    Path(recorded, "golden", "leftover").mkdir()
    done = parity("golden", "list", recorded)
    assert done.code == 3
    assert "orphaned" in done.err
