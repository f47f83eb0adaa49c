"""A connection without a socket: the server's protocol on a transport that remembers what was written."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Any, cast

import uvicorn
from uvicorn.server import ServerState

from parity_online.closing import ClosingProtocol


class Wire(asyncio.Transport):
    """The client's end: what was written, and whether the server has closed it."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 40000), "sockname": ("127.0.0.1", 8000)})
        self.sent = b""
        self.is_closed = False

    def write(self, data: Any) -> None:
        assert not self.is_closed, "written after it was closed"
        self.sent += bytes(data)

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.close()

    def pause_reading(self) -> None:
        """Nothing is sent by itself."""

    def resume_reading(self) -> None:
        """Nothing is sent by itself."""


@contextlib.asynccontextmanager
async def listening(app: Any, kind: type[ClosingProtocol]) -> AsyncGenerator[int]:
    """The port of sockets that protocols of this kind answer, on the running loop."""
    made: list[Any] = []

    def make() -> Any:
        made.append(_protocol(app, kind, 75))
        return made[-1]

    server = await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
        for protocol in made:
            protocol.transport.close()
        await asyncio.sleep(0)  # the sockets are closed in the loop's next turn


def connect(app: Any, kind: type[ClosingProtocol], keep_alive_s: int = 75) -> tuple[Any, Wire]:
    """A protocol of this kind with an open connection, on the running loop."""
    protocol = _protocol(app, kind, keep_alive_s)
    wire = Wire()
    protocol.connection_made(wire)
    return protocol, wire


def _protocol(app: Any, kind: type[ClosingProtocol], keep_alive_s: int) -> Any:
    config = uvicorn.Config(
        app,
        loop="none",
        http=kind,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        timeout_keep_alive=keep_alive_s,
    )
    config.load()
    state = ServerState()
    state.default_headers = [(b"date", b"Thu, 01 Jan 1970 00:00:00 GMT")]
    return cast("Any", kind)(config=config, server_state=state, app_state={})
