"""Sending an answer: in one write where the server is the uvicorn we know, by ASGI's two messages elsewhere.

Uvicorn writes head and body apart, which costs a system call and a packet an answer, and checks every
header again. `send_answer` does to uvicorn's request cycle what its own `send` does for a complete answer.
That is not public API: so the attributes are checked, and where one is missing, or the client reads slowly,
ASGI is used.
"""

from __future__ import annotations

import http
from typing import Any

from parity_online.problems import Answer
from parity_online.request import Message, Receive, Send

_CYCLE_ATTRIBUTES = (
    "default_headers",
    "disconnected",
    "flow",
    "keep_alive",
    "message_event",
    "more_body",
    "on_response",
    "response_complete",
    "response_started",
    "scope",
    "transport",
    "waiting_for_100_continue",
)
_known_classes: dict[type, bool] = {}
_starts: dict[int, tuple[list[tuple[bytes, bytes]], bytes]] = {}


async def send_answer(answer: Answer, receive: Receive, send: Send) -> None:
    """Send a whole answer."""
    cycle: Any = getattr(receive, "__self__", None)
    if _is_known(cycle) and not cycle.flow.write_paused:
        if not note_closed(cycle):
            _end_unread(cycle, answer.status)
            if cycle.scope["method"] == "HEAD":
                answer = Answer(answer.status, answer.headers, b"")
            write_answer(cycle, answer)
        return
    await send({"type": "http.response.start", "status": answer.status, "headers": answer.headers})
    await send({"type": "http.response.body", "body": answer.body})


def note_closed(cycle: Any) -> bool:
    """Whether the client is gone; uvicorn itself tells only the last of several pipelined requests."""
    if not cycle.disconnected and cycle.transport.is_closing():
        cycle.disconnected = True
    return cycle.disconnected


def sending(receive: Receive, send: Send) -> Send:
    """An app's `send`; what the app sends once its connection has been closed is dropped."""
    cycle: Any = getattr(receive, "__self__", None)
    if not _is_known(cycle):
        return send

    async def send_if_open(message: Message) -> None:
        note_closed(cycle)
        if message["type"] == "http.response.start":
            _end_unread(cycle, message["status"])
        await send(message)

    return send_if_open


def _end_unread(cycle: Any, status: int) -> None:
    """Let a connection end with its answer where a body is owed that may never come.

    A client that was not asked for its body sends none, and one that was too slow may have given up: the next
    request would be taken for it. The rest of a body that does come is read and dropped.
    """
    if cycle.more_body and (cycle.waiting_for_100_continue or status == http.HTTPStatus.REQUEST_TIMEOUT):
        cycle.keep_alive = False


def write_answer(cycle: Any, answer: Answer) -> None:
    """Write a whole answer to the transport of a request cycle, and end the cycle."""
    parts = [_start(answer.status, cycle.default_headers)]
    for name, value in answer.headers:
        parts += (name, b": ", value, b"\r\n")
    if (b"connection", b"close") in answer.headers:
        cycle.keep_alive = False
    elif not cycle.keep_alive:
        parts.append(b"connection: close\r\n")
    parts += (b"\r\n", answer.body)
    cycle.response_started = cycle.response_complete = True
    cycle.transport.write(b"".join(parts))
    cycle.message_event.set()
    if not cycle.keep_alive:
        cycle.transport.close()
    cycle.on_response()


def _start(status: int, defaults: list[tuple[bytes, bytes]]) -> bytes:
    """The first lines of an answer; uvicorn makes another list of default headers each second."""
    kept = _starts.get(status)
    if kept is not None and kept[0] is defaults:
        return kept[1]
    text = _STATUS_LINES[status] + b"".join(name + b": " + value + b"\r\n" for name, value in defaults)
    _starts[status] = (defaults, text)
    return text


def _is_known(cycle: object) -> bool:
    kind = type(cycle)
    known = _known_classes.get(kind)
    if known is None:
        known = kind.__name__ == "RequestResponseCycle" and all(
            hasattr(cycle, name) for name in _CYCLE_ATTRIBUTES
        )
        _known_classes[kind] = known
    return known


def status_line(status: int) -> bytes:
    """The first line of an answer."""
    try:
        phrase = http.HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    return f"HTTP/1.1 {status} {phrase}\r\n".encode()


_STATUS_LINES = {status: status_line(status) for status in range(100, 600)}
