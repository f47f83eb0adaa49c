"""A replica as an engine: what its engine raises reaches who asked, and nobody waits for ever."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from parity import load_handler
from parity.child import child_error
from parity.codec.rows import RowDecoder
from parity.errors import FingerprintError
from parity_online import logs
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
        assert [error.type for error in engine.run(batch(engine, 2)).errors] == ["CancelledError"]
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
        assert "changed since" in problem.detail
        assert "changed since" not in str(problem)


def test_what_a_dead_process_said_is_told_to_no_client(monkeypatch: pytest.MonkeyPatch):
    died = child_error(-9, "preprocessing for steps", ["Traceback", "ValueError: card 4111"])
    problem = as_problem(died)
    assert (problem.detail, "4111" in str(problem)) == ("preprocessing for steps:", False)
    monkeypatch.setattr(logs, "tells_failures", lambda: True)
    problem = as_problem(died)
    assert ("4111" in problem.detail, "4111" in str(problem)) == (True, False)


SCRIPT = """
import sys
from parity import Engine, load_handler
from parity.codec.rows import RowDecoder
from parity_online.remote import RemoteEngine

if __name__ == "__main__":
    loaded = load_handler(sys.argv[1], app_dir=sys.argv[2] if len(sys.argv) > 2 else None)
    profile = loaded.profile()
    for engine in (
        Engine(loaded, preprocess_processes=1),
        RemoteEngine(loaded, profile, profile, preprocess_processes=1),
    ):
        with engine:
            print(engine.run(RowDecoder(loaded.inputs).decode([{"x": 1}]).batch).outputs["y"].to_pylist())
"""


@pytest.mark.parametrize("ref", ["module", "app_dir"])
def test_modules_in_the_working_folder_are_not_run_by_processes_that_start_there(tmp_path: Path, ref: str):
    (tmp_path / "script").mkdir()
    (tmp_path / "script" / "main.py").write_text(SCRIPT)
    here = tmp_path / "here"
    here.mkdir()
    for name in ("queue", "socket", "logging"):
        (here / f"{name}.py").write_text("raise SystemExit('not this one')\n")
    place = here if ref == "module" else tmp_path / "there"
    shutil.copytree(HANDLERS / "steps", place, dirs_exist_ok=True)
    (place / "handler.py").rename(place / "stepping.py")
    arguments = {
        "module": ["stepping:Steps"],
        "app_dir": ["stepping:Steps", str(place)],
    }[ref]
    done = subprocess.run(
        [sys.executable, str(tmp_path / "script" / "main.py"), *arguments],
        cwd=here,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["[3]", "[3]"], done.stderr
