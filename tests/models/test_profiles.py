"""A handler under profiles of other model backends, by its real paths: goldens, laws, batch, a server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from parity.check import run_check
from parity.laws import laws_named

ROOT = Path(__file__).parents[2]
FASHION = str(ROOT / "handlers" / "fashion")
LAWS = {"onnxruntime": ("neighbours", "concurrency", "declared-access"), "openvino": ("declared-access",)}


@pytest.mark.parametrize("backend", ["onnxruntime", "openvino"])
def test_goldens_and_laws_hold_under_another_backend(backend: str) -> None:
    report = run_check(
        FASHION,
        settings=[f"backend={backend}"],
        runners=["batch"],
        laws=LAWS[backend],
    )
    assert report.exit_code == 0, [(item.law, item.detail) for item in report.laws]
    assert {item.law for item in report.laws} == {law.name for law in laws_named(LAWS[backend])}
    assert all(item.pairs for item in report.laws)
    assert {entry.verdict for entry in report.entries} == {"within"}  # another library has other last bits


def test_a_profile_is_compared_with_that_of_another_backend(tmp_path: Path) -> None:
    folder = tmp_path / "fashion"
    folder.mkdir()
    for file in (ROOT / "handlers" / "fashion").rglob("*"):
        if file.is_file() and "__pycache__" not in file.parts:
            target = folder / file.relative_to(ROOT / "handlers" / "fashion")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.read_bytes())
    with (folder / "handler.toml").open("a", encoding="utf-8") as toml:
        toml.write('\n[profiles.fast]\nbackend = "onnxruntime"\n')
    report = run_check(
        str(folder),
        golden=ROOT / "golden" / "fashion",
        runners=["batch"],
        laws=["device"],
        profiles=["fast"],
    )
    (law,) = report.laws
    assert law.verdict == "noise"
    assert law.pairs > 0


BRANCHES = """
import torch

from parity import Float32, Handler, Schema, Tensor


class Net(torch.nn.Module):
    def forward(self, rows):
        return rows[:, 0] if rows.sum() > 0 else rows[:, 1]


class Dyn(Handler):
    inputs = Schema(x=Tensor("float32", (4,)))
    outputs = Schema(y=Float32())

    def initialize(self, context):
        self.model = context.run_model(Net())

    def preprocess(self, batch):
        return batch["x"].torch()

    def inference(self, inputs):
        return self.model(inputs)

    def postprocess(self, outputs, batch):
        return {"y": outputs}
"""


def test_a_model_that_cannot_be_compiled_ends_a_job_and_keeps_a_server_from_starting(tmp_path: Path) -> None:
    folder = tmp_path / "dyn"
    folder.mkdir()
    (folder / "handler.py").write_text(BRANCHES, encoding="utf-8")
    (folder / "handler.toml").write_text('[profiles.fast]\nbackend = "onnxruntime"\n', encoding="utf-8")
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"x": [1, 2, 3, 4]}\n' * 3, encoding="utf-8")
    asked = {
        "batch": ("batch", folder, rows, tmp_path / "out", "--profile", "fast"),
        "serve": ("serve", folder, "--profile", "fast", "--port", "0"),
    }
    for name, code in (("batch", 2), ("serve", 6)):
        command = [sys.executable, "-m", "parity", *map(str, asked[name])]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=110)
        assert done.returncode == code, done.stderr
        last = done.stderr.splitlines()[-1]
        assert last.startswith("error: ")
        assert "Net cannot be exported; use backend eager" in last
        assert len(last) < 800
    assert not (tmp_path / "out" / "_SUCCESS").exists()
    assert list((tmp_path / "out").glob("*.parquet")) == []
