"""SIGTERM under load: no connection is reset, and what could be answered is answered."""

import asyncio
import contextlib
import json
import os
import random
from collections import Counter
from urllib.parse import urlsplit

import pytest

from parity_online.process import ServerProcess
from tests.online.serving import PROBE

pytestmark = pytest.mark.slow

SIGTERMS = int(os.environ.get("PARITY_CHAOS_SIGTERMS", "1"))


class Caller:
    """A client that pauses for up to `pause_s` between the requests of a kept connection, or keeps none."""

    def __init__(self, url: str, number: int, pause_s: float | None, outcomes: Counter[str]) -> None:
        parts = urlsplit(url)
        self.host, self.port = parts.hostname, parts.port
        self.random = random.Random(number)
        self.pause_s = pause_s
        self.outcomes = outcomes

    async def call(self) -> None:
        while True:
            try:
                reader, writer = await asyncio.open_connection(self.host, self.port)
            except OSError:
                return  # nothing was asked
            try:
                await self.use(reader, writer)
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()

    async def use(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = "a new connection"
        while True:
            outcome, keeps = await self.ask(reader, writer)
            known = outcome in ("200", "503")
            self.outcomes[outcome if known else f"{outcome} on {connection}"] += 1
            if not keeps:
                return
            connection = "a kept connection"
            if self.pause_s:
                await asyncio.sleep(self.random.random() * self.pause_s)

    async def ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[str, bool]:
        number = self.random.randrange(1000)
        body = b'{"id": %d, "x": %d}' % (number, number)
        end = "Connection: close\r\n" if self.pause_s is None else ""
        head = f"POST /predictions/probe HTTP/1.1\r\nHost: x\r\n{end}Content-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        try:
            told = (await reader.readuntil(b"\r\n\r\n")).lower()
            text = await reader.readexactly(int(told.split(b"content-length:")[1].split(b"\r\n")[0]))
        except asyncio.IncompleteReadError as exc:
            return ("cut off" if exc.partial else "end"), False
        except ConnectionError:
            return "reset", False
        status = told[9:12].decode()
        if status == "200":
            assert json.loads(text)["y"] == 2.0 * number + 1
        else:
            assert status == "503", text
            assert b"connection: close" in told
            assert b"retry-after" in told
        return status, b"connection: close" not in told


@pytest.mark.parametrize("http", ["fast", "asgi"])
@pytest.mark.parametrize("turn", range(SIGTERMS))
def test_sigterm_resets_no_connection_and_answers_every_new_one(turn: int, http: str) -> None:
    outcomes: Counter[str] = Counter()

    async def main(server: ServerProcess) -> None:
        pauses = [0.0] * 8 + [0.02] * 8 + [0.4] * 8 + [None] * 8
        callers = [Caller(server.url, number, pause, outcomes) for number, pause in enumerate(pauses)]
        calling = [asyncio.create_task(caller.call()) for caller in callers]
        async with asyncio.timeout(60):
            while outcomes["200"] < 300:  # noqa: ASYNC110 - the callers count
                await asyncio.sleep(0.01)
        server.signal()
        await asyncio.gather(*calling)

    with ServerProcess([PROBE, "--http", http]) as server:
        asyncio.run(main(server))
        assert server.wait() == 0
    assert outcomes["503"], "those who came during the drain were told so"
    # An idle connection ends; a client whose request was under way sees that nothing was answered.
    assert set(outcomes) <= {"200", "503", "end on a kept connection"}, outcomes


def test_a_connection_that_has_not_asked_yet_is_answered_while_the_server_stops() -> None:
    async def main(server: ServerProcess) -> bytes:
        parts = urlsplit(server.url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        writer.write(b"POST /predictions/probe HTTP/1.1\r\nHost: x\r\nContent-")
        await writer.drain()
        server.signal()
        with contextlib.suppress(OSError):
            while True:  # until the port is closed
                _, other = await asyncio.open_connection(parts.hostname, parts.port)
                other.close()
                await asyncio.sleep(0.01)
        writer.write(b"Length: 9\r\n\r\n" + b'{"id": 1}')
        told = await reader.read()
        writer.close()
        return told

    with ServerProcess([PROBE]) as server:
        told = asyncio.run(main(server))
        assert server.wait() == 0
    assert told.startswith(b"HTTP/1.1 503 ")
    assert b"connection: close" in told.lower()


def test_an_idle_connection_ends_without_a_reset_whatever_it_still_sends() -> None:
    async def main(server: ServerProcess) -> tuple[bytes, bytes]:
        parts = urlsplit(server.url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        writer.write(b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0]))
        server.signal()
        ended = await reader.read()
        writer.write(b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n")  # it was under way
        await writer.drain()
        again = await reader.read()
        writer.close()
        await writer.wait_closed()
        return ended, again

    with ServerProcess([PROBE]) as server:
        assert asyncio.run(main(server)) == (b"", b"")
        assert server.wait() == 0
