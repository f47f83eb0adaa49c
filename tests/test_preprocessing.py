"""Processes that preprocess: the answers of the engine alone, and what becomes of those that die."""

import contextlib
import logging
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from parity import Engine, Handler, Int64, Schema, load_handler
from parity.codec.rows import RowDecoder
from parity.errors import ConfigError, FingerprintError, InputMutatedError, RunnerError
from parity.pipeline import Overlapped, Pipeline

pytestmark = pytest.mark.slow

HANDLER = """
import os, signal, time
from pathlib import Path
import numpy as np
from parity import Handler, Int64, Schema, String

class PickyError(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")
        self.failing_rows = [one]

class Picky(Handler):
    inputs = Schema(x=Int64(), act=String(default=""), path=String(default=""))
    outputs = Schema(y=Int64(), pid=Int64())

    def initialize(self, context):
        if Path(__file__).with_name("broken").exists():
            raise OSError("no disk")
        if (slow := Path(__file__).parent.with_suffix(".slow")).exists():
            slow.with_suffix(".loading").touch()
            while slow.exists():
                time.sleep(0.001)

    def preprocess(self, batch):
        for row, (act, path) in enumerate(zip(batch["act"].to_pylist(), batch["path"].to_pylist())):
            if act == "reject":
                batch.reject(row, "act says so")
            if act == "picky":
                raise PickyError(row, "two")
            if act == "exit":
                raise SystemExit(3)
            if act == "mutate":
                batch["x"].numpy()[0] = 1
            if act == "lock":
                import threading
                return threading.Lock()
            if act == "die" or (act == "die once" and not Path(path).exists()):
                if path:
                    Path(path).touch()
                os.kill(os.getpid(), signal.SIGKILL)
            while act == "wait" and not Path(path).exists():
                time.sleep(0.001)
        n = batch.num_rows
        return {"x": batch["x"].numpy().copy(), "pid": np.full(n, os.getpid())}

    def inference(self, inputs):
        return {**inputs, "y": inputs["x"] * 2}

    def postprocess(self, outputs, batch):
        return {"y": outputs["y"], "pid": outputs["pid"]}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("picky")
    (folder / "handler.py").write_text(HANDLER)
    return folder


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[Engine]:
    with Engine(load_handler(folder), preprocess_processes=1) as engine:
        yield engine


def decoded(folder: Path, *rows: dict[str, Any]) -> Any:
    return RowDecoder(load_handler(folder).inputs).decode(list(rows))


def children() -> list[psutil.Process]:
    found: list[psutil.Process] = []
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # it has ended; a zombie is another test's
            if "parity.preprocess_process" in " ".join(child.cmdline()):
                found.append(child)
    return found


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.01)


def test_answers_and_errors_are_those_of_the_engine_alone(engine: Engine, folder: Path):
    rows = [
        {"x": x, "act": act}
        for x, act in enumerate(["", "reject", "picky", "", "exit", "", "lock", "reject", ""])
    ]
    with Engine(load_handler(folder)) as alone:
        expected = alone.score(decoded(folder, *rows))
        with pytest.raises(InputMutatedError) as here:
            alone.score(decoded(folder, {"x": 1, "act": "mutate"}))
    found = engine.score(decoded(folder, *rows))
    assert found.index.tolist() == expected.index.tolist()
    assert found.outputs["y"].to_pylist() == expected.outputs["y"].to_pylist()
    at = {error.row: error for error in expected.errors if error.row != 6}
    assert {error.row: error for error in found.errors if error.row != 6} == at
    assert at[2].type == "PickyError"
    (unsendable,) = [error for error in found.errors if error.row == 6]
    assert "no other process can be sent this" in unsendable.message
    pids = set(found.outputs["pid"].to_pylist())
    assert len(pids) == 1
    assert os.getpid() not in pids, "one process, loaded once"
    with pytest.raises(InputMutatedError) as there:
        engine.score(decoded(folder, {"x": 1, "act": "mutate"}))
    assert str(there.value) == str(here.value)


def test_a_process_that_dies_is_replaced_and_its_batch_tried_once_more(
    engine: Engine, folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    rows = [{"x": 1}, {"x": 2, "act": "die once", "path": str(tmp_path / "died")}]
    with caplog.at_level(logging.WARNING):
        found = engine.score(decoded(folder, *rows))
    assert found.outputs["y"].to_pylist() == [2, 4]
    assert found.errors == ()
    assert "event=preprocess_process_replaced" in caplog.text
    (idle,) = children()
    os.kill(idle.pid, signal.SIGKILL)
    idle.wait(10)
    assert engine.score(decoded(folder, {"x": 3})).outputs["y"].to_pylist() == [6], "one that died while idle"


def test_a_row_that_ends_every_process_fails_alone(engine: Engine, folder: Path):
    found = engine.score(decoded(folder, {"x": 1}, {"x": 2, "act": "die"}))
    assert found.outputs["y"].to_pylist() == [2]
    (error,) = found.errors
    assert (error.row, error.kind, error.type) == (1, "failed", "PreprocessDiedError")
    assert (
        "was ended by signal 9, as did the one" in error.message or "was ended by signal 9" in error.message
    )


def test_several_threads_keep_several_processes_busy(folder: Path, tmp_path: Path):
    gate = tmp_path / "go"
    rows = [[{"x": x, "act": "wait", "path": str(gate)}] for x in range(2)]
    with Overlapped(Engine(load_handler(folder), preprocess_processes=2), preprocess_workers=2) as engine:
        found: list[Any] = []
        batches = [decoded(folder, *row).batch for row in rows]
        threads = [
            threading.Thread(target=lambda batch=batch: found.append(engine.run(batch))) for batch in batches
        ]
        for thread in threads:
            thread.start()
        gate.touch()
        for thread in threads:
            thread.join(60)
        assert sorted(result.outputs["y"].to_pylist()[0] for result in found) == [0, 2]
        pids = {child.pid for child in children()}
        assert len(pids) >= 2
    with Engine(load_handler(folder), preprocess_processes=2) as engine:
        results = list(
            Pipeline(engine, preprocess_workers=2).map(decoded(folder, {"x": x}) for x in range(20))
        )
        assert [result.outputs["y"].to_pylist() for result in results] == [[2 * x] for x in range(20)]


def test_giving_up_ends_who_waits_and_leaves_no_process(folder: Path, tmp_path: Path):
    before = {child.pid for child in children()}
    engine = Engine(load_handler(folder), preprocess_processes=1)
    with engine:
        failed: list[BaseException] = []

        def run() -> None:
            try:
                engine.score(decoded(folder, {"x": 1, "act": "wait", "path": str(tmp_path / "never")}))
            except RunnerError as exc:
                failed.append(exc)

        thread = threading.Thread(target=run)
        thread.start()
        engine.give_up()
        thread.join(60)
        assert not thread.is_alive()
        assert "its processes were ended" in str(failed[0])
    assert {child.pid for child in children()} == before


@pytest.mark.parametrize("end", [Engine.give_up, lambda engine: engine.__exit__(None, None, None)])
def test_a_process_that_takes_the_place_of_another_is_ended_while_it_loads(
    folder: Path, tmp_path: Path, end: Callable[[Engine], None]
):
    other = shutil.copytree(folder, tmp_path / "other")
    before = {child.pid for child in children()}
    engine = Engine(load_handler(other), preprocess_processes=1)
    with engine, ThreadPoolExecutor(1) as pool:
        batch = decoded(folder, {"x": 1})
        (started,) = [child for child in children() if child.pid not in before]
        started.kill()
        started.wait(10)
        (tmp_path / "other.slow").touch()
        try:
            run = pool.submit(engine.score, batch)
            until((tmp_path / "other.loading").exists)
            end(engine)
            with pytest.raises(RunnerError, match="its processes were ended"):
                run.result(60)
        finally:
            (tmp_path / "other.slow").unlink()
    assert {child.pid for child in children()} == before


def test_a_handler_that_does_not_load_there_says_so(folder: Path, tmp_path: Path):
    other = shutil.copytree(folder, tmp_path / "other")
    loaded = load_handler(other)
    assert loaded.digests
    (other / "handler.py").write_text(HANDLER + "\n# another\n")
    with (
        pytest.raises(FingerprintError, match="changed since it was loaded"),
        Engine(loaded, preprocess_processes=1),
    ):
        pass


def test_a_process_that_cannot_be_replaced_is_closed_once(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    other = shutil.copytree(folder, tmp_path / "other")
    loaded = load_handler(other)
    with Engine(loaded, preprocess_processes=1) as engine:
        before = {child.pid for child in children()}
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        (other / "handler.py").write_text(HANDLER + "\n# another\n")
        strays: list[int] = []
        real = os.close

        def close(descriptor: int) -> None:
            if not Path(f"/proc/self/fd/{descriptor}").is_symlink():
                strays.append(descriptor)
            real(descriptor)

        monkeypatch.setattr(os, "close", close)
        for _ in range(2):
            with pytest.raises(FingerprintError, match="changed since it was loaded"):
                engine.score(decoded(folder, {"x": 1}))
        monkeypatch.undo()
        assert strays == []
        (other / "handler.py").write_text(HANDLER)
        assert engine.score(decoded(folder, {"x": 1})).outputs["y"].to_pylist() == [2], "mended, it goes on"


def test_a_class_of_this_process_is_refused():
    class Here(Handler):
        inputs = Schema(x=Int64())
        outputs = Schema(x=Int64())

    with pytest.raises(ConfigError, match="put it in a file"):
        Engine(Here, preprocess_processes=1)
    with pytest.raises(ConfigError, match="0 to 256"):
        Engine(Here, preprocess_processes=-1)
