"""Connections that end without resetting a client.

A client may send its next request on an idle connection just when the server closes it. A socket that is
closed with that request unread answers with a reset, which looks like a crash. So an idle connection is
first closed for writing only, which the client sees as its end, and what still comes is read and dropped. A
connection on which nothing has been asked yet, or half a head, is given a moment to ask and be answered.

The time that a connection may be idle is watched by one timer, which looks when it fires; uvicorn makes and
cancels one for each request.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

ASK_S = 0.5
"""How long a connection without a request may still send one."""

LINGER_S = 1.0
"""How long a client may take to see that its connection has ended, since it last sent something."""

LINGER_MOST_S = 10.0
"""How long in all."""


class ClosingProtocol(HttpToolsProtocol):
    """Uvicorn's protocol with that end; its `shutdown` is called once for each connection."""

    cycle: Any
    _in_head = True
    _retires = False
    _is_half_closed = False
    _end_timer: asyncio.TimerHandle | None = None
    _answered_at = 0.0
    _before: Any = None
    """What had been asked, when the head of the newest request came."""
    _heard_at = 0.0
    _lingers_until = 0.0

    def on_message_begin(self) -> None:
        """A request begins."""
        self._in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Its head has come; the last one of its connection, where the server shuts down."""
        self._in_head = False
        self._before = self.cycle
        super().on_headers_complete()
        self._note_last()

    def data_received(self, data: bytes) -> None:
        """Parse what came, unless it came too late."""
        if self._is_half_closed:
            self._heard_at = self.loop.time()
        else:
            super().data_received(data)

    def shutdown(self) -> None:
        """Close the connection once what was asked is answered."""
        self._retires = True
        if self._in_head:
            self._end_timer = self.loop.call_later(ASK_S, self._half_close)
        elif self.cycle is not None and not self.cycle.response_complete:
            super().shutdown()
        else:
            self._half_close()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        if self._end_timer is not None:
            self._end_timer.cancel()
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """An answer has been written: the next request of the pipeline begins, or the connection is idle."""
        self._answered_at = self.loop.time()
        if self.pipeline or self.timeout_keep_alive_task is None:
            super().on_response_complete()
            return
        self.server_state.total_requests += 1
        if not self.transport.is_closing():
            self.flow.resume_reading()

    def timeout_keep_alive_handler(self) -> None:
        """Close the connection if it has been idle for so long; look again later if not."""
        self.timeout_keep_alive_task = None
        if self._in_head or (self.cycle is not None and not self.cycle.response_complete):
            return  # the next answer sets the timer
        left_s = self._answered_at + self.timeout_keep_alive - self.loop.time()
        if left_s > 0:
            self.timeout_keep_alive_task = self.loop.call_later(left_s, self.timeout_keep_alive_handler)
        else:
            super().timeout_keep_alive_handler()

    def _unset_keepalive_if_required(self) -> None:
        """Let the timer be: it looks for itself."""

    def _note_last(self) -> None:
        if self._retires and self.cycle is not None:
            self.cycle.keep_alive = False

    def _half_close(self) -> None:
        answering = not self._in_head and self.cycle is not None and not self.cycle.response_complete
        if answering or self.transport.is_closing():
            return
        self._end_gently()

    def _end_gently(self) -> None:
        """Close for writing, and drop what still comes until the client has had time to see it."""
        if not self.transport.can_write_eof():  # TLS says goodbye by itself
            self.transport.close()
            return
        self._is_half_closed = True
        self.transport.write_eof()
        if self._end_timer is not None:
            self._end_timer.cancel()
        self._heard_at = self.loop.time()
        self._lingers_until = self._heard_at + LINGER_MOST_S
        self._end_timer = self.loop.call_later(LINGER_S, self._linger)

    def _linger(self) -> None:
        """Close, unless the client still sends: it would be reset, and not see its answer."""
        left_s = min(self._heard_at + LINGER_S, self._lingers_until) - self.loop.time()
        if left_s > 0:
            self._end_timer = self.loop.call_later(left_s, self._linger)
        else:
            self.transport.close()
