"""What a handler, a golden or a dead process says stays in the log: no protocol tells it to clients."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from parity import golden
from parity_online.process import ServerProcess
from parity_online.repository import load_version
from tests.online.serving import JSON, ask, until

SECRET = "very-secret"
HANDLER = """
import os
import signal
import sys

from parity import Handler, Int64, Schema, String

STAGES = ("preprocess", "inference", "postprocess")
TOLD = "-".join(("very", "secret"))


class Leaky(Handler):
    inputs = Schema(act=String())
    outputs = Schema(y=Int64())

    def preprocess(self, batch):
        return look(batch["act"].to_pylist(), "preprocess")

    def inference(self, inputs):
        return look(inputs, "inference")

    def postprocess(self, outputs, batch):
        return {"y": [len(act) for act in look(outputs, "postprocess")]}


def look(acts, stage):
    if stage in acts:
        raise LookupError(f"{TOLD} in {__file__}")
    if "exit" in acts:
        print(f"{TOLD} in {__file__}", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    return acts
"""

Sent = tuple[int, bytes]
"""A status of HTTP, or of gRPC, and all that the client was told: body, headers, trailers."""


def send(server: ServerProcess, path: str, body: object, content_type: str, headers: dict[str, str]) -> Sent:
    status, told, found = ask(server.url, "POST", path, body, {"Content-Type": content_type, **headers})
    answer = found if isinstance(found, bytes) else json.dumps(found).encode()
    return status, b"\n".join([answer, *(f"{name}: {value}".encode() for name, value in told.items())])


def v2(server: ServerProcess, act: str, headers: dict[str, str]) -> Sent:
    tensor = {"name": "act", "datatype": "BYTES", "shape": [1], "data": [act]}
    return send(server, "/v2/models/m/infer", {"inputs": [tensor]}, JSON["Content-Type"], headers)


def v2_binary(server: ServerProcess, act: str, headers: dict[str, str]) -> Sent:
    data = len(act).to_bytes(4, "little") + act.encode()
    tensor = {"name": "act", "datatype": "BYTES", "shape": [1], "parameters": {"binary_data_size": len(data)}}
    head = json.dumps({"inputs": [tensor]}).encode()
    length = {"Inference-Header-Content-Length": str(len(head))}
    return send(server, "/v2/models/m/infer", head + data, "application/octet-stream", {**headers, **length})


def v2_grpc(server: ServerProcess, act: str, headers: dict[str, str]) -> Sent:
    grpc = pytest.importorskip("grpc")
    from parity.codec.oip_messages import message_type

    request = message_type("ModelInferRequest")(model_name="m", model_version=headers["X-Model-Version"])
    tensor = request.inputs.add(name="act", datatype="BYTES", shape=[1])
    tensor.contents.bytes_contents.append(act.encode())
    with grpc.insecure_channel(server.grpc) as channel:
        infer = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
        try:
            told, call = infer.with_call(
                request.SerializeToString(), metadata=(("x-request-id", headers["X-Request-Id"]),)
            )
        except grpc.RpcError as exc:
            told, call = exc.details().encode(), exc
    more = [*(call.initial_metadata() or ()), *(call.trailing_metadata() or ())]
    return call.code().value[0], told + repr(more).encode()


def predictions(server: ServerProcess, act: str, headers: dict[str, str]) -> Sent:
    return send(server, "/predictions/m", {"act": act}, JSON["Content-Type"], headers)


def arrow(server: ServerProcess, act: str, headers: dict[str, str]) -> Sent:
    sink = pa.BufferOutputStream()
    table = pa.table({"act": [act]})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    body = sink.getvalue().to_pybytes()
    return send(server, "/predictions/m", body, "application/vnd.apache.arrow.stream", headers)


def v1(server: ServerProcess, act: str, headers: dict[str, str]) -> Sent:
    path = f"/v1/models/m/versions/{headers['X-Model-Version']}:predict"
    return send(server, path, {"instances": [{"act": act}]}, JSON["Content-Type"], headers)


def tf_serving(server: ServerProcess, act: str, headers: dict[str, str]) -> Sent:
    path = f"/v1/models/m/versions/{headers['X-Model-Version']}:predict"
    body = {"signature_name": "serving_default", "inputs": {"act": [act]}}
    return send(server, path, body, JSON["Content-Type"], headers)


PROTOCOLS = [v2, v2_binary, v2_grpc, predictions, arrow, v1, tf_serving]
UNAVAILABLE = 14


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Versions: 1 answers, 2 does not load, 3 raises on its golden, 4 has a damaged one."""
    folder = tmp_path_factory.mktemp("leaks")
    for version in "1234":
        (folder / version).mkdir()
        (folder / version / "handler.py").write_text(HANDLER)
    broken = "    def initialize(self, context):\n        look(STAGES, 'preprocess')\n\n    def preprocess"
    (folder / "2" / "handler.py").write_text(HANDLER.replace("    def preprocess", broken))
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CI", raising=False)
        for version in "34":
            loaded = load_version(folder / version, "m", version)
            (folder / version / "golden").mkdir()
            golden.record(loaded, pa.table({"act": ["infer"]}), "first", reason="for the test")
    picky = HANDLER.replace("if stage in acts", "if any(stage.startswith(act) for act in acts)")
    (folder / "3" / "handler.py").write_text(picky)
    (folder / "4" / "golden" / "first" / "expected.parquet").write_bytes(SECRET.encode())
    return folder


@pytest.fixture(scope="module", params=[False, True], ids=["texts kept", "texts logged"])
def is_told(request: pytest.FixtureRequest) -> bool:
    return request.param


@pytest.fixture(scope="module")
def server(is_told: bool, versions: Path) -> Iterator[ServerProcess]:
    """A server of these versions; all but the first come late: one that does not load at first ends it."""
    models = versions / f"models-{is_told}"
    shutil.copytree(versions / "1", models / "m" / "1")
    arguments = ["--models", str(models), "--management", "--grpc-port", "0"]
    arguments += ["--log-format", "json", "--access-log"]
    arguments += ["--log-failures", "--replicas", "1"] if is_told else []
    with ServerProcess(arguments) as server:
        for version in "234":
            shutil.copytree(versions / version, models / "m" / version)
        assert ask(server.url, "POST", "/v2/repository/models/m/load", {})[0] == 400
        yield server


def of(version: str, request_id: str) -> dict[str, str]:
    return {"X-Model-Version": version, "X-Request-Id": request_id}


def require_told_nothing(told: bytes, versions: Path) -> None:
    text = told.decode("utf-8", "replace")
    for leak in (SECRET, str(versions), "handler.py", "Traceback", 'File "', "LookupError", "parquet"):
        assert leak not in text


def lines(server: ServerProcess) -> list[dict[str, Any]]:
    return [json.loads(line) for line in server.log().splitlines() if line.startswith("{")]


def line_of(server: ServerProcess, request_id: str) -> dict[str, Any]:
    until(lambda: any(line.get("id") == request_id for line in lines(server)))
    (found,) = (
        line for line in lines(server) if line.get("id") == request_id and line["event"] != "row_failed"
    )
    return found


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["preprocess", "inference", "postprocess"])
@pytest.mark.parametrize("ask_by", PROTOCOLS)
def test_what_a_stage_raises_stays_in_the_log(
    server: ServerProcess, versions: Path, is_told: bool, ask_by: Callable[..., Sent], stage: str
):
    request_id = f"{ask_by.__name__}-{stage}"
    status, told = ask_by(server, stage, of("1", request_id))
    assert status == {arrow: 200, v2_grpc: 13}.get(ask_by, 500)
    assert stage in told.decode("utf-8", "replace"), "it is told which stage failed"
    require_told_nothing(told, versions)
    batch = line_of(server, request_id)["batch"]
    traces = [
        line["traceback"]
        for line in lines(server)
        if line["event"] == "row_failed" and line.get("batch") == batch
    ]
    assert traces
    assert all("LookupError" in trace and "handler.py" in trace for trace in traces)
    assert all((SECRET in trace) == is_told for trace in traces)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "why", "event"),
    [
        ("2", "it could not be loaded", "load_failed"),
        ("3", "it does not reproduce its goldens: golden case 'first'", "gate_refused"),
        ("4", "it does not reproduce its goldens: ", "gate_refused"),
    ],
)
@pytest.mark.parametrize("ask_by", PROTOCOLS)
def test_why_a_version_is_not_ready_stays_in_the_log(
    server: ServerProcess,
    versions: Path,
    is_told: bool,
    ask_by: Callable[..., Sent],
    version: str,
    why: str,
    event: str,
):
    status, told = ask_by(server, "fine", of(version, f"{ask_by.__name__}-{version}"))
    assert status == (UNAVAILABLE if ask_by is v2_grpc else 503)
    assert f"model 'm' is not ready: {why}" in told.decode("utf-8", "replace")
    require_told_nothing(told, versions)
    assert event in {line["event"] for line in lines(server)}


@pytest.mark.slow
@pytest.mark.parametrize("is_told", [True], indirect=True, ids=["in a replica"])
@pytest.mark.parametrize("ask_by", PROTOCOLS)
def test_what_a_dead_process_said_stays_in_the_log(
    server: ServerProcess, versions: Path, is_told: bool, ask_by: Callable[..., Sent]
):
    until(lambda: predictions(server, "fine", of("1", ""))[0] == 200)
    status, told = ask_by(server, "exit", of("1", f"{ask_by.__name__}-exit"))
    assert status == (UNAVAILABLE if ask_by is v2_grpc else 503)
    assert "it is being replaced, send the request again" in told.decode("utf-8", "replace")
    require_told_nothing(told, versions)
    assert line_of(server, f"{ask_by.__name__}-exit")["kind"] == "replica_died"
    assert f"{SECRET} in " in server.log()
