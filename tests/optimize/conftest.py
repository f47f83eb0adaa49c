from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.models.conftest import cache
from tests.vision.pictures import noise

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


RESIZER = """
import torch

from parity import Float32, Handler, Schema, String, Tensor, vision


class Resizer(Handler):
    inputs = Schema(photo=Tensor("uint8", (16, 12, 3)))
    outputs = Schema(label=String(), light=Float32())

    def initialize(self, context):
        torch.manual_seed(3)
        self.backend = context.profile.backend
        self.model = context.run_model(torch.nn.Linear(36, 2))

    def preprocess(self, batch):
        photos = vision.Images(list(batch["photo"].torch(self.context.device)))
        if self.backend == "onnxruntime":
            small = vision.resize(photos, (4, 3), interpolation="nearest", antialias=False)
        else:
            small = vision.resize(photos, (4, 3), interpolation="linear", antialias=True)
        return vision.normalize(small, mean=(0.5,) * 3, std=(0.5,) * 3).flatten(1)

    def inference(self, inputs):
        return self.model(inputs)

    def postprocess(self, outputs, batch):
        return {"label": [("no", "yes")[row] for row in outputs.argmax(-1).tolist()], "light": outputs[:, 0]}
"""


@pytest.fixture(scope="session")
def scorer(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Path:
    """A handler that is slow in eager mode, turns its answers round in int8, and counts rows in float64."""
    rows = [{"x": [float((row * 7 + place * 3) % 11 - 5) for place in range(8)]} for row in range(10)]
    return _with_golden(tmp_path_factory.mktemp("optimize") / "scorer", HANDLER, rows)


@pytest.fixture(scope="session")
def resizer(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Path:
    """A handler that makes small pictures of means, and in ONNX Runtime of the nearest pixels instead."""
    rows = [{"photo": noise(row, 16, 12).tolist()} for row in range(10)]
    return _with_golden(tmp_path_factory.mktemp("optimize") / "resizer", RESIZER, rows)


def _with_golden(folder: Path, code: str, rows: list[dict[str, Any]]) -> Path:
    """The handler's folder; the golden case "rows" is in `golden` beside it."""
    folder.mkdir()
    (folder / "handler.py").write_text(code, encoding="utf-8")
    (folder / "handler.toml").write_text(
        f'name = "{folder.name}"\n\n[profiles.default]\nseed = 1', encoding="utf-8"
    )
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
