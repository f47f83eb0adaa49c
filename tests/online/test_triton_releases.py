"""An old and the newest release of Triton's client: one script, unchanged, in a process of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parity_online.process import ServerProcess
from tests.online.serving import LINEAR, PROBE

pytestmark = pytest.mark.slow

pytest.importorskip("tritonclient.http.aio")
pytest.importorskip("tritonclient.grpc")

OLD = "2.50.0"
"""The release of Triton 24.09, which many still have installed."""

SCRIPT = Path(__file__).with_name("triton_script.py")
_NOT_REACHED = ("connection broken by", "Could not fetch URL", "Failed to establish a new connection")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    ran = tmp_path_factory.mktemp("triton") / "ran"
    arguments = [PROBE, LINEAR, "--max-batch", "8", "--grpc-port", "0"]
    with ServerProcess(arguments, environment={"PROBE_RAN": str(ran)}) as found:
        yield found


@pytest.fixture(scope="module")
def old(request: pytest.FixtureRequest) -> Path:
    """The folder of the old release, alone; installed once and kept in the cache of pytest."""
    cache = request.config.cache
    assert cache is not None, "pytest's cacheprovider is on"
    folder = cache.mkdir(f"tritonclient-{OLD}")
    if not (folder / f"tritonclient-{OLD}.dist-info").is_dir():
        _install(f"tritonclient=={OLD}", folder)
    return folder


def _install(requirement: str, folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade"]
    done = subprocess.run(
        [*command, "--target", str(folder), requirement], capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return
    if any(sign in done.stderr for sign in _NOT_REACHED) and not os.environ.get("CI"):
        pytest.skip(f"{requirement} WAS NOT TRIED: no registry can be reached\n{done.stderr}")
    pytest.fail(f"{requirement} could not be installed:\n{done.stderr}")


def run_script(server: ServerProcess, folder: Path | None) -> dict[str, Any]:
    """What the script tells with the client of this folder, or with the one that is installed."""
    environment = {**os.environ, **({} if folder is None else {"PYTHONPATH": str(folder)})}
    addresses = [server.url.removeprefix("http://"), server.grpc]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *addresses],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("release", ["old", "installed"])
def test_its_clients_are_answered(server: ServerProcess, release: str, request: pytest.FixtureRequest):
    folder = request.getfixturevalue("old") if release == "old" else None
    found = run_script(server, folder)
    if folder is None:
        assert version("tritonclient") != OLD
        assert "tritonclient-" not in found["file"]
    else:
        assert Path(found["file"]).is_relative_to(folder)
    y = np.array([0.1, 2.0, -0.0], np.float32) * np.float32(2) + np.float32(1)
    expected = {"id": [1, 2**62, 3], "y": y.tobytes().hex()}
    over_http, over_grpc = found["http"], found["grpc"]
    for told in (over_http, over_grpc):
        assert told["live"] is True
        assert told["metadata"] == {"name": "features", "datatype": "FP32", "shape": [-1, 8]}
        assert told["max_batch"] == 8
        assert told["index"] == ["probe", "linear"]
        assert told["statistics"] == ["probe"]
        assert told["text"].endswith("Adé")
        assert "act says reject" in told["refused"]
        assert told["async"] == expected
    assert over_http["forms"] == [expected] * 12
    assert over_grpc["forms"] == [expected]
    assert (over_http["aio"], over_grpc["stream"]) == (expected, expected)
