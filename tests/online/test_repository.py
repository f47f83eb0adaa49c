"""Several handlers and versions in one real server: paths, pins, canaries, and versions that come and go."""

import asyncio
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from parity import golden
from parity.archive import write_archive
from parity.errors import ConfigError
from parity.examples import example_batch
from parity_online.client import Client
from parity_online.process import ServerProcess
from parity_online.repository import load_version, scan
from tests.online.serving import LINEAR, PROBE, ask, metric, until

pytestmark = pytest.mark.slow

HANDLER = """
import numpy as np
from offset import OFFSET

from parity import Float32, Handler, Schema, String


class Model(Handler):
    inputs = Schema(x=Float32())
    outputs = Schema(y=Float32(), by=String())

    def preprocess(self, batch):
        return batch["x"].numpy()

    def inference(self, inputs):
        return inputs + np.float32(OFFSET)

    def postprocess(self, outputs, batch):
        return {"y": outputs, "by": ["VERSION"] * batch.num_rows}
"""


def write_version(folder: Path, name: str, version: str, *, offset: float = 0.0, code: str = "") -> Path:
    """A version in a model repository: it answers x + offset, and its version."""
    made = folder / f".{name}-{version}"
    made.mkdir(parents=True)
    (made / "offset.py").write_text(f"OFFSET = {offset}\n")
    (made / "handler.py").write_text(HANDLER.replace("VERSION", version) + code)
    target = folder / name / version
    target.parent.mkdir(exist_ok=True)
    if target.exists():
        target.rename(folder / f".{name}-{version}-before-{os.urandom(4).hex()}")
    made.rename(target)
    return target


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    repository = tmp_path / "models"
    repository.mkdir()
    return repository


@pytest.fixture
def managed(folder: Path) -> Iterator[ServerProcess]:
    write_version(folder, "m", "1")
    with ServerProcess(["--models", str(folder), "--management"]) as server:
        yield server


def by(url: str, path: str = "/predictions/m", headers: dict[str, str] | None = None) -> Any:
    """Which version answered; the status where none did."""
    status, _, answer = ask(url, "POST", path, {"x": 1}, headers)
    return answer["by"] if status == 200 else status


def load(url: str, name: str = "m", verb: str = "load") -> tuple[int, Any]:
    status, _, answer = ask(url, "POST", f"/v2/repository/models/{name}/{verb}", {})
    return status, answer


def index(url: str) -> dict[str, tuple[str, str]]:
    status, _, entries = ask(url, "POST", "/v2/repository/index", {})
    assert status == 200
    return {f"{entry['name']}@{entry['version']}": (entry["state"], entry["reason"]) for entry in entries}


def test_versions_answer_under_paths_and_pins_and_share_the_rest(folder: Path):
    for version in ("1", "2", "10"):
        write_version(folder, "m", version, offset=float(version))
    arguments = [LINEAR, "--models", str(folder), "--canary", "m@2=50%"]
    with ServerProcess(arguments) as server:
        url = server.url
        assert ask(url, "GET", "/v2/models")[2] == {"models": ["linear", "m"]}
        assert ask(url, "GET", "/v2/models/m")[2]["versions"] == ["1", "10", "2"]
        for version in ("1", "2", "10"):
            assert by(url, f"/predictions/m/{version}") == version
            assert by(url, headers={"X-Model-Version": version}) == version
            body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1]}]}
            _, headers, answer = ask(url, "POST", f"/v2/models/m/versions/{version}/infer", body)
            assert (answer["model_version"], headers["x-model-version"]) == (version, version)
        met = Counter(by(url, headers={"X-Request-Id": str(number)}) for number in range(60))
        assert set(met) == {"2", "10"}, "the newest but for the canary is the default"
        assert 15 <= met["2"] <= 45
        assert len({by(url, headers={"X-Request-Id": "17"}) for _ in range(10)}) == 1
        assert by(url, "/predictions/m/3") == by(url, headers={"X-Model-Version": "3"}) == 404
        status, _, answer = ask(url, "POST", "/predictions/m/1", {"x": 1}, {"X-Model-Version": "2"})
        assert status == 400
        assert "leave one out" in answer["error"]
        assert "x-model-version" not in ask(url, "POST", "/predictions/linear", {"features": [0] * 8})[1]
        assert metric(url, "parity_answers_total", model="m", version="10", status="200") >= 15
        status, _, answer = ask(url, "POST", "/v2/repository/models/m/load", {})
        assert status == 403
        assert "--management" in answer["error"]


