"""What a client may do on the wire: no request is lost, none is smuggled, and who is refused sees why."""

import http.client
import itertools
import json
import re
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from parity_online.process import ServerProcess
from tests.online.serving import LINEAR, address, all_of

pytestmark = pytest.mark.slow

ROW = json.dumps({"features": [1] * 8, "account": None, "at": None}).encode()


@pytest.fixture(scope="module", params=["fast", "asgi"])
def server(request: pytest.FixtureRequest) -> Iterator[ServerProcess]:
    arguments = [LINEAR, "--http", request.param, "--body-limit-mb", "1", "--timeout-s", "1"]
    with ServerProcess(arguments) as found:
        yield found


def test_a_refused_head_has_no_body_that_would_be_taken_for_the_next_answer(server: ServerProcess):
    with socket.create_connection(address(server.url), timeout=30) as client:
        asked = b"HEAD /status.json HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n"
        client.sendall(asked + b"GET /ping HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        first, _, rest = all_of(client).partition(b"\r\n\r\n")
    assert first.startswith(b"HTTP/1.1 403")
    assert rest.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "path", ["/predictions/linear", "/predictions/linaer", "/v2/repository/models/a/load"]
)
def test_who_waits_to_be_asked_for_a_body_and_is_refused_is_told_that_the_connection_ends(
    server: ServerProcess, path: str
):
    """Its next request would be read as that body."""
    for verb, size in (("POST", 2_000_000), ("PUT", 2_000_000), ("POST", 20)):
        with socket.create_connection(address(server.url), timeout=30) as client:
            lines = (f"{verb} {path} HTTP/1.1", "Host: localhost", f"Content-Length: {size}")
            client.sendall("\r\n".join((*lines, "Expect: 100-continue\r\n\r\n")).encode())
            answer = all_of(client).removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
        assert answer[9:12] in (b"403", b"404", b"405", b"408", b"413"), answer
        assert b"\r\nconnection: close\r\n" in answer.lower()


def test_a_body_that_does_not_come_in_time_ends_its_connection_however_long_it_was_to_be(
    server: ServerProcess,
):
    heads = ("Content-Length: 100", "Content-Length: 800000", "Transfer-Encoding: chunked")
    for told in heads:
        with socket.create_connection(address(server.url), timeout=30) as client:
            lines = ("POST /predictions/linear HTTP/1.1", "Host: localhost", told)
            client.sendall("\r\n".join((*lines, "\r\n")).encode() + b"5\r\n12345\r\n")
            answer = all_of(client)
        assert answer.startswith(b"HTTP/1.1 408"), answer
        assert b"connection: close" in answer


