"""Heads of requests: their time, their size and the number of their headers; and connections that idle."""

import asyncio
import json
import logging
import socket
from urllib.parse import urlsplit

import pytest

from parity_online.closing import ClosingProtocol
from parity_online.fastpath import FastPath
from parity_online.heads import HEAD_BYTES, HEAD_S, HEADERS_MOST, HeadProtocol
from parity_online.models import Models
from parity_online.process import ServerProcess
from parity_online.protocol import FastProtocol
from parity_online.settings import ServerSettings
from tests.online.serving import LINEAR
from tests.online.virtual_time import run
from tests.online.wires import connect

KINDS = pytest.mark.parametrize("kind", [FastProtocol, HeadProtocol])
GET = b"GET /there HTTP/1.1\r\nHost: x\r\n"


async def app(scope: object, receive: object, send: object) -> None:
    """Answers everything after a second."""
    await asyncio.sleep(1.0)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})  # pyright: ignore
    await send({"type": "http.response.body", "body": b"ok"})  # pyright: ignore


def server() -> FastPath:
    return FastPath(app, Models([]), ServerSettings())  # pyright: ignore[reportArgumentType]


def status(sent: bytes) -> int:
    return int(sent[9:12])


@KINDS
def test_a_head_has_its_time_and_no_more(kind: type[ClosingProtocol]):
    async def main() -> None:
        protocol, wire = connect(server(), kind)
        for letter in GET:
            protocol.data_received(bytes([letter]))
            await asyncio.sleep(HEAD_S / len(GET) - 0.01)
        assert not wire.is_closed
        await asyncio.sleep(1.0)
        assert wire.is_closed
        assert status(wire.sent) == 408
        assert f"within {HEAD_S:g} s" in json.loads(wire.sent.partition(b"\r\n\r\n")[2])["error"]

    run(main())


@KINDS
def test_the_next_head_of_a_connection_has_its_time_too(kind: type[ClosingProtocol]):
    async def main() -> None:
        protocol, wire = connect(server(), kind)
        protocol.data_received(GET + b"\r\n" + GET)
        await asyncio.sleep(2.0)
        assert status(wire.sent) == 200
        wire.sent = b""
        await asyncio.sleep(HEAD_S)
        assert (status(wire.sent), wire.is_closed) == (408, True)

    run(main())


@KINDS
def test_a_connection_that_says_nothing_is_closed_without_a_word(kind: type[ClosingProtocol]):
    async def main() -> None:
        _, wire = connect(server(), kind)
        await asyncio.sleep(HEAD_S + 1)
        assert (wire.sent, wire.is_closed) == (b"", True)

    run(main())


@KINDS
@pytest.mark.parametrize("cut", [0, 1, 7])
@pytest.mark.parametrize(
    ("head", "why"),
    [
        (GET + b"".join(b"X-%d: y\r\n" % n for n in range(HEADERS_MOST)), "100 headers"),
        (GET + b"X: " + b"y" * HEAD_BYTES + b"\r\n", "65536 bytes"),
        (GET + b"".join(b"X-%d: %s\r\n" % (n, b"y" * 8000) for n in range(9)), "65536 bytes"),
        (b"GET /" + b"y" * HEAD_BYTES + b" HTTP/1.1\r\nHost: x\r\n", "65536 bytes"),
    ],
)
def test_a_head_that_is_too_much_is_431_however_it_comes(
    kind: type[ClosingProtocol], head: bytes, why: str, cut: int, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)

    async def main() -> None:
        protocol, wire = connect(server(), kind)
        size = len(head) // cut if cut else len(head) + 2
        data = head + b"\r\n"
        for start in range(0, len(data), size):
            if not wire.is_closed:
                protocol.data_received(data[start : start + size])
        assert (status(wire.sent), wire.is_closed) == (431, True)
        assert why in json.loads(wire.sent.partition(b"\r\n\r\n")[2])["error"]

    run(main())
    (line,) = [record.getMessage() for record in caplog.records if "request_failed" in record.getMessage()]
    assert "status=431 client=127.0.0.1 kind=head" in line


