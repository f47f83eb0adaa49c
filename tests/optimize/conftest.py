from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from tests.models.conftest import cache

__all__ = ["cache"]

HANDLER = """
import time

import torch

from parity import Float32, Handler, Schema, String, Tensor


class Scorer(Handler):
    inputs = Schema(x=Tensor("float32", (8,)))
    outputs = Schema(label=String(), score=Float32())

    def initialize(self, context):
        torch.manual_seed(3)
        self.profile = context.profile
        self.model = context.run_model(torch.nn.Linear(8, 2))

    def preprocess(self, batch):
        return batch["x"].torch(self.context.device)

    def inference(self, inputs):
        if self.profile.backend == "eager" and len(inputs) == 32:
            time.sleep(0.02)  # when it is measured, and hardly when laws are tried
        if self.profile.precision == "float64":
            return self.model(inputs.double()).float() + (1 if len(inputs) == 3 else 0)
        if self.profile.precision == "int8":
            return -self.model(inputs)
        return self.model(inputs)

    def postprocess(self, outputs, batch):
        return {"label": [("no", "yes")[row] for row in outputs.argmax(-1).tolist()], "score": outputs[:, 0]}
"""


@pytest.fixture(scope="session")
def scorer(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Path:
    """A handler that is slow in eager mode, turns its answers round in int8, and counts rows in float64."""
    folder = tmp_path_factory.mktemp("optimize") / "scorer"
    folder.mkdir()
    (folder / "handler.py").write_text(HANDLER, encoding="utf-8")
    (folder / "handler.toml").write_text('name = "scorer"\n\n[profiles.default]\nseed = 1', encoding="utf-8")
    rows = [{"x": [float((row * 7 + place * 3) % 11 - 5) for place in range(8)]} for row in range(10)]
    (folder.parent / "rows.json").write_bytes(orjson.dumps(rows))
    command = [
        sys.executable,
        "-m",
        "parity",
        "golden",
        "record",
        str(folder),
        str(folder.parent / "rows.json"),
    ]
    subprocess.run(
        [*command, "--case", "rows", "--golden", str(folder.parent / "golden")],
        check=True,
        capture_output=True,
        env=_not_in_ci(),
    )
    return folder


def _not_in_ci() -> dict[str, str]:
    """Nothing records a golden where CI is set."""
    import os

    return {key: value for key, value in os.environ.items() if key != "CI"}
