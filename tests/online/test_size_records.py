"""Choices of `max_batch = "auto"` that are kept: on real servers that start again."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from parity.cli import app
from parity.engine import Engine
from parity.errors import ConfigError
from parity.handler import LoadedHandler
from parity.memory import total_bytes
from parity.registry import load_handler
from parity.sizing import Sizing, Timing
from parity_online.process import ServerProcess
from parity_online.settings import ModelSettings
from parity_online.size_records import record, recorded
from tests.online.serving import HANDLERS, ask

AUTO = ["--max-batch", "auto"]
RECORD = [*AUTO, "--record-max-batch"]


@pytest.fixture
def tray(tmp_path: Path) -> Path:
    """A tray handler that is quick to measure."""
    folder = tmp_path / "tray"
    shutil.copytree(HANDLERS / "tray", folder, ignore=shutil.ignore_patterns("__pycache__"))
    source = (folder / "handler.py").read_text()
    (folder / "handler.py").write_text(source.replace("TRAY_S = 0.2", "TRAY_S = 0.01"))
    return folder


def started(ref: Path, *arguments: str) -> tuple[int, str, str]:
    """A server's largest batch, what its configuration says of it, and its log, after an answer."""
    with ServerProcess([str(ref), *arguments]) as server:
        config = ask(server.url, "GET", "/v2/models/tray/config")[2]
        (model,) = ask(server.url, "GET", "/status.json")[2]["models"]
        assert ask(server.url, "POST", "/predictions/tray", {"x": 3})[2]["y"] == 7
        log = server.log()
    told = config["parameters"]["max_batch"]["string_value"]
    assert model["sizing"]["reason"] in told
    assert config["max_batch_size"] == model["max_batch"] == model["sizing"]["max_batch"]
    return config["max_batch_size"], told, log


def record_of(folder: Path) -> tuple[Path, dict[str, Any]]:
    (path,) = (folder / "certificates").iterdir()
    return path, json.loads(path.read_text())


def put(path: Path, content: dict[str, Any], rows: object) -> None:
    """Make the record say another size, which no measurement would give."""
    content["sizing"]["max_batch"] = rows
    path.write_text(json.dumps(content))


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], ["--replicas", "2"]])
def test_the_next_start_takes_what_was_recorded_and_measures_nothing(tray: Path, more: list[str]):
    rows, told, log = started(tray, *RECORD, *more)
    assert "as recorded" not in told
    path, content = record_of(tray)
    assert "event=size_recorded model=tray file=" in log
    assert content["sizing"]["max_batch"] == rows
    assert [entry["rows"] for entry in content["sizing"]["measured"]][:3] == [1, 2, 4]
    put(path, content, 5)
    before = path.read_bytes()
    for arguments in (AUTO, RECORD):
        rows, told, log = started(tray, *arguments, *more)
        assert rows == 5
        assert told.startswith(f"auto: 5 rows, as recorded on {content['created']}: ")
        assert "event=sized model=tray version=1 max_batch=5 how=" in log
        assert "event=size_" not in log
    assert path.read_bytes() == before


@pytest.mark.slow
def test_without_being_told_to_nothing_is_written(tray: Path):
    _, told, log = started(tray, *AUTO)
    assert "as recorded" not in told
    assert "event=size_" not in log
    assert not (tray / "certificates").exists()


@pytest.mark.slow
def test_a_changed_handler_is_measured_anew_and_recorded_over(tray: Path):
    started(tray, *RECORD)
    path, content = record_of(tray)
    put(path, content, 5)
    with (tray / "handler.py").open("a") as file:
        file.write("\n# changed\n")
    rows, told, log = started(tray, *RECORD)
    assert "as recorded" not in told
    assert f"event=size_record_stale model=tray reason=\"{path}: the handler's code changed; sizes are" in log
    assert record_of(tray)[0] == path
    assert record_of(tray)[1]["sizing"]["max_batch"] == rows
    assert started(tray, *AUTO)[1].startswith(f"auto: {rows} rows, as recorded on ")


@pytest.mark.slow
def test_other_settings_are_measured_anew_and_recorded_beside(tray: Path):
    started(tray, *RECORD)
    path, content = record_of(tray)
    put(path, content, 5)
    for other in (["--set", "buckets=[4, 8]"], ["--slo-ms", "500"], ["--queue-rows", "64"]):
        assert "as recorded" not in started(tray, *RECORD, *other)[1]
    assert len(list((tray / "certificates").iterdir())) == 4
    assert started(tray, *AUTO)[0] == 5