@pytest.mark.parametrize("told", ["Content-Length", "chunks"])
@pytest.mark.parametrize("wish", ["h2c", "websocket", "TLS/1.0, h2c"])
def test_a_wish_for_another_protocol_is_ignored_and_costs_no_body(
    server: ServerProcess, told: str, wish: str
):
    """Java's client wishes for h2c; and a body that is read as requests smuggles them."""
    lines = ["POST /predictions/linear HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
    lines += [f"Upgrade: {wish}", "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAMAAABkAAQAAP__"]
    inner = b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for body, status in ((ROW, b"200"), (inner, b"400")):
        if told == "chunks":
            sent = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
            head = "\r\n".join([*lines, "Transfer-Encoding: chunked"]).encode() + b"\r\n\r\n"
        else:
            sent = body
            head = "\r\n".join([*lines, f"Content-Length: {len(body)}"]).encode() + b"\r\n\r\n"
        whole = head + sent + head + sent
        for cuts in ((), (len(head),), (len(head) + 3,), (10, len(head) - 2, len(head) + 5)):
            with socket.create_connection(address(server.url), timeout=30) as client:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for start, end in itertools.pairwise((0, *cuts, len(whole))):
                    client.sendall(whole[start:end])
                client.sendall(b"GET /ping HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                answer = all_of(client)
            found = [part[:3] for part in answer.split(b"HTTP/1.1 ")[1:]]
            assert found == [status, status, b"200"], (cuts, answer)


def test_a_trailer_is_no_header(server: ServerProcess):
    lines = ["POST /predictions/linear HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
    head = "\r\n".join([*lines, "Transfer-Encoding: chunked", "Trailer: X-Request-Id\r\n\r\n"]).encode()
    trailers = b"X-Request-Id: trailer\r\nX-Request-Timeout: never\r\nContent-Encoding: gzip"
    sent = head + b"%x\r\n%s\r\n0\r\n%s\r\n\r\n" % (len(ROW), ROW, trailers)
    with socket.create_connection(address(server.url), timeout=30) as client:
        client.sendall(sent + sent + b"GET /ping HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answer = all_of(client)
    assert answer.count(b"HTTP/1.1 200") == 3, answer
    assert b"trailer" not in answer


NO_HTTP = {
    "two lengths": b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
    "a length and chunks": b"POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0",
    "no colon": b"GET /ping HTTP/1.1\r\nHost a\r\n\r\n",
    "space before the colon": b"GET /ping HTTP/1.1\r\nHost : a\r\n\r\n",
    "NUL": b"GET /ping HTTP/1.1\r\nHost: a\x00b\r\n\r\n",
    "a folded header": b"GET /ping HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "CONNECT": b"CONNECT elsewhere:443 HTTP/1.1\r\nHost: a\r\n\r\n",
    "a size that is none": b"POST /ping HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
}


@pytest.mark.parametrize("sent", NO_HTTP.values(), ids=NO_HTTP)
def test_what_is_no_http_is_told_so_as_json_with_an_id_that_the_log_has(server: ServerProcess, sent: bytes):
    with socket.create_connection(address(server.url), timeout=30) as client:
        client.sendall(sent + b"x" * 3_000_000)  # and is read, so that no reset hides the answer
        head, _, body = all_of(client).partition(b"\r\n\r\n")
    answer = json.loads(body)
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"\r\nconnection: close" in head
    assert "no HTTP/1.1 request" in answer["error"]
    assert f"event=request_failed id={answer['id']} status=400" in server.log()


@pytest.mark.parametrize("sent", NO_HTTP.values(), ids=NO_HTTP)
def test_what_is_no_http_is_told_so_behind_a_request_that_was_answered(server: ServerProcess, sent: bytes):
    with socket.create_connection(address(server.url), timeout=30) as client:
        client.sendall(b"GET /ping HTTP/1.1\r\nHost: a\r\n\r\n")
        first = b""
        while not first.endswith(b"}"):
            first += client.recv(65536)
        client.sendall(sent)
        second = all_of(client)
    assert first.startswith(b"HTTP/1.1 200")
    assert second.startswith(b"HTTP/1.1 400 Bad Request\r\n")


def test_a_request_that_has_its_answer_gets_no_other_for_what_its_body_turns_out_to_be(server: ServerProcess):
    errors = _errors(server)
    with socket.create_connection(address(server.url), timeout=30) as client:
        client.sendall(b"POST /nowhere HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        first = b""
        while not first.endswith(b"}"):
            first += client.recv(65536)
        client.sendall(b"zz\r\n")
        assert all_of(client) == b""
    assert first.startswith(b"HTTP/1.1 404")
    assert _errors(server) == errors


def test_a_head_of_ten_million_bytes_is_refused_and_its_client_sees_why(server: ServerProcess):
    for start in (b"GET /ping HTTP/1.1\r\nX: ", b"GET /"):
        with socket.create_connection(address(server.url), timeout=30) as client:
            client.sendall(start + b"a" * 10_000_000 + b"\r\n\r\n")
            assert all_of(client).startswith(b"HTTP/1.1 431")


BAD_BODIES = {
    "a size that is none": b"zz\r\n",
    "a trailer too large": b"%x\r\n%s\r\n0\r\nX: %s\r\n\r\n" % (len(ROW), ROW, b"a" * 70_000),
}


@pytest.mark.parametrize("bad", BAD_BODIES.values(), ids=BAD_BODIES)
@pytest.mark.parametrize("before", [1, 2, 5])
def test_what_was_asked_before_a_malformed_request_is_answered(
    server: ServerProcess, before: int, bad: bytes
):
    start = b"POST /predictions/linear HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    whole = start + b"Content-Length: %d\r\n\r\n%s" % (len(ROW), ROW)
    errors = _errors(server)
    with socket.create_connection(address(server.url), timeout=30) as client:
        client.sendall(whole * before + start + b"Transfer-Encoding: chunked\r\n\r\n" + bad)
        answer = all_of(client)
    assert [part[:3] for part in answer.split(b"HTTP/1.1 ")[1:]] == [b"200"] * before
    assert _errors(server) == errors


@pytest.mark.parametrize(
    "path", ["/nowhere", "/predictions/linear", "/predictions/linaer", "/v2/repository/index", "/ping"]
)
def test_a_request_that_is_malformed_behind_its_head_has_one_answer_and_no_traceback(
    server: ServerProcess, path: str
):
    errors = _errors(server)
    head = f"POST {path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    for pause_s in (0.0, 0.1):
        with socket.create_connection(address(server.url), timeout=30) as client:
            client.sendall(head)
            time.sleep(pause_s)
            client.sendall(b"zz\r\n")
            answer = all_of(client)
        assert len(re.findall(rb"HTTP/1\.1 \d", answer)) == 1, answer
    assert _errors(server) == errors


@pytest.mark.parametrize("told", ["Content-Length", "chunks"])
@pytest.mark.parametrize("size", [2_000_000, 30_000_000])
def test_a_body_that_is_too_large_is_refused_and_its_client_sees_why(
    server: ServerProcess, size: int, told: str
):
    connection = http.client.HTTPConnection(*address(server.url), timeout=30)
    body = b"x" * size
    connection.request("POST", "/predictions/linear", iter([body]) if told == "chunks" else body)
    assert connection.getresponse().status == 413
    connection.close()


def test_thousands_of_wishes_in_one_packet_are_all_answered(server: ServerProcess):
    head = b"GET /ping HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n"
    last = b"GET /ping HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    with socket.create_connection(address(server.url), timeout=60) as client:
        sending = threading.Thread(target=client.sendall, args=(head * 3000 + last,))
        sending.start()
        assert all_of(client).count(b"HTTP/1.1 200") == 3001
        sending.join()


def test_a_body_that_is_coded_for_its_way_is_501_and_encodings_add_up(server: ServerProcess):
    for coded in ("gzip, chunked", "deflate, chunked"):
        with socket.create_connection(address(server.url), timeout=30) as client:
            lines = ("POST /predictions/linear HTTP/1.1", "Host: localhost", "Connection: close")
            head = "\r\n".join((*lines, f"Transfer-Encoding: {coded}\r\n\r\n")).encode()
            client.sendall(head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(ROW), ROW))
            assert all_of(client).startswith(b"HTTP/1.1 501")
    connection = http.client.HTTPConnection(*address(server.url), timeout=30)
    connection.putrequest("POST", "/predictions/linear")
    for name, value in (("Content-Encoding", "gzip"), ("Content-Encoding", "deflate")):
        connection.putheader(name, value)
    connection.putheader("Content-Length", str(len(ROW)))
    connection.endheaders(ROW)
    response = connection.getresponse()
    assert (response.status, "gzip, deflate" in response.read().decode()) == (415, True)
    connection.close()


def _errors(server: ServerProcess) -> int:
    log = server.log()
    return log.count("Traceback") + log.count("level=error")
