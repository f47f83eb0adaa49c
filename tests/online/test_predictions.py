"""POST /predictions on a real server: rows in, answers out, and every way to send it wrong."""

import http.client
import json
import re
import socket
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.online.serving import JSON, Probe, ask

pytestmark = pytest.mark.slow

PATH = "/predictions/probe"


def test_one_object_gets_one_object(probe: Probe):
    status, headers, answer = probe.ask(PATH, {"id": 1, "x": 2.5})
    assert (status, answer) == (200, {"id": 1, "y": 6.0, "rows": 1})
    assert headers["content-type"] == "application/json"
    assert "x-row-errors" not in headers


def test_a_list_gets_a_list_in_its_order(probe: Probe):
    status, _, answers = probe.ask(PATH, [{"id": number, "x": number} for number in range(12)])
    assert status == 200
    assert [(answer["id"], answer["y"]) for answer in answers] == [(n, 2.0 * n + 1) for n in range(12)]
    assert {answer["rows"] for answer in answers} <= {8, 4}, "a long list is cut to batches"


def test_an_empty_list_is_refused_as_no_rows_are_in_every_protocol(probe: Probe):
    status, _, answer = probe.ask(PATH, [])
    assert (status, answer["code"]) == (400, 400)
    assert answer["message"] == "the request has 0 rows: expected 1 to 16; send at least one"


def test_int64_is_exact_beyond_53_bits(probe: Probe):
    assert probe.ask(PATH, {"id": 2**63 - 1})[2]["id"] == 2**63 - 1


def test_the_version_may_be_named(probe: Probe):
    assert probe.ask(f"{PATH}/3", {"id": 1})[0] == 200


def test_a_request_id_is_echoed(probe: Probe):
    assert probe.ask(PATH, {"id": 1}, {"X-Request-Id": "abc-1"})[1]["x-request-id"] == "abc-1"
    status, headers, answer = probe.ask(PATH, {"id": "no"}, {"X-Request-Id": "abc-2"})
    assert (status, headers["x-request-id"], answer["id"]) == (400, "abc-2", "abc-2")
    assert "x-request-id" not in probe.ask(PATH, {"id": 1})[1]


def test_in_a_list_each_bad_row_is_answered_for_itself(probe: Probe):
    rows: list[Any] = [
        {"id": 1, "x": 1.0},
        {"id": 1.5},
        {"id": 3, "act": "raise"},
        {"id": 4, "act": "reject"},
        {"id": 5, "act": "nan"},
        7,
        {"id": 6, "x": 2.0},
    ]
    status, headers, answers = probe.ask(PATH, rows)
    assert status == 200
    assert headers["x-row-errors"] == "5"
    assert [answers[0]["y"], answers[6]["y"]] == [3.0, 5.0]
    errors = {place: answer["error"] for place, answer in enumerate(answers) if "error" in answer}
    assert {place: (error["row"], error["kind"], error["field"]) for place, error in errors.items()} == {
        1: (1, "invalid", "id"),
        2: (2, "failed", None),
        3: (3, "rejected", None),
        4: (4, "failed", "y"),
        5: (5, "invalid", None),
    }
    assert errors[2]["stage"] == "inference"
    assert "act says reject" in errors[3]["message"]


def test_a_list_of_bad_rows_is_still_answered(probe: Probe):
    status, headers, answers = probe.ask(PATH, [{}, {"id": None}])
    assert (status, headers["x-row-errors"]) == (200, "2")
    assert [answer["error"]["kind"] for answer in answers] == ["invalid", "invalid"]


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ({"id": "1"}, "id"),
        ({"id": 1.5}, "id"),
        ({"id": True}, "id"),
        ({"id": None}, "id"),
        ({"id": 2**63}, "id"),
        ({"x": 1.0}, "id"),
        ({"id": 1, "x": "many"}, "x"),
        ({"id": 1, "act": "dance"}, "act"),
        ({"id": 1, "y": 1}, None),
    ],
)
def test_a_row_that_does_not_fit_is_400_and_names_the_field(probe: Probe, row: object, field: str | None):
    status, _, answer = probe.ask(PATH, row)
    assert status == 400
    assert answer["rows"][0]["kind"] == "invalid"
    assert answer["rows"][0]["field"] == field
    assert field is None or field in answer["error"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nonsense",
        b'{"id": 1, "x": NaN}',
        b"\xff\xfe",
        b'"text"',
        b"12",
        b"null",
        b"[" * 3000 + b"]" * 3000,
        b'{"id":' * 2000 + b"1" + b"}" * 2000,
        b'{"id": 1} trailing',
    ],
    ids=lambda body: repr(body[:12]),
)
def test_a_malformed_body_is_400(probe: Probe, body: bytes):
    status, headers, answer = probe.ask(PATH, body)
    assert status == 400
    assert set(answer) == {"code", "type", "message", "error", "id"}
    assert headers["x-request-id"] == answer["id"]


