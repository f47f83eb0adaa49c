"""Below ASGI: most inference requests go from uvicorn's parser to the queue without scope, cycle or task.

Uvicorn's HTTP protocol stays in charge of the connection: parsing, keep-alive, pipelining, shutdown. For a
POST to an inference route whose body is of a few MiB at most and not chunked this subclass keeps the request
to itself; anything else goes on to uvicorn and so to the ASGI app, which answers the same routes in the same
way, only slower. Where the whole request has come at once and its head is known, not even the parser is
asked.

The overridden methods are not public API: `is_supported` says whether this uvicorn has them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine
from functools import partial
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from parity_online.fastpath import FastPath
from parity_online.gathering import Room
from parity_online.heads import HeadProtocol
from parity_online.known_heads import KnownHead
from parity_online.problems import Answer, ProblemError
from parity_online.request import Request, left_early, read_headers, slow_body
from parity_online.route import Route
from parity_online.wire import write_answer

logger = logging.getLogger(__name__)

FAST_BODY_BYTES = 4 * 1024 * 1024
"""Larger bodies go by ASGI: they cost so much else that the way does not matter."""

ANY_BODY_BYTES = 65536
"""Bodies up to this size need no room of those that are gathered; see `parity_online.gathering`."""

CLOSE = (b"connection", b"close")

_OVERRIDDEN = (
    "on_message_begin",
    "on_headers_complete",
    "on_body",
    "on_message_complete",
    "on_response_complete",
    "on_url",
    "on_header",
    "send_400_response",
    "timeout_keep_alive_handler",
    "_unset_keepalive_if_required",
)
_USED = ("shutdown", "connection_made", "connection_lost")


def is_supported() -> bool:
    """Whether uvicorn's protocol has the methods that this one builds on."""
    return all(callable(getattr(HttpToolsProtocol, name, None)) for name in (*_OVERRIDDEN, *_USED))


class _NoEvent:
    def set(self) -> None:
        """Nobody waits."""


class _Exchange:
    """What uvicorn and `write_answer` expect of a request cycle, for a request that never becomes ASGI."""

    __slots__ = (
        "default_headers",
        "disconnected",
        "keep_alive",
        "message_event",
        "more_body",
        "on_response",
        "parts",
        "request",
        "response_complete",
        "response_started",
        "room",
        "room_bytes",
        "route",
        "transport",
    )

    def __init__(
        self,
        protocol: FastProtocol,
        route: Route,
        request: Request,
        keep_alive: bool,
        room: Room | None = None,
        room_bytes: int = 0,
    ) -> None:
        self.parts: list[bytes] = []
        self.room = room
        self.room_bytes = room_bytes
        self.default_headers = protocol.server_state.default_headers
        self.disconnected = False
        self.keep_alive = keep_alive
        self.message_event = _NO_EVENT
        self.more_body = True
        self.on_response = protocol.on_response_complete
        self.request = request
        self.response_complete = False
        self.response_started = False
        self.route = route
        self.transport = protocol.transport

    def tell(self, answer: Answer | None) -> None:
        """Write the answer; end a connection that is owed one and gets none. Never raises."""
        self.leave_room()
        try:
            if answer is None:
                self.transport.close()
            elif not self.transport.is_closing():
                write_answer(self, answer)
        except Exception as exc:
            logger.error("event=respond_failed", exc_info=exc)
            self.transport.close()

    def leave_room(self) -> None:
        """Give back the room that the body took: nobody holds it any more."""
        if self.room is not None:
            self.room.leave(self.room_bytes)
            self.room = None


_NO_EVENT = _NoEvent()


