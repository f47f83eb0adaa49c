"""What the fast path reads from an ASGI request: headers once, the body within its limit and time."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from typing import Any, cast, get_args

from parity.errors import shown
from parity_online.batcher import Priority
from parity_online.problems import ProblemError
from parity_online.trace import Ran, Trace, read_trace

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

TIMEOUT_HEADER = "X-Request-Timeout"
ID_HEADER = "X-Request-Id"
PRIORITY_HEADER = "X-Request-Priority"

_MAX_ID_BYTES = 128
_DISCARD_S = 5.0


@dataclass(slots=True)
class Request:
    """The parts of a request that its headers tell.

    Attributes:
        id: the client's `X-Request-Id`, None when it sent none.
        version: the client's `X-Model-Version`, None when it sent none.
        timeout_s: the client's `X-Request-Timeout` in seconds, None when it sent none.
        length: the declared body length, None for a chunked body.
        is_gone: tells whether the client has left; None where the server has no way to know.
        is_read: whether nothing of the body is left to read.
        content_type: the client's `Content-Type`, empty when it sent none.
        encoding: the client's `Content-Encoding`, None for none.
        accepts: the client's `Accept-Encoding`, None when it sent none.
        json_length: the client's `Inference-Header-Content-Length`, None when it sent none.
        priority: the client's `X-Request-Priority`.
        client: who asks: the name of its API key, or its address; None where nobody has looked.
        credentials: the headers that may hold an API key.
        is_known: whether its key has been checked.
        message: the body as a protobuf message, where it came by gRPC.
        trace: the client's `traceparent`, None when it sent none that is valid.
        ran: what its last batch took, once that has run.
    """

    is_gone: Callable[[], bool] | None
    id: str | None = None
    timeout_s: float | None = None
    length: int | None = None
    is_read: bool = False
    version: str | None = None
    content_type: bytes = b""
    encoding: str | None = None
    accepts: bytes | None = None
    json_length: int | None = None
    priority: Priority = "normal"
    client: str | None = None
    credentials: tuple[tuple[bytes, bytes], ...] = ()
    is_known: bool = False
    message: Any = None
    trace: Trace | None = None
    ran: Ran | None = None

    @property
    def media_type(self) -> str:
        """The content type without its parameters, in lower case."""
        return self.content_type.decode("latin-1").partition(";")[0].strip().lower()

    def again(self, is_gone: Callable[[], bool] | None, client: str | None) -> Request:
        """The next request with the same head, whose body has come whole."""
        return Request(  # by place, which takes half the time
            is_gone,
            None,
            self.timeout_s,
            self.length,
            True,
            self.version,
            self.content_type,
            self.encoding,
            self.accepts,
            self.json_length,
            self.priority,
            client,
            self.credentials,
        )

    @classmethod
    def of(cls, receive: Receive) -> Request:
        """A request of which nothing has been read yet."""
        return cls(_disconnection(receive))


def read_headers(request: Request, headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Fill in what the headers tell.

    Raises:
        ProblemError: (400) a header has a value that makes no sense; (501) a body is coded for its way, and
            not in chunks only.
    """
    for name, value in headers:
        if name == b"content-type":
            request.content_type = value
        elif name == b"content-length":
            request.length = int(value)
        elif name == b"x-request-id":
            request.id = id_of(value)
        elif name == b"traceparent":
            request.trace = read_trace(value)
        elif name == b"x-request-timeout":
            request.timeout_s = _seconds(value)
        elif name == b"x-model-version":
            request.version = value.decode("latin-1")
        elif name == b"x-request-priority":
            request.priority = _priority(value)
        elif name == b"authorization" or name == b"x-api-key":
            request.credentials += ((name, value),)
        elif name == b"transfer-encoding":
            _require_chunked(value)
        elif name == b"expect":
            request.is_read = True  # the client sends nothing before it is asked to
        elif name == b"accept-encoding":
            request.accepts = value
        elif name == b"content-encoding":
            _add_encoding(request, value)
        elif name == b"inference-header-content-length":
            request.json_length = _length(value)


def _add_encoding(request: Request, value: bytes) -> None:
    """Note one more `Content-Encoding`: several of them are one after the other, as in one header."""
    encoding = value.decode("latin-1").strip().lower()
    encoding = "gzip" if encoding == "x-gzip" else encoding  # RFC 9110, 8.4.1.3
    if encoding not in ("", "identity"):
        request.encoding = encoding if request.encoding is None else f"{request.encoding}, {encoding}"


def id_of(value: bytes) -> str | None:
    """The id that an `X-Request-Id` gives; None where it is not printable ASCII."""
    text = value[:_MAX_ID_BYTES].decode("latin-1")
    return text if text.isascii() and text.isprintable() else None