def test_a_rejected_row_is_400_with_the_handlers_reason(probe: Probe):
    status, _, answer = probe.ask(PATH, {"id": 1, "act": "reject"})
    assert (status, answer["rows"][0]["kind"]) == (400, "rejected")
    assert "act says reject" in answer["error"]


def test_a_failed_row_is_500_and_tells_nothing_but_its_id(probe: Probe):
    status, _, answer = probe.ask(PATH, {"id": 1, "act": "raise"})
    assert (status, answer["rows"][0]["kind"], answer["rows"][0]["stage"]) == (500, "failed", "inference")
    assert "secret-42" not in str(answer)
    assert "LookupError" not in str(answer)
    line = next(line for line in probe.server.log().splitlines() if f"id={answer['id']} " in line)
    assert "raised LookupError" in line
    assert "secret-42" not in line
    number = re.search(r"batch (\d+)", line)
    assert number is not None
    traceback = next(line for line in probe.server.log().splitlines() if f" batch={number[1]}" in line)
    assert "LookupError" in traceback
    assert "handler.py" in traceback


def test_an_answer_that_json_cannot_tell_is_500(probe: Probe):
    status, _, answer = probe.ask(PATH, {"id": 1, "act": "nan"})
    assert (status, answer["rows"][0]["kind"], answer["rows"][0]["field"]) == (500, "failed", "y")


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/json; charset=latin-1"},
        {**JSON, "Content-Encoding": "br"},
        {**JSON, "Inference-Header-Content-Length": "10"},
    ],
)
def test_another_content_type_is_415(probe: Probe, headers: dict[str, str]):
    status, _, answer = ask(probe.server.url, "POST", PATH, b'{"id": 1}', headers)
    assert status == 415
    assert answer["error"]


@pytest.mark.parametrize(
    "headers",
    [{}, {"Content-Type": "application/json; charset=utf-8"}, {"Content-Type": "application/x+json"}],
)
def test_json_by_another_name_or_none_is_taken(probe: Probe, headers: dict[str, str]):
    assert ask(probe.server.url, "POST", PATH, b'{"id": 1}', headers)[0] == 200


@pytest.mark.parametrize("value", ["soon", "0", "-1", "nan", "inf"])
def test_a_senseless_timeout_is_400(probe: Probe, value: str):
    status, _, answer = probe.ask(PATH, {"id": 1}, {"X-Request-Timeout": value})
    assert status == 400
    assert "X-Request-Timeout" in answer["error"]


def test_a_body_over_the_limit_is_413_and_the_client_sees_it(probe: Probe):
    status, _, answer = probe.ask(PATH, b" " * (3 * 2**20), {"Connection": "close"})
    assert status == 413
    assert "1048576" in answer["error"]


def test_a_chunked_body_over_the_limit_is_413(probe: Probe):
    connection = http.client.HTTPConnection(urlsplit(probe.server.url).netloc, timeout=60)
    try:
        chunks = (b" " * 65536 for _ in range(32))
        connection.request("POST", PATH, chunks, JSON, encode_chunked=True)
        assert connection.getresponse().status == 413
    finally:
        connection.close()


def test_a_chunked_body_within_the_limit_is_read(probe: Probe):
    connection = http.client.HTTPConnection(urlsplit(probe.server.url).netloc, timeout=60)
    try:
        connection.request("POST", PATH, iter([b'{"id"', b": 1}"]), JSON, encode_chunked=True)
        assert connection.getresponse().status == 200
    finally:
        connection.close()


