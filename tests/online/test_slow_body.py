"""A body that does not come in the request's time is answered 408, whichever way it is read."""

from __future__ import annotations

import json
import socket
from urllib.parse import urlsplit

import pytest

from parity_online.process import ServerProcess
from tests.online.serving import LINEAR, ask

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("http", ["fast", "asgi"])
def test_a_body_that_stops_half_way_is_answered_408_and_the_server_goes_on(http: str):
    with ServerProcess([LINEAR, "--http", http, "--gate", "off"]) as server:
        address = urlsplit(server.url)
        with socket.create_connection((str(address.hostname), int(address.port or 0)), timeout=30) as client:
            client.sendall(
                b"POST /predictions/linear HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n"
                b"X-Request-Timeout: 0.3\r\nContent-Length: 500\r\n\r\n" + b'{"x": '
            )
            answer = b""
            while not answer.endswith(b"}"):
                answer += client.recv(65536)
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 408 ")
        assert "did not arrive within 0.3 s" in json.loads(body)["error"]
        assert ask(server.url, "GET", "/v2/health/live")[0] == 200
