from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Parity
from tests.test_golden import write_handler


@pytest.fixture
def recorded(parity: Parity, scale: str, rows_file: Path) -> str:
    assert parity("golden", "record", scale, rows_file, "--case", "first").code == 0
    return scale


@pytest.mark.slow
def test_a_check_through_a_real_runner_agrees_and_writes_its_reports(
    parity: Parity, recorded: str, tmp_path: Path
) -> None:
    done = parity("check", recorded, "--runner", "batch", "--law", "order", "--html", "report.html")
    assert done.code == 0, done.out + done.err
    assert "AGREES: 6 rows in 2 comparisons" in done.out
    assert "… 3 rows through batch: parquet" in done.err
    assert (tmp_path / "report.html").read_text().startswith("<!")


@pytest.mark.slow
def test_a_divergence_through_a_real_runner_is_exit_code_1(parity: Parity, recorded: str) -> None:
    write_handler(Path(recorded), factor=2.5)
    done = parity("check", recorded, "--runner", "batch", "--no-laws", "--json")
    assert done.code == 1
    report = json.loads(done.out)
    assert report["verdict"] == "diverges"
    assert report["entries"][0]["comparison"]["failing_rows"] == [0, 1]
    assert done.err == ""


@pytest.mark.slow
def test_junit_and_github_get_theirs(
    parity: Parity, recorded: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_handler(Path(recorded), factor=2.5)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    options = ("--runner", "batch", "--no-laws", "--junit", "junit.xml", "--github")
    done = parity("check", recorded, *options)
    assert done.code == 1
    title = "title=engine%2C batch divergent on case first"
    assert f"::error file=scale/handler.py,{title}::" in done.out
    assert (tmp_path / "summary.md").read_text().startswith("## ❌ scale")
    assert (tmp_path / "junit.xml").read_text().startswith("<?xml")
    told = parity("check", recorded, *options, "--json")
    assert json.loads(told.out)["exit_code"] == 1
    assert told.err.startswith("::error ")


def test_a_handler_without_goldens_is_exit_code_3(parity: Parity, scale: str) -> None:
    assert parity("check", scale).code == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--runner", "bach"), "no runner 'bach' is installed; did you mean 'batch'"),
        (("--law", "orders"), "no law 'orders'; did you mean 'order'"),
        (("--case", "frist"), "no golden case 'frist'"),
        (("--law", "order", "--no-laws"), "exclude each other"),
        (("--html", "nowhere/report.html"), "does not exist"),
        (("--junit", "nowhere/junit.xml"), "does not exist"),
    ],
)
def test_wrong_options_are_told_before_anything_runs(
    parity: Parity, recorded: str, options: tuple[str, ...], message: str
) -> None:
    done = parity("check", recorded, *options)
    assert done.code in (2, 3)
    assert message in " ".join(done.err.replace("│", " ").split())


def test_profiles_without_the_law_that_compares_them_are_refused(parity: Parity) -> None:
    for arguments in (["--no-laws"], ["--law", "order"]):
        done = parity("check", "handlers/none", "--profiles", "fast", *arguments)
        assert done.code == 2
        assert "--law device" in " ".join(done.err.replace("│", " ").split())