class FastProtocol(HeadProtocol):
    """Uvicorn's protocol with a short cut, for `uvicorn.Config(http=...)` with a `FastPath` as the app."""

    scope: Any
    _body_timer: asyncio.TimerHandle | None = None
    _body_began_at = 0.0
    _fast: FastPath | None = None
    _is_between = True
    """Whether the parser has read no byte of a next request."""
    _parsed_body = b""
    """The last body that the parser gave, until `data_received` ends: an idle connection holds none."""
    _tells_own = False
    """Whether the head of the last request tells something that no other will."""

    def connection_made(self, transport: Any) -> None:
        """A client connects."""
        super().connection_made(transport)
        self._fast = self.app if isinstance(self.app, FastPath) else None

    def on_message_begin(self) -> None:
        """A request begins; its scope is built later, if at all."""
        self._begin_head()
        self._is_between = False
        self.url = b""
        self.expect_100_continue = False
        self.headers = []
        self.scope = None

    def data_received(self, data: bytes) -> None:
        """Answer a request that is whole and known; parse anything else."""
        cycle, fast = self.cycle, self._fast
        is_fresh = self._is_between and not self._is_half_closed
        if is_fresh and fast is not None and (cycle is None or cycle.response_complete):
            found = fast.known_heads.find(data)
            if found is not None:
                self._take_known(fast, *found)
                return
            heads = self._heads
            self._parse(data)
            exchange, body = self.cycle, self._parsed_body
            if (
                type(exchange) is _Exchange
                and exchange is not cycle
                and self._is_between
                and self._heads == heads + 1
                and exchange.keep_alive
                and not self._tells_own
            ):
                fast.known_heads.learn(data, body, exchange.route, exchange.request)
        else:
            self._parse(data)
        self._parsed_body = b""

    def _take_known(self, fast: FastPath, known: KnownHead, body: bytes) -> None:
        self._cancel_head_timer()
        client = None if self.client is None else self.client[0]
        request = known.request.again(self.transport.is_closing, client)
        self.cycle = exchange = _Exchange(self, known.route, request, keep_alive=not self._retires)
        self._in_head = False
        self._respond(fast, exchange, body)

    def _parse(self, data: bytes) -> None:
        """Parse what came; a body that has not come whole by now must do so in the request's time."""
        super().data_received(data)
        exchange = self.cycle
        if type(exchange) is _Exchange and exchange.more_body and self._body_timer is None:
            timeout_s = exchange.route.nominal.settings.timeout_s
            if exchange.request.timeout_s is not None:
                timeout_s = min(timeout_s, exchange.request.timeout_s)
            self._body_timer = self.loop.call_later(timeout_s, self._refuse_slow_body, exchange, timeout_s)
            self._body_began_at = self.loop.time()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone, and with it whatever it still owed."""
        self._cancel_body_timer()
        exchange = self.cycle
        if type(exchange) is _Exchange and exchange.more_body and not exchange.response_complete:
            self._refuse_body(exchange, left_early(), self.loop.time() - self._body_began_at)
        super().connection_lost(exc)

    def on_headers_complete(self) -> None:
        """Keep the request, or let uvicorn have it."""
        if self.parser.turns_plain():
            return
        self._in_head = False
        exchange = self._exchange()
        if exchange is not None:
            self.cycle = exchange
            self._note_last()
            return
        url, headers, expects = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.url = url
        self.headers.extend(headers)
        self.expect_100_continue = expects
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Collect the body."""
        if type(self.cycle) is _Exchange:
            self.cycle.parts.append(body)
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Answer the request."""
        if self.parser.turns_plain():
            return
        self._is_between = True
        exchange, fast = self.cycle, self._fast
        if type(exchange) is not _Exchange or fast is None:
            super().on_message_complete()
            return
        self._cancel_body_timer()
        parts, exchange.parts = exchange.parts, []
        self._parsed_body = body = parts[0] if len(parts) == 1 else b"".join(parts)
        self._respond(fast, exchange, body)

    def _respond(self, fast: FastPath, exchange: _Exchange, body: bytes) -> None:
        exchange.more_body = False
        asked = (exchange.route, exchange.request, body, time.perf_counter())
        if not fast.respond_soon(*asked, exchange.tell):
            _advance(exchange, fast.respond(*asked))

    def _refuse_slow_body(self, exchange: _Exchange, timeout_s: float) -> None:
        self._body_timer = None
        if self.cycle is exchange and exchange.more_body and not self.transport.is_closing():
            problem = slow_body(timeout_s, sum(map(len, exchange.parts)))
            answer = self._refuse_body(exchange, problem, timeout_s)
            if CLOSE not in answer.headers:
                answer.headers.append(CLOSE)
            write_answer(exchange, answer)
            self.transport.close()

    def _refuse_body(self, exchange: _Exchange, problem: ProblemError, seconds: float) -> Answer:
        """The answer to a request whose body did not come whole."""
        exchange.parts = []
        exchange.leave_room()
        assert self._fast is not None, "who has an exchange has a fast path"
        route, request = exchange.route, exchange.request
        return self._fast.admission.refused(route, route.nominal, request, problem, seconds)

    def _cancel_body_timer(self) -> None:
        if self._body_timer is not None:
            self._body_timer.cancel()
            self._body_timer = None

    def _exchange(self) -> _Exchange | None:
        fast = self._fast
        if self.expect_100_continue or fast is None:
            return None
        route = fast.route(self.url)
        parser = self.parser
        if route is None or parser is None or parser.get_method() != b"POST" or parser.should_upgrade():
            return None
        if self.cycle is not None and not self.cycle.response_complete:
            return None  # pipelined: uvicorn knows how to queue it
        request = Request(self.transport.is_closing)
        if self.client is not None:
            request.client = self.client[0]
        try:
            read_headers(request, self.headers)
        except ProblemError:
            return None
        length = request.length
        if length is None or length > min(FAST_BODY_BYTES, fast.body_limit_bytes):
            return None
        room_bytes = length if length > ANY_BODY_BYTES else 0
        if room_bytes and not _may_gather(fast, request, room_bytes):
            return None
        request.is_read = True
        self._tells_own = request.id is not None or request.trace is not None
        keep_alive = parser.get_http_version() != "1.0" and parser.should_keep_alive()
        return _Exchange(self, route, request, keep_alive, fast.room if room_bytes else None, room_bytes)


def _may_gather(fast: FastPath, request: Request, size: int) -> bool:
    """Whether a body of this size has room; who has no key is refused by ASGI, before the body has come."""
    try:
        fast.admission.identify(request)
    except ProblemError:
        return False
    return fast.room.enter(size)


def _advance(
    exchange: _Exchange,
    responding: Coroutine[Any, Any, Answer | None],
    _waited: asyncio.Future[Any] | None = None,
) -> None:
    """Run the coroutine to its next future, or to its answer: what a task does, without being one."""
    try:
        waits_for = responding.send(None)
    except StopIteration as stop:
        exchange.leave_room()
        answer: Answer | None = stop.value
        if answer is not None and not exchange.transport.is_closing():
            write_answer(exchange, answer)
    except BaseException as exc:
        exchange.leave_room()
        logger.error("event=respond_failed", exc_info=exc)
        exchange.transport.close()
        raise
    else:
        waits_for._asyncio_future_blocking = False
        waits_for.add_done_callback(partial(_advance, exchange, responding))
