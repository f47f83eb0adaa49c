"""Heads of requests that have been parsed before, byte for byte.

A client sends the same head again and again, and only the bodies differ. A head that uvicorn's parser has
read as a whole request, beginning and ending with the bytes that came, is remembered with what was made of
it; the same bytes between two requests mean the same again. Whatever differs by a byte, comes in pieces or
tells something of its own (an id, a trace) is parsed.
"""

from __future__ import annotations

from dataclasses import dataclass

from parity_online.request import Request
from parity_online.route import Route

END = b"\r\n\r\n"

MOST = 512
"""So many heads are remembered; then all are forgotten, and those in use are soon known again."""

LONGEST_BYTES = 2048


@dataclass(slots=True)
class KnownHead:
    """What a head says.

    Attributes:
        route: where it goes.
        request: what its headers told, bound to no connection; copied by `Request.again`, never used itself.
        length: the length of its body.
    """

    route: Route
    request: Request
    length: int


class KnownHeads:
    """The heads that one server knows; shared by its connections, for its event loop alone."""

    def __init__(self) -> None:
        self._found: dict[bytes, KnownHead] = {}

    def __len__(self) -> int:
        return len(self._found)

    def clear(self) -> None:
        """Forget all: the routes have changed."""
        self._found.clear()

    def find(self, data: bytes) -> tuple[KnownHead, bytes] | None:
        """What the head says, and the body, where the data are one whole request with a known head."""
        end = data.find(END) + len(END)
        known = self._found.get(data[:end])
        if known is None or len(data) - end != known.length:
            return None
        return known, data[end:]

    def learn(self, data: bytes, body: bytes, route: Route, request: Request) -> None:
        """Remember the head of data that the parser has read as one whole request with this body.

        Args:
            data: all that came, from the end of the request before.
            body: what the parser gave as its body.
            route: where it goes.
            request: what its headers told, neither an id nor a trace among it.
        """
        size = len(data) - len(body)
        if size > LONGEST_BYTES or data.find(END) + len(END) != size or data[size:] != body:
            return
        if len(self._found) >= MOST:
            self._found.clear()
        self._found[data[:size]] = KnownHead(route, request.again(None, None), len(body))
