"""A parser that never leaves HTTP/1.1: a request that asks to upgrade is read as one that does not.

RFC 9110, 7.8: a server may ignore `Upgrade`. The library's parser does not: it tells of no body, and takes
what comes behind the head for another protocol or, when that is fed to it, for the next request. Java's
client asks for h2c with its first request, and a body that is read as requests is how requests are smuggled.
So the head is fed to a fresh parser once more, without that wish.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

import httptools

_WISHES = (b"upgrade", b"http2-settings")


class PlainParser(httptools.HttpRequestParser):
    """A parser for a protocol that asks `turns_plain` first in `on_headers_complete`, `on_message_complete`.

    Args:
        protocol: has the callbacks, the parser as `parser`, and what the head told as `url` and `headers`.
    """

    def __init__(self, protocol: Any) -> None:
        super().__init__(protocol)
        self._protocol = protocol
        with contextlib.suppress(AttributeError):  # httptools < 0.6.3
            self.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does

    def turns_plain(self) -> bool:
        """Whether this head is about to be read once more, and its request is none yet."""
        return self.should_upgrade() and self.get_method() != b"CONNECT"

    def feed_data(self, data: Any) -> None:
        """Parse what came.

        Raises:
            httptools.HttpParserError: it is no HTTP.
            httptools.HttpParserUpgrade: a client takes this server for a proxy (CONNECT).
        """
        parser, rest = self, memoryview(data)
        while rest:
            try:
                httptools.HttpRequestParser.feed_data(parser, rest)
            except httptools.HttpParserUpgrade as exc:
                if not parser.turns_plain():
                    raise
                head = _plain(parser, self._protocol.url, self._protocol.headers)
                self._protocol.parser = parser = PlainParser(self._protocol)
                httptools.HttpRequestParser.feed_data(parser, head)
                rest = rest[exc.args[0] :]
            else:
                return


def _plain(parser: httptools.HttpRequestParser, url: bytes, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The head without its wish for another protocol."""
    lines = [b"%s %s HTTP/%s\r\n" % (parser.get_method(), url, parser.get_http_version().encode())]
    for name, value in headers:
        if name == b"connection":
            tokens = [token.strip() for token in value.split(b",")]
            value = b", ".join(token for token in tokens if token.lower() not in _WISHES)
        if name not in _WISHES:
            lines.append(b"%s: %s\r\n" % (name, value))
    return b"".join((*lines, b"\r\n"))
