"""Replicas on devices of their own, and replicas that do not get through loading."""

from pathlib import Path
from typing import Any

import psutil
import pytest

from parity.errors import ConfigError, RunnerError
from parity_online.process import ServerProcess
from parity_online.settings import ModelSettings
from tests.online.serving import LINEAR, ask, metric, until

HANDLER = """
import time
from pathlib import Path
from parity import Handler, Int64, Schema, String

class Slow(Handler):
    inputs = Schema(x=Int64())
    outputs = Schema(x=Int64(), device=String())

    def initialize(self, context):
        while Path(__file__).with_name("hang").exists():
            time.sleep(0.01)
        self.device = context.device

    def inference(self, inputs):
        while Path(__file__).with_name("hang-warm").exists():
            time.sleep(0.01)
        return {**inputs, "device": [self.device] * len(inputs["x"])}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "slow"
    folder.mkdir()
    (folder / "handler.py").write_text(HANDLER)
    return folder


def model_of(url: str) -> dict[str, Any]:
    (model,) = ask(url, "GET", "/status.json")[2]["models"]
    return model


@pytest.mark.slow
def test_replicas_have_the_devices_that_are_named_in_turn():
    with ServerProcess([LINEAR, "--replicas", "3", "--devices", "cpu"]) as server:
        assert metric(server.url, "parity_slots") == 3
        assert metric(server.url, "parity_device_slots", device="cpu") == 3
        model = model_of(server.url)
        assert (model["device"], model["device_slots"]) == ("cpu", {"cpu": 3.0})


@pytest.mark.slow
def test_a_device_that_is_not_there_ends_the_server_with_those_that_are(folder: Path):
    import torch

    if torch.cuda.is_available():
        pytest.skip("there are CUDA devices here")
    (folder / "handler.py").write_text("import torch\n" + HANDLER)
    server = ServerProcess([str(folder), "--devices", "cpu,cuda:7"])
    with pytest.raises(RunnerError, match="'cuda:7', which is not there: there is cpu"), server:
        pass
    assert server.exit_code == 6


def test_devices_and_replicas_fit():
    assert ModelSettings(devices=("cpu", "cuda:1")).replicas == 2
    assert ModelSettings(devices=("cpu", "cuda:1"), replicas=3).replicas == 3
    with pytest.raises(ConfigError, match="some devices would idle"):
        ModelSettings(devices=("cuda:0", "cuda:1"), replicas=1)
    with pytest.raises(ConfigError, match="a list of devices"):
        ModelSettings(devices=("gpu",))
    with pytest.raises(ConfigError, match="start_timeout_s"):
        ModelSettings(start_timeout_s=0)


@pytest.mark.slow
def test_a_replica_that_hangs_while_it_loads_is_ended_and_started_again(folder: Path):
    (folder / "hang").touch()
    arguments = [str(folder), "--replicas", "1", "--start-timeout", "15"]
    with ServerProcess(arguments, wait_ready=False) as server:
        until(lambda: bool(replicas_of(server)))
        (hung,) = replicas_of(server)
        until(lambda: "took longer than 15 s to load" in ready(server)[1], 60)
        assert ready(server)[0] == 503
        assert "event=slot_start_late" in server.log()
        (folder / "hang").unlink()
        assert psutil.wait_procs([hung], timeout=20)[1] == []
        server.await_event("ready")
        assert ask(server.url, "POST", "/predictions/slow", {"x": 3})[2] == {"x": 3, "device": "cpu"}
        assert len(replicas_of(server)) == 1
        assert server.stop() == 0


@pytest.mark.slow
def test_a_replica_that_hangs_while_it_warms_up_is_ended_and_started_again(folder: Path):
    (folder / "hang-warm").touch()
    arguments = [str(folder), "--replicas", "1", "--start-timeout", "10"]
    with ServerProcess(arguments, wait_ready=False) as server:
        until(lambda: bool(replicas_of(server)))
        (hung,) = replicas_of(server)
        until(lambda: "took longer than 10 s to warm up" in ready(server)[1], 60)
        (folder / "hang-warm").unlink()
        assert psutil.wait_procs([hung], timeout=20)[1] == []
        server.await_event("ready")
        assert ask(server.url, "POST", "/predictions/slow", {"x": 3})[2] == {"x": 3, "device": "cpu"}
        assert server.stop() == 0


@pytest.mark.slow
def test_a_handler_that_hangs_in_the_servers_process_is_told(folder: Path):
    (folder / "hang").touch()
    with ServerProcess([str(folder), "--start-timeout", "0.5"], wait_ready=False) as server:
        until(lambda: "cannot be ended, with --replicas 1 it can" in ready(server)[1])
        (folder / "hang").unlink()
        server.await_event("ready")


def ready(server: ServerProcess) -> tuple[int, str]:
    status, _, answer = ask(server.url, "GET", "/v2/models/slow/ready")
    return status, answer.get("error", "")


def replicas_of(server: ServerProcess) -> list[psutil.Process]:
    return [
        child
        for child in psutil.Process(server.pid).children(recursive=True)
        if "parity_online.replica" in " ".join(child.cmdline())
    ]
