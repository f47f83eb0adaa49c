"""Handlers that print, and stages that take long: standard output stays the command's own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parity.cli import options
from tests.cli.conftest import Parity

_PRINTING = """
import ctypes
import os
import subprocess
import sys

import numpy as np

from parity import Batch, Context, Float64, Handler, Schema

print("imported")


class Talkative(Handler):
    inputs = Schema(x=Float64())
    outputs = Schema(y=Float64())

    def initialize(self, context: Context) -> None:
        print("loading")
        subprocess.run(["echo", "a process of mine"], check=True)
        ctypes.CDLL(None).puts(b"said by C, which holds it back")

    def preprocess(self, batch: Batch) -> np.ndarray:
        print("preprocessing", batch.num_rows)
        sys.stdout.write("written\\n")
        sys.__stdout__.write("written where Python began\\n")
        os.write(1, b"written to descriptor 1\\n")
        return batch["x"].numpy()

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return inputs * 2

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        print("done")
        return {"y": outputs}
"""

_ROWS = '[{"x": 1.5}, {"x": 2.5}]'


@pytest.mark.slow
def test_what_a_handler_prints_is_not_among_the_results(tmp_path: Path) -> None:
    (tmp_path / "handler.py").write_text(_PRINTING, encoding="utf-8")
    (tmp_path / "rows.json").write_text(_ROWS, encoding="utf-8")

    def results(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "parity", *arguments],
            cwd=tmp_path,
            env={name: value for name, value in os.environ.items() if name != "CI"},
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert {"loading", "a process of mine", "said by C, which holds it back"} <= {
            *done.stderr.splitlines()
        }
        assert {"written where Python began", "written to descriptor 1"} <= {*done.stderr.splitlines()}
        return done.stdout

    ref = "handler.py:Talkative"
    lines = results("run", ref, "rows.json").splitlines()
    assert [json.loads(line) for line in lines] == [{"y": 3.0}, {"y": 5.0}]
    assert json.loads(results("run", ref, "rows.json", "--json"))
    case = ("--case", "small")
    assert json.loads(results("golden", "record", ref, "rows.json", *case, "--reason", "first", "--json"))
    assert json.loads(results("golden", "check", ref, "--json"))["verdict"] == "agrees"
    assert json.loads(results("check", ref, "--law", "repeatable", "--json"))["verdict"] == "agrees"
    pq.write_table(pa.table({"x": [1.5, 2.5]}), tmp_path / "rows.parquet")
    assert json.loads(results("batch", ref, "rows.parquet", "out", "--json"))["rows"] == 2


@pytest.mark.slow
def test_a_stage_that_takes_long_is_told_while_it_lasts(tmp_path: Path) -> None:
    (tmp_path / "handler.py").write_text(
        _PRINTING.replace("return inputs * 2", "import time; time.sleep(600)"), encoding="utf-8"
    )
    (tmp_path / "rows.json").write_text(_ROWS, encoding="utf-8")
    soon = "from parity.cli import options; options.SLOW_S = 0.3; from parity.cli import app; app()"
    with subprocess.Popen(
        [sys.executable, "-c", soon, "run", "handler.py:Talkative", "rows.json"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        told = next(line for line in process.stderr if line.startswith("…"))
        for _ in range(60):  # one that another thread takes does not wake the stage
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=1)
                break
    assert re.search(r"still in inference of \S+ with 2 rows, for \d+ s; Ctrl-C ends it", told)
    assert process.returncode == 130


def test_results_go_where_the_caller_reads_them(parity: Parity) -> None:
    assert json.loads(parity("doctor", "--json").out)
    assert options.SLOW_S > 1
