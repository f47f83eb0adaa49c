"""Bytes that nobody should send: the server answers in kind, tells nothing of itself, and lives."""

import json
import random
import re
import socket
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pytest

from parity_online.process import ServerProcess
from tests.online.serving import JSON, LINEAR, ask, until

pytestmark = pytest.mark.slow

ROW = {"features": [0, 1, 2, 3, 4, 5, 6, 7], "name": "Ada", "account": 5, "at": None}
AT = "2024-01-01T00:00:00+00:00"
DOCUMENTED = {200, 400, 403, 404, 405, 408, 411, 413, 415, 431, 501}
"""None of these requests makes a stage fail, waits long or is over the queue: no 5xx is right but 501.
A host that is not the loopback's may not manage: 403."""
REVEALING = re.compile(rb"Traceback|site-packages|File \"|\.py\b|0x[0-9a-f]{8}")
CASES = 500
QUIET_S = 0.3
"""So long without an answer, a case is over: the server waits for what the mutation left out."""


def head(path: str, body: bytes, *lines: str, verb: str = "POST") -> bytes:
    first = [f"{verb} {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *lines]
    return "\r\n".join(first).encode() + b"\r\n\r\n" + body


def chunked(path: str, *parts: bytes) -> bytes:
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: a",
        "Content-Type: application/json",
        "Transfer-Encoding: chunked",
    ]
    text = "\r\n".join(lines) + "\r\n\r\n"
    return text.encode() + b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def corpus() -> list[bytes]:
    row = json.dumps(ROW).encode()
    features = np.arange(8, dtype="<f4").tobytes()
    binary = {"name": "features", "datatype": "FP32", "shape": [1, 8], "parameters": {"binary_data_size": 32}}
    account = {"name": "account", "datatype": "INT64", "shape": [1], "data": [5]}
    at = {"name": "at", "datatype": "BYTES", "shape": [1], "data": [AT]}
    tensors = json.dumps(
        {"inputs": [binary, account, at], "parameters": {"binary_data_output": True}}
    ).encode()
    sink = pa.BufferOutputStream()
    at_column = pa.array([0], pa.timestamp("us", "UTC"))
    table = pa.table({"features": [ROW["features"]], "account": [5], "name": ["Ada"], "at": at_column})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    arrow = sink.getvalue().to_pybytes()
    form = b'--b\r\nContent-Disposition: form-data; name="name"\r\n\r\nAda\r\n--b--\r\n'
    json_type = "Content-Type: application/json"
    return [
        head("/predictions/linear", row, json_type, "X-Request-Timeout: 5", "X-Request-Priority: high"),
        head("/predictions/linear", b"[" + row + b"," + row + b"]", json_type, "traceparent: 00-" + "a" * 32),
        head(
            "/v2/models/linear/infer", tensors + features, f"Inference-Header-Content-Length: {len(tensors)}"
        ),
        head("/v1/models/linear:predict", b'{"instances": [' + row + b"]}", json_type),
        head("/predictions/linear", arrow, "Content-Type: application/vnd.apache.arrow.stream"),
        head("/predictions/linear", form, "Content-Type: multipart/form-data; boundary=b"),
        head("/predictions/linear", row, json_type, "Content-Encoding: gzip", "Accept-Encoding: gzip;q=1"),
        head("/predictions/linear", row.ljust(200_000), json_type),
        chunked("/predictions/linear", row[:9], row[9:]),
        head("/v2/repository/index", b'{"ready": true}', json_type),
        head("/v2/models/linear", b"", verb="GET"),
        head("/metrics", b"", verb="GET") + head("/predictions/linear", row, json_type),
    ]


def mutated(random_: random.Random, data: bytes) -> bytes:
    """The bytes with one to three small things wrong."""
    for _ in range(random_.randint(1, 3)):
        data = random_.choice(edits(random_, data))() or b"\x00"
    return data


def edits(random_: random.Random, data: bytes) -> list[Callable[[], bytes]]:
    at = random_.randrange(len(data) + 1)
    to = min(len(data), at + random_.randint(1, 24))
    piece = random_.randbytes(random_.randint(1, 12))
    length = random_.choice([0, 1, 7, 2**31, 2**64, -1])
    number = random_.choice([b"1e999", b"-1", b"9" * 40, b"[[[", b"NaN"])
    return [
        lambda: data[:at] + data[to:],
        lambda: data[:to] + data[at:],
        lambda: data[:at] + piece + data[at:],
        lambda: data[:at] + piece + data[at + len(piece) :],
        lambda: data[:at],
        lambda: data + data,
        lambda: re.sub(rb"Length: \d+", b"Length: %d" % length, data),
        lambda: re.sub(rb"\d+", number, data, count=1),
        lambda: data.replace(b"\r\n", random_.choice([b"\n", b"\r", b"\r\n "]), 1),
        lambda: data.replace(b"Host", random_.choice([b"Transfer-Encoding: chunked\r\nHost", b"Ho\x00st"])),
        lambda: data.replace(b"Host", b"X: " + b"a" * random_.choice([5000, 70000]) + b"\r\nHost", 1),
        lambda: data.replace(b"Host", b"X: y\r\n" * random_.choice([50, 5000]) + b"Host", 1),
    ]


