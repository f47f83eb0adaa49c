"""A client that closes its half of a connection has left, as far as a server can tell: plainly or over TLS.

The end of what a client sends looks the same whether it still reads or has gone. One that has gone must not
keep its place in the queue; so one that half-closes gets no answer any more, only the end of the connection.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import pytest

from parity_online.process import ServerProcess
from tests.online.serving import PROBE, until

pytestmark = pytest.mark.slow

Got = TypeVar("Got")


class Plain:
    """A connection without TLS."""

    def __init__(self, url: str, certificate: Path) -> None:
        del certificate
        address = urlsplit(url)
        self.socket = socket.create_connection((address.hostname, address.port), timeout=30)

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def half_close(self) -> None:
        self.socket.shutdown(socket.SHUT_WR)

    def receive(self) -> bytes:
        return self.socket.recv(65536)

    def rest(self) -> bytes:
        """All that still comes; raises where the server resets the connection or goes on for too long."""
        found = b""
        while part := self.receive():
            found += part
        self.socket.close()
        return found


class Tls(Plain):
    """A connection with TLS, whose half is closed by a goodbye (close_notify)."""

    def __init__(self, url: str, certificate: Path) -> None:
        super().__init__(url, certificate)
        context = ssl.create_default_context(cafile=f"{certificate}.crt")
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_hostname="127.0.0.1")
        self._pump(self._tls.do_handshake)

    def send(self, data: bytes) -> None:
        self._pump(lambda: self._tls.write(data))

    def half_close(self) -> None:
        with pytest.raises(ssl.SSLWantReadError):
            self._tls.unwrap()
        self._flush()

    def receive(self) -> bytes:
        try:
            return self._pump(lambda: self._tls.read(65536))
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""

    def _pump(self, step: Callable[[], Got]) -> Got:
        while True:
            try:
                found = step()
            except ssl.SSLWantReadError:
                self._flush()
                came = self.socket.recv(65536)
                if came:
                    self._in.write(came)
                else:
                    self._in.write_eof()
            else:
                self._flush()
                return found

    def _flush(self) -> None:
        if told := self._out.read():
            self.socket.sendall(told)


class RudeTls(Tls):
    """A connection with TLS, whose socket is half-closed without a goodbye."""

    def half_close(self) -> None:
        self.socket.shutdown(socket.SHUT_WR)


def request(body: bytes, length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    return b"POST /predictions/probe HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" % (
        size,
        body,
    )


@pytest.mark.parametrize("kind", [Plain, Tls, RudeTls])
@pytest.mark.parametrize("http", ["fast", "asgi"])
def test_a_client_that_half_closes_has_left(kind: type[Plain], http: str, certificate: Path, tmp_path: Path):
    ran, gate = tmp_path / "ran", tmp_path / "gate"
    arguments = [PROBE, "--gate", "off", "--http", http, "--slot", "thread", "--max-batch", "1"]
    arguments += [] if kind is Plain else ["--tls-cert", str(certificate)]
    more: dict[str, Any] = {"environment": {"PROBE_RAN": str(ran)}}
    with ServerProcess([*arguments, "--log-level", "debug"], **more) as server:

        def connect() -> Plain:
            return kind(server.url, certificate)

        def left() -> int:
            return server.log().count(" status=499 ")

        busy = connect()
        busy.send(request(b'{"id": 1, "wait": "%s"}' % str(gate).encode()))
        queued, cut, idle = connect(), connect(), connect()
        queued.send(request(b'{"id": 2}'))
        queued.half_close()
        assert queued.rest() == b"", "it would have been answered later"
        cut.send(request(b'{"id": 3', 100))
        cut.half_close()
        assert cut.rest() == b""
        until(lambda: left() >= 1)
        gate.touch()
        assert busy.receive().startswith(b"HTTP/1.1 200 "), "whoever stays is answered"
        idle.send(request(b'{"id": 4}'))
        assert idle.receive().startswith(b"HTTP/1.1 200 ")
        idle.half_close()
        assert idle.rest() == b"", "an answered connection just ends"
        until(lambda: left() == 2)
        busy.half_close()
        assert busy.rest() == b""
        assert server.stop() == 0
        log = server.log()
    rows = set(map(int, ran.read_text().split()))
    assert rows & {1, 2, 3, 4} == {1, 4}, "who has left costs no batch"
    assert "Traceback" not in log
    assert "level=error" not in log
