"""A closed-loop load generator that keeps every answer and judges it when the run is over.

    python -m benchmarks.serving.drive PLAN.json --connections 32 --seconds 3

PLAN.json: url, content_type, bodies (base64), expected (scores) and answer (the keys that lead to a score).
Prints one JSON object. A process of its own, and lean, so that the server is what is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import numpy as np
import uvloop

TOLERANCE = 1e-5
"""Of a score; batches of other sizes may differ in the last bits."""


class Run:
    """What all connections share."""

    def __init__(self, requests: Sequence[bytes], until: float) -> None:
        self.requests = requests
        self.until = until
        self.latencies: list[float] = []
        self.answers: list[tuple[int, int, bytes]] = []
        self.broken: list[str] = []


class Connection(asyncio.Protocol):
    """One keep-alive connection: the next request when the answer is there."""

    def __init__(self, run: Run, offset: int) -> None:
        self._run = run
        self._next = offset
        self._buffer = b""
        self._sent_at = 0.0
        self._waits = False
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is none by inheritance
        self._send()

    def data_received(self, data: bytes) -> None:
        """Take an answer once it is whole."""
        self._buffer += data
        found = whole_answer(self._buffer)
        if found is None:
            return
        now = time.perf_counter()
        self._waits = False
        self._run.latencies.append(now - self._sent_at)
        status, body, closes = found
        self._run.answers.append((self._next % len(self._run.requests), status, body))
        self._buffer = b""
        self._next += 1
        if now < self._run.until and not closes:
            self._send()
        else:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """The end, or a fault of the server."""
        if self._waits:
            self._run.broken.append(f"closed without an answer: {exc}")
        if not self.done.done():
            self.done.set_result(None)

    def _send(self) -> None:
        self._waits = True
        self._sent_at = time.perf_counter()
        self._transport.write(self._run.requests[self._next % len(self._run.requests)])


def whole_answer(data: bytes) -> tuple[int, bytes, bool] | None:
    """Status, body and whether the connection ends; None while something is missing."""
    head_end = data.find(b"\r\n\r\n")
    if head_end < 0:
        return None
    head = data[:head_end].lower()
    closes = b"connection: close" in head
    rest = data[head_end + 4 :]
    mark = head.find(b"content-length:")
    if mark >= 0:
        length = int(head[mark + 15 :].split(b"\r\n", 1)[0])
        return (int(data[9:12]), rest, closes) if len(rest) >= length else None
    if not rest.endswith(b"0\r\n\r\n"):
        return None
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size, 16)
        body, rest = body + rest[:length], rest[length + 2 :]
    return int(data[9:12]), body, closes


async def drive(plan: dict[str, Any], connections: int, seconds: float) -> dict[str, Any]:
    """Requests per second, latencies in milliseconds, and how many answers were wrong."""
    parts = urlsplit(plan["url"])
    host, port = parts.hostname or "127.0.0.1", parts.port or 80
    head = f"POST {parts.path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: {plan['content_type']}\r\n"
    bodies = [base64.b64decode(body) for body in plan["bodies"]]
    requests = [f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body for body in bodies]
    loop = asyncio.get_running_loop()
    started = time.perf_counter()
    run = Run(requests, started + seconds)
    opened: list[Connection] = []
    for number in range(connections):
        offset = number * len(requests) // connections
        _, connection = await loop.create_connection(
            lambda offset=offset: Connection(run, offset), host, port
        )
        opened.append(connection)
    await asyncio.wait_for(asyncio.gather(*(connection.done for connection in opened)), seconds + 60)
    elapsed = time.perf_counter() - started
    wrong = [told for told in (judged(plan, *answer) for answer in run.answers) if told] + run.broken
    quantiles = np.quantile(np.asarray(run.latencies) * 1000, [0.5, 0.99]) if run.latencies else [0, 0]
    return {
        "requests": len(run.answers),
        "rps": (len(run.answers) - len(wrong)) / elapsed,
        "p50_ms": float(quantiles[0]),
        "p99_ms": float(quantiles[1]),
        "wrong": len(wrong),
        "first": wrong[:3],
    }


def judged(plan: dict[str, Any], place: int, status: int, body: bytes) -> str:
    """What is wrong with an answer; empty when nothing is."""
    if status != 200:
        return f"status {status}: {body[:200]!r}"
    try:
        found: Any = json.loads(body)
        for key in plan["answer"]:
            found = found[key]
        score = float(found)
    except (ValueError, TypeError, LookupError):
        return f"no score in {body[:200]!r}"
    expected = plan["expected"][place]
    return (
        "" if abs(score - expected) <= TOLERANCE else f"score {score} of request {place}, expected {expected}"
    )


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser("python -m benchmarks.serving.drive")
    parser.add_argument("plan", type=Path)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=3.0)
    options = parser.parse_args()
    plan = json.loads(options.plan.read_text(encoding="utf-8"))
    print(json.dumps(uvloop.run(drive(plan, options.connections, options.seconds))))


if __name__ == "__main__":
    main()
