"""How the command's process ends: as Python ends, though torch is not taken apart."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_BUFFERED = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}

_HANDLER = """
import atexit, pathlib, threading, time
import torch
from parity import Float32, Handler, Schema

HERE = pathlib.Path(__file__).parent

def late():
    time.sleep(0.5)
    (HERE / "thread").write_text("done")

atexit.register(lambda: (HERE / "atexit").write_text("done"))
LOG = open(HERE / "log", "w")
LOG.write("never closed")
print("held back, as nobody flushes it", end="")

class Ends(Handler):
    inputs = Schema(x=Float32())
    outputs = Schema(y=Float32())

    def initialize(self, context):
        threading.Thread(target=late).start()

    def preprocess(self, batch):
        return batch["x"].torch()

    def inference(self, x):
        if bool((x < 0).any()):
            raise ValueError("below zero")
        return x

    def postprocess(self, y, batch):
        return {"y": y}
"""


@pytest.mark.slow
@pytest.mark.parametrize(("x", "code"), [(1.0, 0), (-1.0, 2)])
def test_what_python_promises_of_an_end_is_kept(tmp_path: Path, x: float, code: int) -> None:
    (tmp_path / "ends.py").write_text(_HANDLER)
    (tmp_path / "rows.json").write_text(f'[{{"x": {x}}}]')
    run = [sys.executable, "-m", "parity", "run", "ends.py:Ends", "rows.json"]
    done = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path, env=_BUFFERED, check=False)
    assert done.returncode == code, done.stderr
    assert "held back" in done.stdout + done.stderr
    assert (tmp_path / "thread").read_text() == "done"
    assert (tmp_path / "atexit").read_text() == "done"
    assert (tmp_path / "log").read_text() == "never closed"
    if not code:
        assert '{"y":1.0}' in done.stdout


@pytest.mark.slow
def test_output_that_cannot_be_written_is_no_success(tmp_path: Path) -> None:
    code = "import sys, torch; from parity.cli.ending import end; sys.stdout.write('x'); end(0)"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-c", code], stdout=full, env=_BUFFERED, check=False)
    assert done.returncode == 120


@pytest.mark.slow
def test_an_end_is_no_place_for_the_interpreter_to_take_torch_apart(tmp_path: Path) -> None:
    code = (
        "import torch; from parity.cli.ending import end\n"
        "class Left:\n    def __del__(self): print('taken apart')\n"
        "left = Left(); print('flushed'); end(3)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=_BUFFERED, check=False
    )
    assert (done.returncode, done.stdout) == (3, "flushed\n")


@pytest.mark.slow
def test_what_c_code_printed_is_there(tmp_path: Path) -> None:
    code = (
        "import ctypes, torch; from parity.cli.ending import end; ctypes.CDLL(None).printf(b'from C'); end(0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=_BUFFERED, check=True
    )
    assert done.stdout == "from C"


@pytest.mark.slow
def test_a_profiler_gets_to_write_what_it_saw(tmp_path: Path) -> None:
    (tmp_path / "ends.py").write_text(_HANDLER)
    (tmp_path / "rows.json").write_text('[{"x": 1.0}]')
    run = [sys.executable, "-m", "cProfile", "-o", "seen", "-m", "parity", "run", "ends.py:Ends", "rows.json"]
    subprocess.run(run, capture_output=True, cwd=tmp_path, check=True)
    assert (tmp_path / "seen").stat().st_size > 1000
