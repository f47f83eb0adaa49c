"""A replica as an engine: what its engine raises reaches who asked, and nobody waits for ever."""

import shutil
from pathlib import Path
from typing import Any

import psutil
import pytest

from parity import load_handler
from parity.codec.rows import RowDecoder
from parity.errors import FingerprintError
from parity_online.problems import as_problem
from parity_online.remote import RemoteEngine
from tests.online.serving import HANDLERS

pytestmark = pytest.mark.slow

HANDLER = """
import asyncio
from parity import Handler, Int64, Schema

class Abrupt(Handler):
    inputs = Schema(x=Int64())
    outputs = Schema(y=Int64())

    def preprocess(self, batch):
        return batch["x"].numpy()

    def inference(self, x):
        if x[0] == 1:
            raise KeyboardInterrupt
        if x[0] == 2:
            raise asyncio.CancelledError
        return x

    def postprocess(self, y, batch):
        return {"y": y}
"""


def batch(engine: RemoteEngine, x: int) -> Any:
    return RowDecoder(engine.loaded.inputs).decode([{"x": x}]).batch


@pytest.mark.parametrize("workers", [0, 1])
def test_what_is_no_exception_is_answered_too(tmp_path: Path, workers: int):
    (tmp_path / "handler.py").write_text(HANDLER)
    loaded = load_handler(tmp_path)
    with RemoteEngine(loaded, loaded.profile(), loaded.profile(), preprocess_workers=workers) as engine:
        with pytest.raises(RuntimeError, match="KeyboardInterrupt in replica"):
            engine.run(batch(engine, 1))
        with pytest.raises(RuntimeError, match="CancelledError in replica"):
            engine.run(batch(engine, 2))
        assert engine.run(batch(engine, 3)).outputs["y"].to_pylist() == [3], "it goes on"


def test_a_process_that_preprocesses_there_and_cannot_be_replaced_is_503(tmp_path: Path):
    folder = shutil.copytree(HANDLERS / "steps", tmp_path / "steps")
    loaded = load_handler(folder)
    assert loaded.digests
    profile = loaded.profile()
    with RemoteEngine(loaded, profile, profile, preprocess_workers=1, preprocess_processes=1) as engine:
        assert engine.run(batch(engine, 1)).outputs["y"].to_pylist() == [3]
        (child,) = psutil.Process(engine.pid).children()
        child.kill()
        with (folder / "handler.py").open("a") as file:
            file.write("\n# another\n")
        with pytest.raises(FingerprintError, match="changed since it was loaded") as caught:
            engine.run(batch(engine, 1))
        problem = as_problem(caught.value)
        assert (problem.status, problem.kind) == (503, "process_died")