def exchange(url: str, data: bytes) -> bytes:
    """All that comes back until the server closes, or says nothing more."""
    found = b""
    address = urlsplit(url)
    with socket.create_connection((address.hostname, address.port), timeout=30) as connection:
        try:
            connection.sendall(data)
            connection.settimeout(QUIET_S)
            while part := connection.recv(65536):
                found += part
        except (TimeoutError, ConnectionError):
            pass
    return found


def require_decent(data: bytes, answer: bytes) -> None:
    statuses = [int(status) for status in re.findall(rb"(?:^|(?<=[}\]\n.]))HTTP/1\.1 (\d{3}) ", answer)]
    assert set(statuses) <= DOCUMENTED, (statuses, data, answer)
    assert REVEALING.search(answer) is None, (data, answer)


@pytest.fixture(scope="module", params=["fast", "asgi"])
def server(request: pytest.FixtureRequest) -> Iterator[ServerProcess]:
    arguments = [
        LINEAR,
        "--http",
        request.param,
        "--grpc-port",
        "0",
        "--body-limit-mb",
        "1",
        "--timeout-s",
        "5",
    ]
    with ServerProcess(arguments) as found:
        yield found
    assert found.exit_code == 0
    assert "Traceback" not in found.log()
    assert "level=error" not in found.log()


def answers_as_ever(server: ServerProcess) -> None:
    status, _, told = ask(server.url, "POST", "/predictions/linear", ROW, JSON)
    assert (status, told["greeting"], told["account"]) == (200, "hello Ada", 5)
    assert ask(server.url, "GET", "/v2/health/ready")[0] == 200


def open_files(server: ServerProcess) -> int:
    return len(list(Path(f"/proc/{server.pid}/fd").iterdir()))


def test_mutated_requests_harm_nobody(server: ServerProcess):
    for data in corpus()[:5]:
        assert b" 200 " in exchange(server.url, data)[:20], data
    before = open_files(server)
    random_ = random.Random(20240607)
    known = corpus()
    cases = [mutated(random_, random_.choice(known)) for _ in range(CASES)]
    with ThreadPoolExecutor(16) as pool:
        for data, answer in zip(cases, pool.map(lambda data: exchange(server.url, data), cases), strict=True):
            require_decent(data, answer)
    answers_as_ever(server)
    until(lambda: open_files(server) <= before)


def test_bytes_that_are_no_http_harm_nobody(server: ServerProcess):
    random_ = random.Random(7)
    cases = [random_.randbytes(random_.randint(1, 3000)) for _ in range(60)]
    cases += [b"\x16\x03\x01\x02\x00\x01\x00" + random_.randbytes(500), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]
    with ThreadPoolExecutor(16) as pool:
        for data, answer in zip(cases, pool.map(lambda data: exchange(server.url, data), cases), strict=True):
            require_decent(data, answer)
    answers_as_ever(server)


def test_mutated_messages_of_grpc_harm_nobody(server: ServerProcess):
    grpc = pytest.importorskip("grpc")
    from parity.codec.oip_messages import message_type

    message: Any = message_type("ModelInferRequest")(model_name="linear")
    message.inputs.add(name="features", datatype="FP32", shape=[1, 8])
    message.inputs.add(name="account", datatype="INT64", shape=[1])
    message.inputs.add(name="at", datatype="BYTES", shape=[1])
    at = struct.pack("<I", len(AT)) + AT.encode()
    message.raw_input_contents.extend([np.arange(8, dtype="<f4").tobytes(), np.array([5]).tobytes(), at])
    message.parameters["null_rows"].bool_param = True
    data = message.SerializeToString()
    random_ = random.Random(11)
    codes: set[str] = set()
    told: list[str] = []
    with grpc.insecure_channel(server.grpc) as channel:
        infer = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
        infer(data, timeout=30)
        for number in range(len(data) + 300):
            case = data[:number] if number < len(data) else mutated(random_, data)
            try:
                infer(case, timeout=30)
            except grpc.RpcError as exc:
                codes.add(exc.code().name)
                told.append(exc.details() or "")
    assert not [text for text in told if REVEALING.search(text.encode())]
    assert codes <= {"INVALID_ARGUMENT", "NOT_FOUND", "RESOURCE_EXHAUSTED"}
    answers_as_ever(server)