def test_the_repository_api_loads_replaces_and_unloads(folder: Path, managed: ServerProcess):
    url = managed.url
    assert index(url) == {"m@1": ("READY", "")}
    write_version(folder, "m", "2", offset=2)
    assert by(url) == "1", "nobody asked for it yet"
    assert load(url) == (200, {})
    assert by(url) == "2"
    write_version(folder, "m", "2", offset=20)
    assert load(url) == (200, {})
    assert ask(url, "POST", "/predictions/m", {"x": 1})[2]["y"] == 21.0, "its sibling is read anew"
    assert load(url, verb="unload") == (200, {})
    assert by(url) == 404
    assert index(url) == {"m@1": ("UNAVAILABLE", "unloaded"), "m@2": ("UNAVAILABLE", "unloaded")}
    assert metric(url, "parity_ready") == 0
    assert load(url, verb="unload")[0] == 404
    assert load(url) == (200, {})
    assert by(url) == "2"
    assert metric(url, "parity_ready") == 2
    shutil.rmtree(folder / "m" / "2")
    assert load(url) == (200, {})
    assert by(url) == "1"
    assert "m@2" not in index(url)
    status, answer = load(url, "n")
    assert status == 404
    assert "nothing to load under 'n'" in answer["error"]


def test_a_version_that_does_not_load_leaves_the_old_one_and_says_why(folder: Path, managed: ServerProcess):
    url = managed.url
    write_version(folder, "m", "1", code="\nraise OSError('no disk')\n")
    status, answer = load(url)
    assert status == 400
    assert "OSError: no disk" in answer["error"]
    assert by(url) == "1"
    state, reason = index(url)["m@1"]
    assert state == "READY"
    assert "its newer files do not serve: OSError: no disk" in reason
    broken = "\n    def initialize(self, context):\n        raise OSError('no weights')\n"
    write_version(folder, "m", "2", code=broken)
    status, answer = load(url)
    assert status == 400
    assert "no weights" in answer["error"]
    assert by(url) == "1"
    status, _, answer = ask(url, "GET", "/v2/models/m/versions/2/ready")
    assert status == 503
    assert "no weights" in answer["error"]
    assert ask(url, "GET", "/v2/health/ready")[0] == 200, "the others serve"
    write_version(folder, "m", "1")
    write_version(folder, "m", "2")
    assert load(url) == (200, {})
    assert by(url) == "2"


