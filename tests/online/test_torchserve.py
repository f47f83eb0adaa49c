"""TorchServe's routes on a real server, asked with curl as its documents do; raw bodies, forms and Arrow."""

import json
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from parity.codec.arrow import decode_ipc, encode_ipc
from parity_online.process import ServerProcess
from tests.online.serving import HANDLERS, PROBE, ask

pytestmark = pytest.mark.slow

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
PICTURE = {"Content-Type": "image/png"}
FORM = {"Content-Type": "multipart/form-data"}
STREAM = {"Content-Type": "application/vnd.apache.arrow.stream"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    ran = tmp_path_factory.mktemp("torchserve") / "ran"
    arguments = [str(HANDLERS / "picture"), PROBE, "--max-batch", "8", "--queue-rows", "16"]
    with ServerProcess(arguments, environment={"PROBE_RAN": str(ran)}) as found:
        yield found


@pytest.fixture
def kitten(tmp_path: Path) -> str:
    path = tmp_path / "kitten.png"
    path.write_bytes(PNG)
    return str(path)


def curl(*arguments: str) -> Any:
    """What curl prints, as JSON."""
    done = subprocess.run(["curl", "-sS", *arguments], capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)


def test_curl_as_the_documents_have_it(server: ServerProcess, kitten: str, tmp_path: Path):
    url = f"{server.url}/predictions/picture"
    answer = {"size": len(PNG), "caption": "none"}
    assert curl(url, "-T", kitten) == answer
    assert curl("-X", "POST", url, "-T", kitten) == answer
    assert curl(url, "-F", f"data=@{kitten}") == answer
    assert (
        curl(f"{url}/1", "-H", "Content-Type: application/octet-stream", "--data-binary", f"@{kitten}")
        == answer
    )
    noise = tmp_path / "noise.bin"
    noise.write_bytes(b"\x93\x00\xff" * 5)
    assert "needs Content-Type: application/octet-stream" in curl(url, "-T", str(noise))["message"]
    two = curl(url, "-F", f"image=@{kitten}", "-F", "caption=a cat", "-F", "times=2")
    assert two == {"size": 2 * len(PNG), "caption": "a cat"}
    assert curl(f"{server.url}/ping") == {"status": "Healthy"}
    assert [model["modelName"] for model in curl(f"{server.url}/models")["models"]] == ["picture", "probe"]
    assert curl(f"{server.url}/models?limit=1")["nextPageToken"] == "1"
    (told,) = curl(f"{server.url}/models/probe")
    assert (told["modelVersion"], told["batchSize"], told["workers"][0]["status"]) == ("3", 8, "READY")
    assert curl(f"{server.url}/models/probe/all") == [told]


@pytest.mark.parametrize(
    ("path", "headers", "body", "status", "kind", "said"),
    [
        (
            "/predictions/picture",
            {"Content-Type": "image/png"},
            b"no",
            400,
            "BadRequestException",
            "no image",
        ),
        ("/predictions/probe", PICTURE, PNG, 400, "BadRequestException", "raw body"),
        (
            "/predictions/picture",
            {"Content-Type": "multipart/form-data"},
            b"",
            400,
            "BadRequestException",
            "boundary",
        ),
        ("/predictions/probe", {"Content-Type": "text/csv"}, b"1", 415, "BadRequestException", "text/csv"),
        ("/predictions/prob", {}, b"{}", 404, "ResourceNotFoundException", "'prob'"),
        ("/predictions/probe/9", {}, b"{}", 404, "ResourceNotFoundException", "'9'"),
        ("/explanations/probe", {}, b"{}", 501, "NotImplementedException", "no explanations"),
        ("/predictions/probe", {}, b'{"id": 1, "act": "raise"}', 500, "InternalServerException", "stage"),
    ],
)
def test_errors_have_torchserves_form(
    server: ServerProcess, path: str, headers: dict[str, str], body: bytes, status: int, kind: str, said: str
):
    found, _, answer = ask(server.url, "POST", path, body, headers)
    assert (found, answer["code"], answer["type"]) == (status, status, kind)
    assert said in answer["message"]


def test_an_arrow_stream_is_answered_row_by_row(server: ServerProcess):
    table = pa.table(
        {"id": list(range(12)), "act": ["", "reject", "raise", *[""] * 9], "x": [None, *[0.5] * 11]}
    )
    status, headers, body = ask(server.url, "POST", "/predictions/probe", encode_ipc(table), STREAM)
    assert (status, headers["content-type"], headers["x-row-errors"]) == (200, STREAM["Content-Type"], "3")
    answers = decode_ipc(body)
    assert answers["id"].to_pylist() == [None, None, None, *range(3, 12)]
    kinds = [None if error is None else error["kind"] for error in answers["_error"].to_pylist()]
    assert kinds == ["invalid", "rejected", "failed", *[None] * 9]
    assert "secret-42" not in str(answers["_error"].to_pylist())
    assert answers["y"].type == pa.float32()


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (b"ARROW1", "not an Arrow IPC stream"),
        (random.Random(64).randbytes(64), "not an Arrow IPC stream"),
        (pa.table({"x": [1.0]}), "'id'"),
        (pa.table({"id": pa.array([], pa.int64())}), "0 rows"),
        (pa.table({"id": ["a"]}), "id"),
    ],
    ids=["cut short", "other bytes", "no id", "no rows", "ids of text"],
)
def test_a_stream_that_does_not_fit_is_400(server: ServerProcess, table: Any, said: str):
    body = table if isinstance(table, bytes) else encode_ipc(table)
    status, _, answer = ask(server.url, "POST", "/predictions/probe", body, STREAM)
    assert status == 400
    assert said in answer["error"]
