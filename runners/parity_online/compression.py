"""Bodies compressed with gzip or deflate, both ways; a bomb is stopped at the body limit."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable

from parity.errors import shown
from parity_online.problems import Answer, ProblemError
from parity_online.request import Request

_GZIP, _ZLIB, _RAW = 31, 15, -15
_OFF_LOOP_BYTES = 64 * 1024
"""Larger bodies are worked on by another thread; zlib lets the loop run meanwhile."""
_LEAST_BYTES = 1024
"""Smaller answers are sent as they are: nothing would be won."""
_LEVEL = 1
_MOST_MEMBERS = 100
"""A gzip body may be several, one after the other; each costs the reader something, even one of nothing."""
_PIECE_BYTES = 1024 * 1024
"""So much is given to zlib at a time, since it copies what is left behind the end of a member."""


async def read_encoded(request: Request, body: bytes, limit_bytes: int) -> bytes:
    """The body as its `Content-Encoding` says it was.

    Raises:
        ProblemError: (415) the encoding is not read here; (400) the body is not what it says; (413) it is
            larger than the limit.
    """
    encoding = request.encoding
    if encoding is None:
        return body
    if len(body) <= _OFF_LOOP_BYTES and limit_bytes <= _OFF_LOOP_BYTES:
        return decompress(body, encoding, limit_bytes)
    return await asyncio.to_thread(decompress, body, encoding, limit_bytes)


async def write_encoded(request: Request, answer: Answer) -> Answer:
    """The answer, compressed where the client takes it so and something is won."""
    if request.accepts is None or not is_worth_encoding(answer):
        return answer
    encoding = accepted(request.accepts)
    if encoding is None:
        return answer
    compress = _gzip if encoding == "gzip" else _deflate
    body = await _run(compress, answer.body)
    headers = [(name, value) for name, value in answer.headers if name != b"content-length"]
    headers += [
        (b"content-length", b"%d" % len(body)),
        (b"content-encoding", encoding.encode()),
        (b"vary", b"accept-encoding"),
    ]
    return Answer(answer.status, headers, body)


def is_worth_encoding(answer: Answer) -> bool:
    """Whether an answer is large enough for something to be won."""
    return len(answer.body) >= _LEAST_BYTES


def decompress(body: bytes, encoding: str, limit_bytes: int) -> bytes:
    """The bytes that were compressed.

    Raises:
        ProblemError: see `read_encoded`.
    """
    if encoding not in ("gzip", "deflate"):
        raise ProblemError(
            415, "encoding", f"Content-Encoding {shown(encoding)}: gzip, deflate and identity are read"
        )
    # "deflate" is zlib's format, but some clients send it without zlib's header.
    zlib_like = len(body) > 1 and body[0] & 15 == 8 and (body[0] << 8 | body[1]) % 31 == 0
    window = _GZIP if encoding == "gzip" else _ZLIB if zlib_like else _RAW
    view = memoryview(body)
    parts: list[bytes] = []
    at = size = members = 0
    try:
        while at < len(view) or not members:
            if members == _MOST_MEMBERS:
                raise ProblemError(
                    400, "malformed", f"the body has more than {_MOST_MEMBERS} members of {encoding} data"
                )
            stream = zlib.decompressobj(window)
            members += 1
            while not stream.eof:
                if at == len(view):
                    raise ProblemError(400, "malformed", f"the body's {encoding} data is cut short")
                piece = view[at : at + _PIECE_BYTES]
                part = stream.decompress(piece, limit_bytes + 1 - size)
                parts.append(part)
                size += len(part)
                if size > limit_bytes:
                    raise ProblemError(
                        413,
                        "too_large",
                        f"the body has more than {limit_bytes} bytes once decompressed, the limit; send "
                        "fewer rows at a time, or start the server with a larger --body-limit-mb",
                    )
                at += len(piece) - len(stream.unused_data)
            if at < len(view) and window != _GZIP:
                raise ProblemError(
                    400, "malformed", f"{len(view) - at} bytes follow the body's {encoding} data"
                )
    except zlib.error as exc:
        raise ProblemError(400, "malformed", f"the body is not {encoding} data: {exc}") from None
    return b"".join(parts)


def accepted(header: bytes) -> str | None:
    """The encoding to answer in, of those that an `Accept-Encoding` header takes; None to leave it."""
    weights: dict[str, float] = {}
    for part in header.decode("latin-1").lower().split(","):
        name, _, parameters = part.partition(";")
        weight = 1.0
        key, _, text = parameters.strip().partition("=")
        if key.strip() == "q":
            try:
                weight = float(text)
            except ValueError:
                weight = 0.0
        weights[name.strip()] = weight
    for encoding in ("gzip", "deflate"):
        if weights.get(encoding, 0.0) > 0:
            return encoding
    return None


async def _run(work: Callable[[bytes], bytes], data: bytes) -> bytes:
    return work(data) if len(data) <= _OFF_LOOP_BYTES else await asyncio.to_thread(work, data)


def _gzip(data: bytes) -> bytes:
    stream = zlib.compressobj(_LEVEL, wbits=_GZIP)
    return stream.compress(data) + stream.flush()


def _deflate(data: bytes) -> bytes:
    return zlib.compress(data, _LEVEL)
