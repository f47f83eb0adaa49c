"""`parity replay` on what real servers recorded of real requests, through real runners."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from parity.capture import read_capture
from parity.cli import application
from parity.codec import oip
from parity.codec.rows import RowDecoder
from parity.registry import load_handler
from parity_online.process import ServerProcess
from tests.online.serving import JSON, ask, metric, until
from tests.replay.traffic import incomes, record, write_handler


@pytest.fixture
def parity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str, str]]:
    """Call `parity` in the test's folder, outside CI: the exit code, and what it printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)

    def call(*arguments: str) -> tuple[int, str, str]:
        done = CliRunner().invoke(application.app, list(arguments))
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, done.stdout, done.stderr

    return call


def send(url: str, ref: str, rows: list[dict[str, Any]]) -> None:
    """Half of the rows one by one as JSON, the other half as V2 tensors, three at a time."""
    half = len(rows) // 2
    for row in rows[:half]:
        assert ask(url, "POST", "/predictions/credit", row, JSON)[0] in (200, 400)
    decoder = RowDecoder(load_handler(ref).inputs)
    for start in range(half, len(rows), 3):
        body = oip.encode_request(decoder.decode(rows[start : start + 3]).batch)
        assert ask(url, "POST", "/v2/models/credit/infer", body, JSON)[0] == 200


def serve(ref: str, captured: Path, rows: list[dict[str, Any]], *, kill: bool) -> None:
    arguments = [ref, "--capture", str(captured), "--capture-rotate-s", "0.1", "--gate", "off"]
    with ServerProcess(arguments) as server:
        send(server.url, ref, rows)
        if kill:
            until(lambda: metric(server.url, "parity_captured_rows_total") == len(rows))
            server.signal(signal.SIGKILL)
            server.wait()
        else:
            assert server.stop() == 0


@pytest.mark.slow
def test_two_versions_recorded_by_real_servers_one_of_them_killed(
    tmp_path: Path, parity: Callable[..., tuple[int, str, str]]
):
    captured = tmp_path / "captured"
    old = write_handler(tmp_path / "old" / "credit", rejects="n3")
    serve(old, captured, incomes(30), kill=True)
    new = write_handler(
        tmp_path / "handlers" / "credit", version="1.1.0", weight=2.0, changes={">= 0.5": ">= 0.6"}
    )
    serve(new, captured, incomes(24), kill=False)
    assert len(read_capture(captured).parts) >= 2

    code, out, err = parity("replay", "captured", "--version", "1.1.0", "--html", "drift.html")
    assert code == 0, out + err
    assert "AGREES: 24 of 24 recorded rows compared, 0 drift" in out
    assert "recorded rows through batch" in err
    assert (tmp_path / "drift.html").read_text().startswith("<!doctype html>")

    code, out, _ = parity("replay", "captured", "--json")
    assert code == 1
    report = json.loads(out)
    assert report["rows"] == 54
    versions = {item["name"]: item for item in report["versions"]}
    assert versions["1.1.0"]["failing"] == 0
    assert versions["1.0.0"]["failing"] > 20
    assert versions["1.0.0"]["flips"] > 0
    assert sum(hour["rows"] for hour in report["hours"]) == 54
    assert sum(hour["flips"] for hour in report["hours"]) == versions["1.0.0"]["flips"]
    (label,) = [item for item in report["labels"] if item["column"] == "label"]
    assert label["pairs"] == [["yes", "no", label["flips"]]]
    assert report["failures"]["only_recorded"] == 1, "the old version refused a name"


@pytest.mark.slow
def test_the_online_runner_and_its_wire_forms_can_be_asked(
    tmp_path: Path, parity: Callable[..., tuple[int, str, str]]
):
    ref = write_handler(tmp_path / "handlers" / "credit")
    record(tmp_path / "captured", ref, incomes(20))
    code, out, _ = parity("replay", "captured/credit", "--runner", "online", "--wire", "oip", "-q")
    assert code == 0
    assert "credit 1.0.0 through online (oip)" in out


@pytest.mark.slow
def test_traffic_that_agrees_becomes_a_golden_case(
    tmp_path: Path, parity: Callable[..., tuple[int, str, str]]
):
    ref = write_handler(tmp_path / "handlers" / "credit")
    record(tmp_path / "captured", ref, incomes(30))
    code, out, err = parity("replay", "captured", "-q", "--limit", "12", "--as-golden", "traffic")
    assert code == 0, out + err
    assert "12 rows; look at it, then commit it" in out
    code, out, err = parity("golden", "check", "handlers/credit")
    assert code == 0, out + err
    write_handler(tmp_path / "handlers" / "credit", weight=2.0)
    code, _, err = parity("replay", "captured", "-q", "--as-golden", "other")
    assert (code, "answers have drifted" in err) == (1, True)
    anything = 'kind = "ignore"\nreason = "another model"\n'
    text = "\n".join(f"[tolerance.{name}]\n{anything}" for name in ("rank", "chances"))
    text += '\n[tolerance.score]\nkind = "close"\natol = 0.2'
    (tmp_path / "new-model.toml").write_text(text, encoding="utf-8")
    code, out, err = parity("replay", "captured", "-q", "--tolerance", "new-model.toml")
    assert (code, "0 drift beyond the tolerance" in out) == (0, True), out + err


def test_nothing_to_compare_is_no_success(tmp_path: Path, parity: Callable[..., tuple[int, str, str]]):
    ref = write_handler(tmp_path / "handlers" / "credit")
    record(tmp_path / "captured", ref, incomes(5))
    code, out, _ = parity("replay", "captured", "--since", "2100-01-01")
    assert code == 5
    assert "NOTHING COMPARED" in out
    (tmp_path / "empty").mkdir()
    code, _, err = parity("replay", "empty")
    assert (code, "--capture-rotate-s" in err) == (5, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "no folder 'nowhere'"),
        (["captured", "--since", "noon"], "--since 'noon' is no time"),
        (["captured", "--assume", "name"], "not of the form FIELD=JSON"),
        (["captured", "--assume", "name=Ada"], "is not JSON"),
        (["captured", "--version", "9"], "no rows of version '9'"),
        (["captured", "--runner", "bach"], "did you mean 'batch'"),
        (["captured", "--wire", "json"], "no wire form 'json'"),
        (["captured", "--handler", "handlers/debit"], "did you mean 'credit'"),
        (["captured", "--profile", "fast"], "no profile 'fast'"),
        (["captured", "--sample", "0"], "sample = 0"),
        (["captured", "--tolerance", "loose.toml"], "loose.toml"),
    ],
)
def test_a_wrong_option_is_told(
    tmp_path: Path, parity: Callable[..., tuple[int, str, str]], arguments: list[str], said: str
):
    ref = write_handler(tmp_path / "handlers" / "credit")
    record(tmp_path / "captured", ref, incomes(5))
    code, _, err = parity("replay", *arguments)
    assert code == 2
    assert said in err