def test_a_version_that_breaks_its_goldens_does_not_take_over(
    folder: Path, managed: ServerProcess, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("CI", raising=False)
    path = write_version(folder, "m", "2", offset=2)
    loaded = load_version(path, "m", "2")
    rows: pa.Table = example_batch(loaded.inputs, 20).to_table()
    (path / "golden").mkdir()
    golden.record(loaded, rows, "first", reason="for the test")
    (path / "offset.py").write_text("OFFSET = 3.0\n")
    status, answer = load(managed.url)
    assert status == 400
    assert "golden case 'first'" in answer["error"]
    assert by(managed.url) == "1"
    assert by(managed.url, "/predictions/m/2") == 503
    assert "golden case 'first'" in ask(managed.url, "GET", "/v2/models/m/versions/2/ready")[2]["error"]


def test_polling_takes_over_what_comes_and_goes_without_losing_a_request(folder: Path):
    """Requests run all the time; every one is answered 200 by a version that was there."""
    write_version(folder, "m", "1")
    seen: list[str] = []
    wrong: list[str] = []

    async def ask_until(url: str, done: asyncio.Event) -> None:
        async with Client(url, connections=1) as http:
            while not done.is_set():
                reply = await http.post("/predictions/m", b'{"x": 1}')
                if reply.status == 200:
                    seen.append(json.loads(reply.body)["by"])
                else:
                    wrong.append(f"{reply.status} {reply.body[:300]!r}")

    async def until_seen(version: str) -> None:
        async with asyncio.timeout(60):
            while seen[-1:] != [version] and not wrong:  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    async def main(url: str) -> None:
        done = asyncio.Event()
        clients = [asyncio.create_task(ask_until(url, done)) for _ in range(8)]
        await until_seen("1")
        write_version(folder, "m", "2", offset=2)
        await until_seen("2")
        write_version(folder, "m", "2", offset=4)
        write_version(folder, "m", "3")
        await until_seen("3")
        shutil.rmtree(folder / "m" / "3")
        await until_seen("2")
        shutil.rmtree(folder / "m" / "2")
        await until_seen("1")
        done.set()
        await asyncio.gather(*clients)

    arguments = ["--models", str(folder), "--poll", "0.05", "--slot", "thread"]
    with ServerProcess(arguments) as server:
        asyncio.run(main(server.url))
        assert not wrong
        log = server.log()
        assert "event=version_gone model=m version=3" in log
        until(lambda: "event=unloaded model=m version=2 given_up=0" in server.log())
    assert set(seen) == {"1", "2", "3"}


def test_a_repository_may_be_empty_at_first_when_it_is_polled(folder: Path):
    with ServerProcess(["--models", str(folder), "--poll", "0.05"]) as server:
        assert by(server.url) == 404
        write_version(folder, "m", "7")
        until(lambda: by(server.url) == "7")


def test_a_handler_named_at_start_is_reloaded_in_place(tmp_path: Path):
    shutil.copytree(LINEAR, tmp_path / "linear")
    file = tmp_path / "linear" / "handler.py"
    with ServerProcess([str(tmp_path / "linear"), PROBE, "--management"]) as server:
        body = {"features": [0] * 8, "name": "Ada", "account": None, "at": None}
        assert ask(server.url, "POST", "/predictions/linear", body)[2]["greeting"] == "hello Ada"
        file.write_text(file.read_text().replace("hello", "good day"))
        assert load(server.url, "linear") == (200, {})
        assert ask(server.url, "POST", "/predictions/linear", body)[2]["greeting"] == "good day Ada"
        assert ask(server.url, "POST", "/predictions/probe", {"id": 1})[0] == 200


def test_what_a_repository_cannot_be_is_refused(folder: Path):
    with pytest.raises(ConfigError, match="no such folder"):
        scan(folder / "none")
    write_version(folder, "m", "1")
    (folder / "m" / "golden").mkdir()
    (folder / "README.md").write_text("")
    assert list(scan(folder)) == [("m", "1")]
    (folder / "m" / "1" / "handler.toml").write_text('version = "2"\n')
    server = ServerProcess(["--models", str(folder)])
    with pytest.raises(Exception, match="make them the same"), server:
        pass
    assert server.exit_code == 2


def test_archives_come_and_go_as_folders_do(tmp_path: Path):
    source, models = tmp_path / "source", tmp_path / "models"
    environment = {"PARITY_CACHE": str(tmp_path / "cache")}

    def put(version: str, offset: float) -> None:
        folder = write_version(source, "add", version, offset=offset)
        place = models / "add" / version
        place.mkdir(parents=True, exist_ok=True)
        write_archive(tmp_path / "made.parity", folder, "add", version, "handler.py:Model")
        (tmp_path / "made.parity").replace(place / "add.parity")

    put("1", 1.0)
    arguments = ["--models", str(models), "--poll", "0.05", "--preprocess-processes", "1"]
    with ServerProcess(arguments, environment=environment) as server:

        def answers() -> list[Any]:
            return [
                ask(server.url, "POST", f"/predictions/add/{version}", {"x": 0})[2].get("y")
                for version in "12"
            ]

        assert answers() == [1.0, None]
        put("2", 2.0)
        until(lambda: answers() == [1.0, 2.0])
        put("1", 5.0)
        until(lambda: answers() == [5.0, 2.0])
        (models / "add" / "2" / "add.parity").write_bytes(b"damaged")
        until(lambda: "damaged" in server.log())
        assert answers() == [5.0, 2.0], "what serves goes on"
        shutil.rmtree(models / "add" / "1")
        until(lambda: answers() == [None, 2.0])


@pytest.mark.parametrize("name", ["add.parity", "add.parity:Model"])
def test_an_archive_that_is_named_is_looked_at_again(tmp_path: Path, name: str):
    def put(offset: float) -> None:
        folder = write_version(tmp_path / "source", "add", "1", offset=offset)
        write_archive(tmp_path / "made.parity", folder, "add", "1", "handler.py:Model")
        (tmp_path / "made.parity").replace(tmp_path / "add.parity")

    put(1.0)
    (tmp_path / "models").mkdir()
    arguments = [str(tmp_path / name), "--models", str(tmp_path / "models"), "--poll", "0.05"]
    with ServerProcess(arguments, environment={"PARITY_CACHE": str(tmp_path / "cache")}) as server:

        def answer() -> Any:
            return ask(server.url, "POST", "/predictions/add", {"x": 0})[2].get("y")

        assert answer() == 1.0
        put(5.0)
        until(lambda: answer() == 5.0)


def test_a_version_is_one_archive(tmp_path: Path):
    place = tmp_path / "models" / "add" / "1"
    place.mkdir(parents=True)
    for name in ("a.parity", "b.parity"):
        (place / name).touch()
    assert scan(tmp_path / "models") == {("add", "1"): place}
    with pytest.raises(ConfigError, match=r"several archives.*a\.parity, b\.parity"):
        load_version(place, "add", "1")
