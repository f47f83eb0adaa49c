"""The head of a request: how long it may take to come, how large it may be, how many headers it may have.

A client that trickles a head holds no connection for ever, and one that sends a huge head fills no memory.
What is refused here, and what is no HTTP, never was a request: it is answered 400, 408 or 431, logged, and
its connection ends. Where an earlier request of the connection still waits for its answer, that one is
answered, and then it ends.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from parity_online import logs
from parity_online.closing import ClosingProtocol
from parity_online.plain_parser import PlainParser
from parity_online.problems import ProblemError, new_id, render
from parity_online.wire import status_line

logger = logging.getLogger(__name__)

HEAD_S = 20.0
"""How long the head of a request may take."""

HEAD_BYTES = 65536
"""The largest head of a request."""

HEADERS_MOST = 100
"""So many headers it may have."""

_NO_HTTP = (
    "what came is no HTTP/1.1 request: send a request line, headers with a colon, and the length of the body "
    "in one way only, Content-Length or Transfer-Encoding: chunked"
)


class _HeadRefusedError(Exception):
    """Ends the parser's work; it does not get further than the parser."""


class HeadProtocol(ClosingProtocol):
    """A protocol with these limits, whatever becomes of a request after its head."""

    _head_timer: asyncio.TimerHandle | None = None
    _heads = 0
    _head_bytes = 0
    _parsed_bytes = 0
    _refusal: ProblemError | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.parser: Any = PlainParser(self)

    def connection_made(self, transport: Any) -> None:
        """A client connects; it must send the head of a request in time."""
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(HEAD_S, self._close_slow_head)

    def on_message_begin(self) -> None:
        """A request begins."""
        self._begin_head()
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """A piece of its URL."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """One of its headers."""
        self._count(len(name) + len(value) + 4)
        if not self._in_head:
            return  # a trailer, behind a body in chunks: no header of its request
        super().on_header(name, value)
        if len(self.headers) > HEADERS_MOST:
            self._refuse_head(f"the head of the request has more than {HEADERS_MOST} headers")

    def on_headers_complete(self) -> None:
        """Its head has come."""
        if not self.parser.turns_plain():
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Its body has come."""
        if not self.parser.turns_plain():
            super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        """Parse what came."""
        heads = self._heads
        super().data_received(data)
        if self._in_head and self.parser is not None and not self._is_half_closed:
            # Before a head that began in these data there may be a body: of it only what is parsed counts.
            self._head_bytes += len(data) if self._heads == heads else 1
            if self._head_bytes > HEAD_BYTES:
                self._close_with(431, _too_large())
            elif self._head_timer is None:
                self._head_timer = self.loop.call_later(HEAD_S, self._close_slow_head)
        else:
            self._cancel_head_timer()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's
        """Answer what is no request, or one whose head is refused."""
        self._refuse(self._refusal or ProblemError(400, "malformed", _NO_HTTP))

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self._cancel_head_timer()
        super().connection_lost(exc)

    def _begin_head(self) -> None:
        self._in_head = True
        self._heads += 1
        self._head_bytes = self._parsed_bytes = 0

    def _cancel_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _count(self, size: int) -> None:
        self._parsed_bytes += size
        if self._parsed_bytes > HEAD_BYTES:
            self._refuse_head(_too_large())

    def _refuse_head(self, message: str) -> None:
        """Leave the parser, which leads to `send_400_response`.

        Raises:
            _HeadRefusedError: always.
        """
        self._refusal = ProblemError(431, "head", message)
        raise _HeadRefusedError(message)

    def _close_slow_head(self) -> None:
        self._head_timer = None
        self._close_with(408, f"the head of the request did not arrive within {HEAD_S:g} s")

    def _close_with(self, status: int, message: str) -> None:
        """End a connection whose request never began; one that has sent nothing is just closed."""
        if self.transport.is_closing():
            return
        if self._head_bytes or self._parsed_bytes:
            self._refuse(ProblemError(status, "head", message))
        else:
            self.transport.close()

    def _refuse(self, problem: ProblemError) -> None:
        if self.transport.is_closing() or self._is_half_closed:
            return
        request_id = new_id()
        logger.info(
            "event=request_failed id=%s status=%d client=%s kind=%s error=%s",
            request_id,
            problem.status,
            logs.text(self.client[0] if self.client is not None else "-"),
            problem.kind,
            logs.text(str(problem)),
        )
        if self._ends_after_answer():
            return
        cycle = self.cycle if self.cycle is not None and self.cycle.more_body else None
        if cycle is None or not cycle.response_complete:  # a request that has its answer gets no other
            answer = render(problem, request_id, close=True)
            head = b"".join(name + b": " + value + b"\r\n" for name, value in answer.headers)
            self.transport.write(status_line(problem.status) + head + b"\r\n" + answer.body)
        if cycle is not None:  # nor from the app, which waits for the rest of its body
            cycle.disconnected = True
            cycle.message_event.set()
        self._in_head = False
        self._end_gently()

    def _ends_after_answer(self) -> bool:
        """Whether an earlier request is still to be answered; the connection then ends with that answer."""
        cycle = self.cycle
        if cycle is None or cycle.response_complete:
            return False
        if cycle.more_body:  # it is this one that is refused
            if not self.pipeline or self.pipeline[0][0] is not cycle:
                return False
            self.pipeline.popleft()
            cycle = self._before
        cycle.keep_alive = False
        self._is_half_closed = True  # what still comes is dropped
        self._in_head = False
        return True


def _too_large() -> str:
    return f"the head of the request has more than {HEAD_BYTES} bytes"
