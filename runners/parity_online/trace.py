"""W3C Trace Context: what a client's `traceparent` says, and what `traceresponse` answers.

https://www.w3.org/TR/trace-context-2/. A header that is not valid is ignored, as the standard wants it.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

PARENT_HEADER = b"traceparent"
RESPONSE_HEADER = b"traceresponse"

_PARENT = re.compile(
    rb"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<parent>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})(?P<more>-.*)?"
)
_SAMPLED = ("01", "03")


@dataclass(slots=True)
class Trace:
    """The trace that a request belongs to.

    Attributes:
        id: the trace, 32 hex digits.
        parent: the client's span, 16 hex digits; empty where it began here.
        flags: two hex digits; the lowest bit: it is sampled.
        span: our span, 16 hex digits.
    """

    id: str
    parent: str
    flags: str
    span: str = field(default_factory=lambda: secrets.token_hex(8))

    @property
    def is_sampled(self) -> bool:
        """Whether somebody keeps its spans."""
        return self.flags in _SAMPLED

    @property
    def response(self) -> tuple[bytes, bytes]:
        """The header that tells the client our span."""
        return RESPONSE_HEADER, f"00-{self.id}-{self.span}-{self.flags}".encode()


@dataclass(frozen=True, slots=True)
class Ran:
    """The batch that answered a request.

    Attributes:
        batch: its number.
        started: when it began, on `time.perf_counter`.
        stages_s: the seconds it spent in each stage, in order.
    """

    batch: int
    started: float
    stages_s: Mapping[str, float]


def read_trace(value: bytes) -> Trace | None:
    """The trace of a `traceparent`; None when it is not valid."""
    found = _PARENT.fullmatch(value.strip())
    if found is None or found["version"] == b"ff" or (found["version"] == b"00" and found["more"]):
        return None
    if not found["trace"].strip(b"0") or not found["parent"].strip(b"0"):
        return None
    flags = int(found["flags"], 16) & 0x03  # the flags that version 00 knows
    return Trace(found["trace"].decode(), found["parent"].decode(), f"{flags:02x}")
