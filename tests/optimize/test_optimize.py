"""Candidates are accepted with proof, and refused with rows and figures; by the command and the library."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from parity.errors import ConfigError, GoldenError
from parity.optimize import Pace, Wanted, candidates, optimize
from parity.optimize.searching import judged
from parity.profile import Profile


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "parity", "optimize", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def settings_of(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "handler.toml").read_text(encoding="utf-8"))["profiles"]


def copied(handler: Path, there: Path) -> Path:
    folder = there / handler.name
    folder.mkdir()
    for name in ("handler.py", "handler.toml"):
        (folder / name).write_bytes((handler / name).read_bytes())
    return folder


def test_what_is_faster_is_written_with_its_proof_and_a_broken_int8_is_refused(
    scorer: Path, tmp_path: Path
) -> None:
    folder = copied(scorer, tmp_path)
    golden = scorer.parent / "golden"
    done = run(
        *(folder, "--golden", golden, "--backends", "eager,export", "--precisions", "float32,int8"),
        *("--target", "throughput", "--seconds", "3", "--write", "fast", "--json"),
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    verdicts = {item["name"]: item["verdict"] for item in found["tried"]}
    assert verdicts == {"eager int8": "diverges", "export": "accepted", "export int8": "diverges"}
    assert found["winner"] == "export"
    broken = found["tried"][0]
    assert broken["flips"] == broken["rows"] == 10
    assert broken["pace"] is None
    assert "case rows: label differs in 10 of 10 rows (0, 1, 2, 3, 4, ...)" in broken["reason"]
    accepted = found["tried"][1]
    assert accepted["worst_ulp"] == 0
    assert accepted["memory_mb"] > 50
    assert accepted["pace"]["low"] >= 1.1  # eager sleeps

    assert settings_of(folder)["fast"] == {"backend": "export", "seed": 1}
    proof = json.loads((folder / "certificates" / "optimized-fast.json").read_text(encoding="utf-8"))
    assert proof["accepted"]["pace"] == accepted["pace"]
    assert {law["verdict"] for law in proof["proof"]["laws"]} <= {"holds", "noise"}
    checked = subprocess.run(
        [sys.executable, "-m", "parity", "golden", "check", folder, "--golden", golden, "--profile", "fast"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert checked.returncode == 0, checked.stdout

    again = run(folder, "--golden", golden, "--backends", "export", "--write", "fast")
    assert again.returncode == 2
    assert "has a profile 'fast' already" in again.stderr


def test_a_wrong_resize_is_refused_with_rows_and_figures_and_not_written(
    resizer: Path, tmp_path: Path
) -> None:
    folder = copied(resizer, tmp_path)
    golden = resizer.parent / "golden"
    done = run(folder, "--golden", golden, "--backends", "onnxruntime", "--write", "fast", "--json")
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    (wrong,) = found["tried"]
    assert (wrong["name"], wrong["verdict"]) == ("onnxruntime", "diverges")
    assert wrong["pace"] is None
    assert wrong["rows"] == 10
    assert wrong["worst_ulp"] > 1000
    assert "light differs in 10 of 10 rows (0, 1, 2, 3, 4, ...)" in wrong["reason"]
    assert found["winner"] is None
    assert settings_of(folder) == {"default": {"seed": 1}}
    assert not (folder / "certificates").exists()

    code = folder / "handler.py"
    code.write_text(
        code.read_text(encoding="utf-8").replace('== "onnxruntime"', '== "none"'), encoding="utf-8"
    )
    options = ("--golden", golden, "--set", 'backend="onnxruntime"')
    checked = subprocess.run(
        [sys.executable, "-m", "parity", "golden", "check", folder, *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert checked.returncode == 0, f"with a right resize this backend keeps the golden: {checked.stdout}"


def test_a_broken_law_refuses_what_keeps_the_goldens(scorer: Path) -> None:
    found = optimize(
        str(scorer),
        Wanted(backends=("eager",), precisions=("float64",)),
        golden_dir=scorer.parent / "golden",
    )
    (tried,) = found.tried
    assert tried.verdict == "diverges"
    assert tried.flips == 0
    assert "law batch-size broken" in tried.reason
    assert found.winner is None
    assert found.exit_code == 1


def test_a_backend_that_is_not_here_is_told_and_nothing_tried_is_no_success(scorer: Path) -> None:
    done = run(scorer, "--golden", scorer.parent / "golden", "--backends", "tensorrt,cuda_graphs")
    assert done.returncode == 5
    assert "tensorrt: it runs on cuda, and the device is cpu" in done.stdout
    assert "no candidate is accepted" in done.stdout


@pytest.mark.parametrize(
    ("pace", "verdict"),
    [
        (Pace(20, 1.5, 1.2, 1.9, 3.0, 2.0, 4.0), "accepted"),
        (Pace(20, 1.5, 1.2, 1.9, 3.0, 2.0, 5.5), "too slow"),
        (Pace(20, 1.0, 0.9, 1.05, 3.0, 3.0, 4.0), "slower"),
        (Pace(20, 1.2, 0.9, 1.5, 3.0, 2.5, 4.0), "unclear"),
        (Pace(1, 9.0, 0.0, float("inf"), 3.0, 2.5, 4.0), "unclear"),
    ],
)
def test_what_is_proved_must_be_clearly_faster_and_below_the_limit(pace: Pace, verdict: str) -> None:
    found, reason = judged(pace, Wanted(goal=1.1, p99_ms=5.0))
    assert found == verdict
    assert bool(reason) == (verdict != "accepted")


def test_without_goldens_there_is_nothing_to_prove_by(scorer: Path, tmp_path: Path) -> None:
    with pytest.raises(GoldenError):
        optimize(str(scorer), Wanted(), golden_dir=tmp_path)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--backends", "onxruntime"),
        ("--backends", ","),
        ("--precisions", "int4"),
        ("--buckets", "0"),
        ("--sla-p99", "soon"),
        ("--target", "memory"),
        ("--seconds", "0"),
    ],
)
def test_wrong_options_are_told_before_anything_is_loaded(option: str, value: str, tmp_path: Path) -> None:
    done = run(tmp_path, option, value)
    assert done.returncode == 2
    assert option in done.stderr


def test_candidates_differ_from_the_base_and_are_those_of_its_device() -> None:
    names = [name for name, _ in candidates(Profile(), Wanted())]
    assert names == ["export", "aot_inductor", "onnxruntime", "openvino"]
    on_gpu = [name for name, _ in candidates(Profile(device="cuda"), Wanted())]
    assert "tensorrt" in on_gpu
    both = candidates(Profile(), Wanted(backends=("eager",), precisions=("float32", "int8"), buckets=(8,)))
    assert both == [
        ("eager bucket 8", ("buckets=[8]",)),
        ("eager int8", ('precision="int8"',)),
        ("eager int8 bucket 8", ('precision="int8"', "buckets=[8]")),
    ]


def test_a_profile_name_is_checked(scorer: Path) -> None:
    from parity.optimize import write_profile
    from parity.optimize.findings import Optimization
    from parity.registry import load_handler

    nothing = Optimization("scorer", "1", Profile(), "latency", 1, 1.1, None, ())
    with pytest.raises(ConfigError, match="no candidate was accepted"):
        write_profile(load_handler(str(scorer)), nothing, "fast")
