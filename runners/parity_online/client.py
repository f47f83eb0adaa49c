"""A lean asyncio HTTP/1.1 client for one server: kept-alive connections, no dependency."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import orjson

from parity.errors import RunnerError

_READ_LIMIT_BYTES = 2**26


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP response; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> object:
        """The body as JSON."""
        return orjson.loads(self.body)


class Client:
    """Sends requests over at most `connections` connections at a time.

    Args:
        url: the server's root, as in http://127.0.0.1:8000.
        connections: most requests in flight.
    """

    def __init__(self, url: str, connections: int = 32) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80
        self._limit = asyncio.Semaphore(connections)
        self._idle: list[_Connection] = []

    async def __aenter__(self) -> Self:
        """Nothing is opened before it is needed."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the idle connections."""
        while self._idle:
            await self._idle.pop().close()

    async def get(self, path: str) -> Reply:
        """The answer to a GET."""
        return await self.send("GET", path, b"", ())

    async def post(self, path: str, body: bytes, headers: Sequence[tuple[str, str]] = ()) -> Reply:
        """The answer to a POST of JSON."""
        return await self.send("POST", path, body, (("Content-Type", "application/json"), *headers))

    async def send(self, verb: str, path: str, body: bytes, headers: Sequence[tuple[str, str]]) -> Reply:
        """The answer to a request.

        A kept-alive connection that the server closed before it answered anything is replaced once.

        Raises:
            RunnerError: the server closed the connection in the middle of an answer, or answered no HTTP.
            OSError: the server cannot be reached.
        """
        lines = [
            f"{verb} {path} HTTP/1.1",
            f"Host: {self._host}:{self._port}",
            f"Content-Length: {len(body)}",
        ]
        lines += [f"{name}: {value}" for name, value in headers]
        data = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body
        async with self._limit:
            while self._idle:
                kept = self._idle.pop()
                try:
                    return await self._exchange(kept, data)
                except _StaleConnectionError:
                    continue
            reader, writer = await asyncio.open_connection(self._host, self._port, limit=_READ_LIMIT_BYTES)
            try:
                return await self._exchange(_Connection(reader, writer), data)
            except _StaleConnectionError as exc:
                raise RunnerError(
                    f"{verb} {path}: the server closed the connection without an answer"
                ) from exc

    async def _exchange(self, connection: _Connection, data: bytes) -> Reply:
        keep = False
        try:
            reply = await connection.exchange(data)
            keep = reply.headers.get("connection", "").lower() != "close"
            return reply
        finally:
            if keep:
                self._idle.append(connection)
            else:
                await connection.close()


class _StaleConnectionError(Exception):
    """The server closed the connection before it answered anything."""


class _Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def exchange(self, data: bytes) -> Reply:
        try:
            self._writer.write(data)
            await self._writer.drain()
            head = await self._reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as exc:
            if exc.partial:
                raise RunnerError("the server closed the connection in the middle of an answer") from exc
            raise _StaleConnectionError from exc
        except ConnectionError as exc:
            raise _StaleConnectionError from exc
        status_line, *lines = head[:-4].decode("latin-1").split("\r\n")
        fields = (line.partition(":") for line in lines)
        headers = {name.strip().lower(): value.strip() for name, _, value in fields}
        status = int(status_line.split(" ", 2)[1])
        try:
            if headers.get("transfer-encoding", "").lower() == "chunked":
                body = await self._chunks()
            else:
                body = await self._reader.readexactly(int(headers.get("content-length", "0")))
        except asyncio.IncompleteReadError as exc:
            raise RunnerError("the server closed the connection in the middle of an answer") from exc
        return Reply(status, headers, body)

    async def _chunks(self) -> bytes:
        parts: list[bytes] = []
        while size := int((await self._reader.readuntil(b"\r\n")).split(b";")[0], 16):
            parts.append(await self._reader.readexactly(size))
            await self._reader.readexactly(2)
        await self._reader.readuntil(b"\r\n")
        return b"".join(parts)

    async def close(self) -> None:
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except OSError:
            return
