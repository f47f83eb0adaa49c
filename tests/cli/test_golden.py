from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
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
    assert "AGREES: 3 rows in 1 comparison," in done.out
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


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """Give 400 rows in two files, one of which holds the one null and the one out of range."""
    folder = tmp_path / "data"
    folder.mkdir()
    xs = [float(number % 50) for number in range(400)]
    ns: list[int | None] = [number % 7 for number in range(400)]
    ns[317] = None
    xs[123] = -99.5
    table = pa.table({"x": xs, "n": pa.array(ns, pa.int64())})
    pq.write_table(table.slice(0, 300), folder / "a.parquet")
    pq.write_table(table.slice(300), folder / "b.parquet")
    return folder


@pytest.mark.slow
def test_a_case_is_sampled_out_of_a_dataset_and_says_what_it_covers(
    parity: Parity, scale: str, dataset: Path
) -> None:
    done = parity("golden", "record", scale, dataset, "--case", "sample", "--sample", "12", "--stages")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0] == f"sampled 12 of 400 rows, seed 0 of {dataset}"
    assert any(line.split() == ["x:", "least", "1", "1"] for line in lines)
    assert any(line.split() == ["n:", "null", "1", "1"] for line in lines)
    assert lines[-2].strip().endswith("strata covered")
    assert "scale/golden/sample: 12 rows, 1 of them expected to fail" in lines[-1]
    shown = parity("golden", "show", scale, "sample").out
    assert "a sample of data" in shown
    assert "sampled: 12 of 400 rows, seed 0" in shown
    for text in ("package.numpy: ", "  device: cpu", "x: least: 1 of 12 rows", "inference: value"):
        assert text in shown, shown
    assert parity("golden", "check", scale).code == 0


def test_a_sample_too_small_says_what_would_do(parity: Parity, scale: str, dataset: Path) -> None:
    done = parity("golden", "record", scale, f"{dataset}/*.parquet", "--case", "sample", "--sample", "2")
    assert "not covered" in done.out
    assert "would cover all" in done.out
    told = parity("golden", "record", scale, dataset, "--case", "b", "--sample", "2", "--seed", "3", "--json")
    found = json.loads(told.out)
    assert (found["rows"], found["sample"]["total"], len(found["sample"]["positions"])) == (2, 400, 2)


@pytest.mark.slow
def test_rows_that_do_not_fit_are_refused_left_out_or_kept(parity: Parity, scale: str, dataset: Path) -> None:
    pq.write_table(pa.table({"x": [1.0, 1e9], "n": [1, 1]}), dataset / "c.parquet")
    sampled = ("golden", "record", scale, dataset, "--sample", "12", "--case")
    done = parity(*sampled, "a")
    assert done.code == 2
    assert "row 1 of c.parquet" in done.err
    assert "--invalid keep" in done.err
    done = parity(*sampled, "skipped", "--invalid", "skip")
    assert (done.code, "left out 1 rows; the first is row 1 of c.parquet" in done.err) == (0, True)
    done = parity(*sampled, "kept", "--invalid", "keep")
    assert any(line.split() == ["x:", "does", "not", "fit", "1", "1"] for line in done.out.splitlines())
    one = ("golden", "record", scale, dataset / "c.parquet", "--case")
    assert parity(*one, "b").code == 2
    assert parity(*one, "whole", "--invalid", "keep").out.endswith(
        "2 rows, 1 of them expected to fail; look at it, then commit it\n"
    )
    assert parity(*one, "part", "--invalid", "skip").out.endswith("1 rows; look at it, then commit it\n")
    checked = parity("golden", "check", scale)
    assert (checked.code, checked.err) == (0, "")


def test_sampling_and_a_limit_exclude_each_other(parity: Parity, scale: str, dataset: Path) -> None:
    done = parity("golden", "record", scale, dataset, "--case", "a", "--sample", "2", "--limit", "2")
    assert done.code == 2
    assert "exclude each other" in done.err


def test_rows_of_json_can_be_sampled(parity: Parity, scale: str, rows_file: Path) -> None:
    done = parity("golden", "record", scale, rows_file, "--case", "a", "--sample", "2")
    assert "sampled 2 of 3 rows, seed 0" in done.out


def test_a_case_in_which_every_row_fails_is_recorded_with_a_warning(
    parity: Parity, scale: str, tmp_path: Path
) -> None:
    path = tmp_path / "bad.json"
    path.write_text('[{"x": 1, "n": null}]', encoding="utf-8")
    done = parity("golden", "record", scale, path, "--case", "bad")
    assert (done.code, "every row failed" in done.err) == (0, True)


def test_a_list_shows_good_cases_beside_the_others(parity: Parity, recorded: str, rows_file: Path) -> None:
    parity("golden", "record", recorded, rows_file, "--case", "second", "--stages")
    Path(recorded, "golden", "first", "expected.parquet").write_bytes(b"")
    done = parity("golden", "list", recorded)
    assert done.code == 3
    assert "second  3 rows, 1 failing" in done.out
    assert "with stages" in done.out
    assert "expected.parquet is not the file that was recorded" in done.err
    listed = parity("golden", "list", recorded, "--json")
    assert (listed.code, list(json.loads(listed.out)["problems"])) == (3, [str(_golden(recorded) / "first")])


@pytest.mark.slow
def test_an_update_says_which_stage_moved_first(parity: Parity, scale: str, rows_file: Path) -> None:
    parity("golden", "record", scale, rows_file, "--case", "first", "--stages")
    write_handler(Path(scale), factor=2.5)
    done = parity("golden", "update", scale, "--yes")
    assert "stages: inference moved first, at value, in 3 of 3 rows, by at most 1.5" in done.out
    assert parity("golden", "update", scale, "--yes").out.endswith("nothing was written\n")


@pytest.mark.slow
def test_pruning_lists_first_deletes_when_told_and_never_in_ci(
    parity: Parity, recorded: str, tmp_path: Path
) -> None:
    assert parity("golden", "prune", recorded).out == "scale: nothing to prune\n"
    Path(recorded, "golden", "leftover").mkdir()
    done = parity("golden", "prune", recorded)
    assert "orphan: " in done.out
    assert done.out.endswith("nothing was deleted; --yes deletes them\n")
    assert parity("golden", "prune", recorded, "--yes", ci=True).code == 3
    assert Path(recorded, "golden", "leftover").is_dir()
    found = json.loads(parity("golden", "prune", recorded, "--yes", "--json").out)["leftovers"]
    assert [(item["kind"], item["deleted"]) for item in found] == [("orphan", True)]
    assert not Path(recorded, "golden", "leftover").exists()
    assert parity("golden", "check", recorded).code == 0


@pytest.mark.slow
def test_a_check_with_goldens_of_a_handler_that_is_gone_is_exit_code_3(
    parity: Parity, tmp_path: Path, rows_file: Path
) -> None:
    write_handler(tmp_path / "handlers" / "scale")
    (tmp_path / "golden").mkdir()
    parity("golden", "record", "handlers/scale", rows_file, "--case", "first")
    shutil.copytree(tmp_path / "golden" / "scale", tmp_path / "golden" / "gone")
    toml = tmp_path / "golden" / "gone" / "first" / "case.toml"
    toml.write_text(toml.read_text().replace('handler = "scale"', 'handler = "gone"'), encoding="utf-8")
    done = parity("golden", "check", "handlers/scale")
    assert "AGREES" in done.out
    assert done.code == 3
    assert "cases of handler gone" in done.err
    assert parity("golden", "check", "handlers/scale", "--case", "first").code == 0


def _golden(handler: str) -> Path:
    return Path(handler).resolve() / "golden"
