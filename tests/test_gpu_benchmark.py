"""benchmarks/gpu/run.sh: without a GPU it says so; what it compares is tried on the host instead."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from benchmarks.gpu import __main__ as command
from benchmarks.gpu import models, operations, pipelines
from benchmarks.gpu.table import Line, rendered
from parity.models import why_off
from parity.profile import Profile
from parity.registry import load_handler
from parity.vision import Images

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
def test_without_a_gpu_it_says_so_and_compares_nothing(tmp_path: Path) -> None:
    out = tmp_path / "gpu.json"
    done = subprocess.run(
        [str(ROOT / "benchmarks" / "gpu" / "run.sh"), "--out", str(out)],
        env=os.environ | {"PYTHON": sys.executable},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 5, done.stderr
    assert "no CUDA device" in done.stdout
    assert "nothing was compared" in done.stdout
    assert not out.exists()


def test_an_operation_that_differs_misses_its_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = iter((0.0, 0.0, 5.0))

    def drifting(pictures: Images) -> Images:
        return Images(pictures.stack()[:1, :4, :4].to(torch.float32) + next(turns, 5.0))

    monkeypatch.setattr(operations, "OPERATIONS", {"sound": (0.0, lambda x: x), "drifting": (0.1, drifting)})
    monkeypatch.setattr(operations, "milliseconds", lambda call, device: 1.0)
    lines = [line for line in operations.compared("cpu") if line.ok is not None]
    assert [(line.what, line.ok, line.difference) for line in lines] == [
        ("sound, torch", True, 0.0),
        ("sound, as used", True, 0.0),
        ("drifting, torch", True, 0.0),
        ("drifting, as used", False, 5.0),
    ]
    text = rendered(lines).splitlines()
    assert text[4].startswith("MISSED")
    assert "levels of 255, bar 0.1" in text[4]


@pytest.mark.slow
def test_models_are_compared_and_those_that_are_off_say_why() -> None:
    found = {line.what: line for line in models.compared("cpu", ("eager", "export", "cuda_graphs"))}
    assert why_off(Profile(device="cuda", backend="onnxruntime")) == "it runs on cpu, and the device is cuda"
    assert [found[name].ok for name in ("eager", "export", "cuda_graphs")] == [True, True, None]
    assert found["cuda_graphs"].note == "off: it runs on cuda, and the device is cpu"


@pytest.mark.slow
def test_the_pipeline_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipelines, "FILES", 2)
    monkeypatch.setattr(pipelines, "ROUNDS", 1)
    (line,) = pipelines.compared("cpu")
    assert line.ok
    assert line.difference == 0.0


def test_the_handlers_are_checked_under_both_profiles(tmp_path: Path) -> None:
    for name in command.HANDLERS:
        loaded = load_handler(str(command.with_profiles(name, tmp_path, "cuda:0")))
        assert (loaded.profile("host").device, loaded.profile("device").device) == ("cpu", "cuda:0")
        assert (ROOT / "golden" / name).is_dir()


@pytest.mark.slow
def test_a_handler_is_checked_by_the_real_command() -> None:
    first = next(iter(command.checked("cpu")))
    assert (first.part, first.ok) == ("handlers", True), first


def test_a_handler_without_its_weights_is_not_checked_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    checks: list[list[str]] = []
    monkeypatch.setattr(command, "_run", lambda ran, limit_s: checks.append(ran) or (0, "exit code 0"))
    monkeypatch.setattr(command.importlib.util, "find_spec", lambda package: None)
    found = {line.what: line for line in command.checked("cuda:0")}
    assert len(found) == len(command.HANDLERS) == len(checks) + 1
    without = found["check photo_label, cpu and cuda:0"]
    assert (without.ok, without.note) == (
        None,
        "off: its weights are not installed: pip install 'parity[weights]'",
    )
    assert all(line.ok for line in found.values() if line is not without)


def test_the_weights_of_every_handler_that_has_some_are_looked_for() -> None:
    for name in command.HANDLERS:
        text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "handlers" / name).glob("*.py"))
        assert ("parity[weights]" in text) == (name in command.WEIGHTS), name
        assert command.WEIGHTS.get(name, "") in text


def test_what_is_waited_for_is_less_than_ten_minutes() -> None:
    assert command.TESTS_S + len(command.HANDLERS) * command.CHECK_S <= 510


@pytest.mark.slow
def test_the_whole_command_writes_its_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [Line("vision", "flip", True, 0.0, 1.0, 0.1, "levels"), Line("models", "export", False, 2.0)]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(command, "_all", lambda device: iter(lines))
    monkeypatch.setattr(command.numerics, "fingerprint", lambda profile: {"gpu.name": "a GPU"})
    out = tmp_path / "out" / "gpu.json"
    assert command.main(["--out", str(out)]) == 1
    assert "2 lines, 1 missed, on a GPU" in capsys.readouterr().out
    written = json.loads(out.read_text(encoding="utf-8"))
    assert [line["ok"] for line in written["lines"]] == [True, False]
    assert written["environment"]["gpu.name"] == "a GPU"