async def read_body(request: Request, receive: Receive, limit_bytes: int, timeout_s: float) -> bytes:
    """The whole body.

    Raises:
        ProblemError: (413) it is larger than the limit; (408) it did not arrive in time; (499) the client
        left.
    """
    if request.length is not None and request.length > limit_bytes:
        raise _too_large(request.length, limit_bytes)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(timeout_s):  # from the first byte on: a client may send a head and no more
            message = await receive()
            if message["type"] == "http.request" and not message.get("more_body", False):
                request.is_read = True
                body = message.get("body", b"")
                if len(body) > limit_bytes:
                    raise _too_large(len(body), limit_bytes)
                return body
            while True:
                if message["type"] == "http.disconnect":
                    request.is_read = True
                    raise left_early()
                part = message.get("body", b"")
                size += len(part)
                request.is_read = not message.get("more_body", False)
                if size > limit_bytes:
                    raise _too_large(size, limit_bytes)
                parts.append(part)
                if request.is_read:
                    return b"".join(parts)
                message = await receive()
    except TimeoutError:
        request.is_read = True  # what is left has had its time
        raise slow_body(timeout_s, size) from None


def slow_body(timeout_s: float, size: int) -> ProblemError:
    """The problem of a body of which only `size` bytes came in time."""
    return ProblemError(
        408, "slow_body", f"the body did not arrive within {timeout_s:g} s ({size} bytes did)"
    )


def left_early() -> ProblemError:
    """The problem of a body whose client was gone before it was whole."""
    return ProblemError(499, "client_left", "the client left while it sent the body")


async def discard_body(receive: Receive, limit_bytes: int) -> None:
    """Read and forget the rest of a body that is refused, up to a limit and for a few seconds.

    A client that still sends when the connection closes is reset, and may never see why it was refused.
    """
    left = limit_bytes
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_DISCARD_S):
            while left > 0:
                message = await receive()
                if message["type"] != "http.request" or not message.get("more_body", False):
                    return
                left -= len(message.get("body", b""))


def _disconnection(receive: Receive) -> Callable[[], bool] | None:
    """Uvicorn's own note of a lost connection: free to read, where a task on `receive` would cost a wake-up.

    Other servers have no such note; then a request is only dropped by its deadline.
    """
    cycle = getattr(receive, "__self__", None)
    if not hasattr(cycle, "disconnected"):
        return None
    return lambda: cycle.disconnected  # pyright: ignore[reportOptionalMemberAccess] - hasattr says it is there


def require_json(request: Request) -> None:
    """Raise ProblemError (415) when the body says that it is anything but JSON, or its tensors are bytes."""
    if request.json_length is not None:
        raise ProblemError(
            415, "binary", "binary tensors are for /v2/models/NAME/infer; this route takes JSON"
        )
    if request.content_type in (b"", b"application/json"):
        return
    text = request.content_type.decode("latin-1")
    kind, _, parameters = text.partition(";")
    kind = kind.strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise ProblemError(
            415,
            "content_type",
            f"Content-Type {shown(text)}: expected application/json (curl: add "
            "-H 'Content-Type: application/json')",
        )
    charset = parameters.lower().replace(" ", "").replace('"', "")
    if "charset=" in charset and "charset=utf-8" not in charset and "charset=us-ascii" not in charset:
        raise ProblemError(415, "content_type", f"Content-Type {shown(text)}: JSON is UTF-8; send it so")


def _require_chunked(value: bytes) -> None:
    if value.strip().lower() != b"chunked":
        raise ProblemError(
            501,
            "transfer_encoding",
            f"Transfer-Encoding {shown(value.decode('latin-1'))}: only chunked is read; compress a body by "
            "Content-Encoding",
        )


def _length(value: bytes) -> int:
    text = value.decode("latin-1").strip()
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise ProblemError(
            400, "header", f"Inference-Header-Content-Length {shown(text)}: expected a number of bytes"
        )
    return int(text)


def _priority(value: bytes) -> Priority:
    text = value.decode("latin-1").strip().lower()
    if text not in get_args(Priority):
        raise ProblemError(
            400, "header", f"{PRIORITY_HEADER} {shown(text)}: expected {' or '.join(get_args(Priority))}"
        )
    return cast("Priority", text)


def _seconds(value: bytes) -> float:
    text = value.decode("latin-1")
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not (math.isfinite(seconds) and seconds > 0):
        raise ProblemError(
            400,
            "header",
            f"{TIMEOUT_HEADER} {shown(text)}: expected a number of seconds above 0, such as 0.5",
        )
    return seconds


def _too_large(size: int, limit_bytes: int) -> ProblemError:
    return ProblemError(
        413,
        "too_large",
        f"the body has {size} bytes or more, the limit is {limit_bytes}; send fewer rows at a "
        "time, or start the server with a larger --body-limit-mb",
    )