def test_a_large_body_within_the_limit_is_read(probe: Probe):
    assert probe.ask(PATH, b'{"id": 5' + b" " * 500_000 + b"}")[2]["id"] == 5


def test_a_body_that_comes_in_pieces_is_read(probe: Probe):
    with raw(probe) as connection:
        connection.sendall(post(b'{"id": 7}')[:-4])
        assert probe.ask(PATH, {"id": 8})[0] == 200
        connection.sendall(b": 7}")
        assert answers(connection, 1) == [(200, {"id": 7, "y": 1.0, "rows": 1})]


def test_pipelined_requests_are_answered_in_order(probe: Probe):
    with raw(probe) as connection:
        bodies = [b'{"id": %d}' % number for number in range(4)]
        ready = b"GET /v2/health/ready HTTP/1.1\r\nHost: x\r\n\r\n"
        connection.sendall(b"".join([*map(post, bodies), ready, post(b"{"), post(b'{"id": 9}')]))
        found = answers(connection, 7)
    assert [status for status, _ in found] == [200, 200, 200, 200, 200, 400, 200]
    assert [answer["id"] for _, answer in found[:4]] == [0, 1, 2, 3]
    assert found[4][1] == {"ready": True}
    assert found[6][1]["id"] == 9


def test_the_client_may_ask_to_close(probe: Probe):
    with raw(probe) as connection:
        connection.sendall(post(b'{"id": 1}', "Connection: close\r\n"))
        text = b"".join(iter(lambda: connection.recv(65536), b""))
    assert text.startswith(b"HTTP/1.1 200")
    assert b"connection: close" in text


def test_http_1_0_is_answered_and_closed(probe: Probe):
    with raw(probe) as connection:
        connection.sendall(post(b'{"id": 1}').replace(b"HTTP/1.1", b"HTTP/1.0"))
        assert b"".join(iter(lambda: connection.recv(65536), b"")).endswith(b'"rows":1}')


def test_expect_100_continue_is_honoured(probe: Probe):
    with raw(probe) as connection:
        connection.sendall(post(b"", "Expect: 100-continue\r\n").replace(b"Length: 0", b"Length: 9"))
        assert connection.recv(65536).startswith(b"HTTP/1.1 100")
        connection.sendall(b'{"id": 3}')
        assert answers(connection, 1)[0][1]["id"] == 3


def raw(probe: Probe) -> socket.socket:
    host, _, port = urlsplit(probe.server.url).netloc.partition(":")
    return socket.create_connection((host, int(port)), timeout=30)


def post(body: bytes, more: str = "") -> bytes:
    return f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode() + body


def answers(connection: socket.socket, count: int) -> list[tuple[int, Any]]:
    """So many JSON answers that come one after the other on a connection."""
    file = connection.makefile("rb")
    found: list[tuple[int, Any]] = []
    for _ in range(count):
        status = int(file.readline().split()[1])
        length = 0
        while line := file.readline().strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        found.append((status, json.loads(file.read(length))))
    file.close()
    return found


def test_more_rows_than_the_queue_holds_is_413(probe: Probe):
    status, _, answer = probe.ask(PATH, [{"id": number} for number in range(17)])
    assert status == 413
    assert "parity batch" in answer["error"]


@pytest.mark.parametrize(
    ("verb", "path", "status", "hint"),
    [
        ("POST", "/predictions/prob", 404, "'probe'"),
        ("POST", "/predictions/probe/9", 404, "'3'"),
        ("POST", "/v2/models/linaer/infer", 404, "'linear'"),
        ("GET", "/v2/models/linaer", 404, "'linear'"),
        ("GET", "/predictions/probe", 405, "GET"),
        ("DELETE", "/predictions/probe", 405, "DELETE"),
        ("POST", "/predict", 404, "/docs"),
        ("POST", "/v2/health/live", 405, "POST"),
    ],
)
def test_a_wrong_turn_is_told_where_to_go(probe: Probe, verb: str, path: str, status: int, hint: str):
    got, _, answer = ask(probe.server.url, verb, path, b"{}" if verb != "GET" else None, JSON)
    assert got == status
    assert hint in answer["error"]
    assert answer["id"]
