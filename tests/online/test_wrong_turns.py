"""Paths, verbs and bodies that nobody answers: who is told what."""

import itertools
import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from parity_online.process import ServerProcess
from parity_online.protocols import PROTOCOLS
from tests.online.serving import HANDLERS, JSON, LINEAR, address, all_of, ask

pytestmark = pytest.mark.slow

GETS = ("/", "/ping", "/metrics", "/docs", "/status.json", "/openapi.json", "/models", "/models/linear")
GETS += ("/v1/models", "/v1/models/linear", "/v1/models/linear/metadata", "/v2", "/v2/models/linear")
GETS += ("/v2/health/live", "/v2/health/ready", "/v2/models/linear/ready", "/v2/models/linear/config")
GETS += ("/v2/models/stats", "/v2/models/linear/stats", "/form.json?name=linear")
VERBS = ("POST", "PUT", "GET", "DELETE", "PATCH", "OPTIONS")
ROW = json.dumps({"features": [1] * 8, "account": None, "at": None}).encode()


@pytest.fixture(scope="module", params=["fast", "asgi"])
def server(request: pytest.FixtureRequest) -> Iterator[ServerProcess]:
    arguments = [LINEAR, str(HANDLERS / "picture"), "--http", request.param]
    with ServerProcess(arguments) as found:
        yield found


def paths() -> Iterator[tuple[Any, str, str, str]]:
    for protocol in PROTOCOLS:
        yield protocol, protocol.path.format(name="linaer"), "no model", "did you mean 'linear'"
        path = protocol.version_path
        yield protocol, path.format(name="linaer", version="1.0.0"), "no model", "did you mean 'linear'"
        yield protocol, path.format(name="linear", version="9"), "no version '9'", "'1'"


@pytest.mark.parametrize(("protocol", "path", "said", "hint"), list(paths()))
def test_a_name_or_version_that_is_not_there_is_told_to_every_verb_that_its_protocol_takes(
    server: ServerProcess, protocol: Any, path: str, said: str, hint: str
):
    for verb, body in itertools.product(VERBS, (b"", ROW)):
        status, headers, answer = ask(server.url, verb, path, body, JSON)
        if verb in protocol.verbs:
            assert (status, said in answer["error"], hint in answer["error"]) == (404, True, True), verb
        elif not (protocol.name == "v1" and verb == "GET"):  # there :predict is part of a name
            taken = set(headers["allow"].split(", ")) - ({"GET", "HEAD"} if protocol.name == "v1" else set())
            assert (status, taken) == (405, set(protocol.verbs)), verb


def test_explanations_are_not_offered_to_either_verb(server: ServerProcess):
    for verb in ("POST", "PUT"):
        assert ask(server.url, verb, "/explanations/linear", ROW)[0] == 501
        assert ask(server.url, verb, "/explanations/linaer", ROW)[0] == 404


@pytest.mark.parametrize("path", GETS)
def test_what_can_be_got_can_be_asked_for_its_head(server: ServerProcess, path: str):
    status, headers, _ = ask(server.url, "GET", path)
    assert status == 200
    with socket.create_connection(address(server.url), timeout=30) as client:
        client.sendall(f"HEAD {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        head, _, body = all_of(client).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert f"content-type: {headers['content-type']}".encode() in head
    assert body == b""
    status, headers, _ = ask(server.url, "DELETE", path)
    assert (status, headers["allow"]) == (405, "GET, HEAD")


ROWS = "a JSON object (one row) or a list of objects"
FILE = f"{ROWS}, or the file of the field 'image' (Image)"
EMPTY = [
    *(("/predictions/linear", kind, ROWS) for kind in ("application/json", "", "application/octet-stream")),
    *(("/predictions/picture", kind, FILE) for kind in ("application/json", "", "image/png")),
    ("/predictions/picture", "application/octet-stream", FILE),
    ("/predictions/picture", "multipart/form-data; boundary=b", "a form of at least one part"),
    ("/predictions/linear", "application/vnd.apache.arrow.stream", "an Arrow IPC stream"),
    ("/v2/models/linear/infer", "application/json", "a JSON object with 'inputs', a list of tensors"),
    ("/v1/models/linear:predict", "application/json", "a JSON object with 'instances' or 'inputs'"),
]


@pytest.mark.parametrize(("path", "kind", "expected"), EMPTY)
def test_an_empty_body_is_told_with_what_the_handler_takes(
    server: ServerProcess, path: str, kind: str, expected: str
):
    headers = {"Content-Type": kind} if kind else {}
    for verb in ("POST", "PUT") if path.startswith("/predictions") else ("POST",):
        status, _, answer = ask(server.url, verb, path, b"", headers)
        assert (status, answer["error"]) == (400, f"the body is empty: expected {expected}")


@pytest.mark.parametrize("said", ["null", "true", "false"])
def test_a_body_of_a_wrong_kind_is_told_as_it_was_written(server: ServerProcess, said: str):
    for path in ("/predictions/linear", "/v2/models/linear/infer", "/v1/models/linear:predict"):
        status, _, answer = ask(server.url, "POST", path, said.encode(), JSON)
        assert (status, f" is {said}" in answer["error"]) == (400, True), answer
    ready = {"ready": [json.loads(said)]}
    assert f"ready is [{said}];" in ask(server.url, "POST", "/v2/repository/index", ready, JSON)[2]["error"]