@pytest.mark.slow
def test_a_damaged_record_is_told_and_measured_anew(tray: Path):
    started(tray, *RECORD)
    path, content = record_of(tray)
    path.write_text(path.read_text()[:100])
    rows, told, log = started(tray, *RECORD)
    assert "as recorded" not in told
    assert f'event=size_record_damaged model=tray reason="{path}: JSONDecodeError: ' in log
    assert record_of(tray) == (path, {**content, "sizing": record_of(tray)[1]["sizing"]})
    assert started(tray, *AUTO)[0] == rows


def test_whatever_a_record_holds_it_is_taken_or_told(tray: Path, caplog: pytest.LogCaptureFixture):
    settings = ModelSettings(max_batch="auto")
    sizing = Sizing(8, (Timing(8, 0.01),), "no larger size was tried than 8")
    with Engine(load_handler(tray)) as engine:
        record(engine, settings, sizing)
        path, content = record_of(tray)
        assert recorded(engine, settings) == replace(
            sizing, reason=f"as recorded on {content['created']}: {sizing.reason}"
        )
        found = content["sizing"]
        for damaged, why in (
            (b"\xff", "UnicodeDecodeError"),
            ([], "ValueError: it holds no JSON object"),
            ({**content, "format": "parity-max-batch/0"}, "its format is 'parity-max-batch/0'"),
            ({**content, "sizing": {**found, "max_batch": 4000}}, "max_batch is 4000, expected 1 to 1024"),
            ({**content, "sizing": {**found, "max_batch": True}}, "max_batch is True, expected 1 to 1024"),
            ({**content, "sizing": {**found, "measured": [3]}}, "TypeError"),
            ({**content, "sizing": {**found, "measured": [{"rows": "x", "seconds": 1}]}}, "ValueError"),
            ({**content, "sizing": None}, "TypeError"),
            ({"format": content["format"]}, "KeyError"),
            ({**content, "digests": 3}, "TypeError"),
            ({**content, "handler": {"name": [1], "class": None}}, "name: was [1], is tray"),
            ({**content, "environment": {}}, "cores: was absent, is "),
        ):
            path.write_bytes(damaged if isinstance(damaged, bytes) else json.dumps(damaged).encode())
            caplog.clear()
            assert recorded(engine, settings) is None
            assert why in caplog.text
    with Engine(LoadedHandler.of(load_handler(tray).cls)) as engine:
        caplog.clear()
        record(engine, settings, sizing)
        assert "the handler has no folder to keep it in" in caplog.text
        assert recorded(engine, settings) is None


@pytest.mark.slow
def test_a_folder_that_takes_no_record_is_told_and_the_server_serves(tray: Path):
    (tray / "certificates").write_text("a file where the folder would be")
    _, _, log = started(tray, *RECORD)
    assert "event=size_not_recorded model=tray reason=" in log
    assert "the next start measures again" in log


@pytest.mark.slow
def test_an_archive_brings_its_record_and_keeps_none(tray: Path, tmp_path: Path):
    archive = tmp_path / "tray.parity"
    app(["pack", str(tray), "-o", str(archive)], standalone_mode=False)
    _, _, log = started(archive, *RECORD)
    assert "event=size_not_recorded" in log
    assert "the handler is an archive" in log
    started(tray, *RECORD)
    put(*record_of(tray), 5)
    app(["pack", str(tray), "-o", str(archive)], standalone_mode=False)
    assert started(archive, *AUTO)[0] == 5


def test_a_fixed_size_has_nothing_to_record():
    with pytest.raises(ConfigError, match="max_batch = 32 and record_max_batch: nothing is measured"):
        ModelSettings(record_max_batch=True)
    with pytest.raises(ConfigError, match="record_max_batch = 'yes' is not true or false"):
        ModelSettings.of({"max_batch": "auto", "record_max_batch": "yes"}, {})
    table = {"max_batch": "auto", "record_max_batch": True}
    assert ModelSettings.of(table, {"max_batch": 16}).max_batch == 16
    assert ModelSettings.of(table, {"max_batch": "auto"}).record_max_batch
    with pytest.raises(ConfigError, match="max_batch = 16 and record_max_batch: nothing is measured"):
        ModelSettings.of(table, {"max_batch": 16, "record_max_batch": True})
    assert not ModelSettings(max_batch="auto", record_max_batch=True).sized(8).record_max_batch


def test_all_memory_is_told_by_the_system_or_not_at_all(tmp_path: Path):
    (tmp_path / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable: 4000 kB\n")
    assert total_bytes(proc=tmp_path, cgroup=tmp_path) == 9000 * 1024
    (tmp_path / "memory.max").write_text("3000000\n")
    assert total_bytes(proc=tmp_path, cgroup=tmp_path) == 3_000_000
    assert total_bytes(proc=tmp_path / "none", cgroup=tmp_path / "none") is None