@KINDS
def test_a_head_at_the_limits_is_served(kind: type[ClosingProtocol]):
    async def main() -> None:
        protocol, wire = connect(server(), kind)
        filler = b"".join(b"X-%d: %s\r\n" % (n, b"y" * 600) for n in range(HEADERS_MOST - 1))
        for _ in range(3):
            wire.sent = b""
            protocol.data_received(GET + filler + b"\r\n")
            await asyncio.sleep(2.0)
            assert (status(wire.sent), wire.is_closed) == (200, False)

    run(main())


@KINDS
@pytest.mark.parametrize("junk", [GET + b"X-Y: z\r\n" * 200, GET + b"Z: " + b"z" * 70000, b"\x16\x03 junk"])
def test_what_is_refused_behind_a_request_costs_it_no_answer(kind: type[ClosingProtocol], junk: bytes):
    async def main() -> None:
        protocol, wire = connect(server(), kind)
        protocol.data_received(GET + b"\r\n" + junk)
        protocol.data_received(b"z" * 70000)
        assert wire.sent == b""
        await asyncio.sleep(2.0)
        assert status(wire.sent) == 200
        assert wire.sent.count(b"HTTP/1.1") == 1
        assert b"connection: close" in wire.sent
        assert wire.is_closed

    run(main())


@KINDS
def test_a_large_body_before_half_a_head_is_not_taken_for_a_head(kind: type[ClosingProtocol]):
    async def main() -> None:
        protocol, wire = connect(server(), kind)
        body = b"y" * 100_000
        post = b"POST /there HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"
        protocol.data_received(post + body + GET)
        await asyncio.sleep(2.0)
        protocol.data_received(b"\r\n")
        await asyncio.sleep(2.0)
        assert wire.sent.count(b"HTTP/1.1 200") == 2

    run(main())


@KINDS
def test_a_connection_is_closed_once_it_has_been_idle_for_so_long_and_not_before(
    kind: type[ClosingProtocol],
):
    async def main() -> None:
        protocol, wire = connect(server(), kind, keep_alive_s=10)
        for pause_s in (8.0, 2.0, 8.5):  # after an answer that takes a second
            protocol.data_received(GET + b"\r\n")
            await asyncio.sleep(1.0 + pause_s)
            assert not wire.is_closed
        protocol.data_received(GET + b"\r\n")
        await asyncio.sleep(10.5)
        assert not wire.is_closed
        await asyncio.sleep(1.0)
        assert wire.is_closed
        assert wire.sent.count(b"HTTP/1.1 200") == 4

    run(main())


@KINDS
def test_a_request_that_takes_longer_than_idle_connections_live_is_answered(kind: type[ClosingProtocol]):
    async def slow(scope: object, receive: object, send: object) -> None:
        await asyncio.sleep(30.0)
        await app(scope, receive, send)

    async def main() -> None:
        fast = FastPath(slow, Models([]), ServerSettings())  # pyright: ignore[reportArgumentType]
        protocol, wire = connect(fast, kind, keep_alive_s=10)
        for count in (1, 2):
            protocol.data_received(GET + b"\r\n")
            await asyncio.sleep(32.0)
            assert (wire.sent.count(b"HTTP/1.1 200"), wire.is_closed) == (count, False)
        protocol.connection_lost(None)
        assert not [handle for handle in asyncio.get_running_loop()._scheduled if not handle.cancelled()]  # pyright: ignore

    run(main())


@pytest.mark.slow
@pytest.mark.parametrize("http", ["fast", "asgi"])
def test_a_real_server_says_431_and_logs_it(http: str):
    with ServerProcess([LINEAR, "--http", http, "--gate", "off"]) as running:
        address = urlsplit(running.url)
        with socket.create_connection((str(address.hostname), int(address.port or 0)), timeout=30) as client:
            client.sendall(GET + b"X-Y: z\r\n" * 200 + b"\r\n")
            answer = b""
            while part := client.recv(65536):
                answer += part
        assert answer.startswith(b"HTTP/1.1 431 ")
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["id"] in running.log()
