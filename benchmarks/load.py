"""A closed-loop HTTP load generator: N connections, each sends its next request when it has its answer.

Runs in a process of its own, so that the server under test is not measured together with it:

    python -m benchmarks.load URL --bodies FILE --connections 32 --seconds 5

FILE holds one JSON body a line; connections take them in turn. Prints one JSON object. Request and answer are
handled in a few microseconds (no client library), so that the server is what is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import numpy as np


class Connection(asyncio.Protocol):
    """One keep-alive connection in the closed loop."""

    def __init__(self, requests: list[bytes], offset: int, until: float, latencies: list[float]) -> None:
        self._requests = requests
        self._next = offset
        self._until = until
        self._latencies = latencies
        self._buffer = b""
        self._sent_at = 0.0
        self.statuses: dict[int, int] = {}
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is none by inheritance
        self._send()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head_end = self._buffer.find(b"\r\n\r\n")
        if head_end < 0:
            return
        head = self._buffer[:head_end].lower()
        mark = head.find(b"content-length:")
        length = int(head[mark + 15 :].split(b"\r\n", 1)[0])
        if len(self._buffer) < head_end + 4 + length:
            return
        now = time.perf_counter()
        self._latencies.append(now - self._sent_at)
        status = int(self._buffer[9:12])
        self.statuses[status] = self.statuses.get(status, 0) + 1
        self._buffer = self._buffer[head_end + 4 + length :]
        if now < self._until:
            self._send()
        else:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_result(exc)

    def _send(self) -> None:
        request = self._requests[self._next % len(self._requests)]
        self._next += 1
        self._sent_at = time.perf_counter()
        self._transport.write(request)


async def drive(url: str, bodies: list[bytes], connections: int, seconds: float) -> dict[str, object]:
    """Requests per second, latencies in milliseconds and statuses of one closed-loop run."""
    parts = urlsplit(url)
    host, port = parts.hostname or "127.0.0.1", parts.port or 80
    head = f"POST {parts.path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
    requests = [f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body for body in bodies]
    latencies: list[float] = []
    started = time.perf_counter()
    until = started + seconds
    loop = asyncio.get_running_loop()
    protocols: list[Connection] = []
    for number in range(connections):
        offset = number * len(requests) // connections
        _, protocol = await loop.create_connection(
            lambda offset=offset: Connection(requests, offset, until, latencies), host, port
        )
        protocols.append(protocol)
    await asyncio.wait_for(asyncio.gather(*(protocol.done for protocol in protocols)), seconds + 30)
    elapsed = time.perf_counter() - started
    statuses: dict[int, int] = {}
    for protocol in protocols:
        for status, count in protocol.statuses.items():
            statuses[status] = statuses.get(status, 0) + count
    quantiles = np.quantile(np.asarray(latencies) * 1000, [0.5, 0.95, 0.99])
    return {
        "requests": len(latencies),
        "rps": len(latencies) / elapsed,
        "p50_ms": float(quantiles[0]),
        "p95_ms": float(quantiles[1]),
        "p99_ms": float(quantiles[2]),
        "statuses": statuses,
    }


def main() -> None:
    import uvloop

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--bodies", type=Path, required=True)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    bodies = options.bodies.read_bytes().splitlines()
    found = uvloop.run(drive(options.url, bodies, options.connections, options.seconds))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
