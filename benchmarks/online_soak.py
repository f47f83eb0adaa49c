"""Online: a server under mixed load answers every good request rightly, every bad one 4xx, in flat memory.

For a minute, 24 clients send good rows (checked against the batch runner's answers for the same rows), bodies
that are not JSON, rows that do not fit, bodies over the limit, unknown paths, and requests that they
abandon. Then, under good load, the server gets SIGTERM: every accepted request must be answered and the
exit code be 0.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.servers import ROOT, TABULAR, bar

ROWS = 2000
CLIENTS = 24
SECONDS = float(os.environ.get("PARITY_SOAK_SECONDS", "60"))
BODY_LIMIT_MB = 1
UNANSWERED = "closed without an answer"


def run() -> dict[str, object]:
    """The counts of each kind of request, the server's memory, and which bars hold."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = np.random.default_rng(11).normal(size=(ROWS, 32)).astype(np.float32)
        expected = batch_scores(folder, rows)
        command = [sys.executable, "-m", "parity", "serve", TABULAR, "--port", "0", "--log-level", "error"]
        command += ["--body-limit-mb", str(BODY_LIMIT_MB), "--set", "buckets=[32]"]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                port = 0
                for line in process.stdout:
                    event = json.loads(line)
                    port = int(str(event.get("url", f":{port}")).rsplit(":", 1)[1])
                    if event["event"] == "ready":
                        break
                return asyncio.run(soak(port, process, rows, expected))
            finally:
                process.kill()


def batch_scores(folder: Path, rows: np.ndarray) -> np.ndarray:
    """What the batch runner answers for the rows, with the bucket that the server has."""
    values = pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), 32)
    pq.write_table(pa.table({"x": values}), folder / "rows.parquet", row_group_size=500)
    command = [sys.executable, "-m", "parity", "batch", TABULAR, str(folder / "rows.parquet")]
    command += [str(folder / "scored"), "--set", "buckets=[32]", "--no-progress"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return pq.read_table(folder / "scored")["score"].to_numpy()


class Client:
    """One client that sends what chance says and keeps count of what was wrong."""

    def __init__(self, port: int, seed: int, rows: np.ndarray, expected: np.ndarray) -> None:
        self.port = port
        self.random = random.Random(seed)
        self.bodies = [json.dumps({"x": [float(str(value)) for value in row]}).encode() for row in rows[:400]]
        self.expected = expected
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.stop = False
        self.accepted_unanswered = 0

    async def mixed(self, until: float) -> None:
        loop = asyncio.get_running_loop()
        while loop.time() < until:
            kind = self.random.choices(
                ["good", "malformed", "misfit", "oversized", "unknown", "abandoned"], [80, 5, 5, 1, 2, 7]
            )[0]
            await getattr(self, kind)()
            self.counts[kind] += 1

    async def good_until_refused(self) -> None:
        """Send good rows until the server takes no more; a request that was sent must be answered."""
        while not self.stop:
            row = self.random.randrange(len(self.bodies))
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            except OSError:
                return
            try:
                writer.write(request("/predictions/tabular", self.bodies[row], close=True))
                await writer.drain()
                status, body = await answer(reader)
            except (OSError, asyncio.IncompleteReadError):
                self.counts[UNANSWERED] += 1
                return
            finally:
                writer.close()
            if status == 503:
                return
            self.counts["answered in drain"] += 1
            self.check(status, body, row)

    async def good(self) -> None:
        row = self.random.randrange(len(self.bodies))
        status, body = await self.ask("/predictions/tabular", self.bodies[row])
        self.check(status, body, row)

    def check(self, status: int, body: bytes, row: int) -> None:
        if status != 200:
            self.wrong.append(f"good request: status {status}: {body[:200]!r}")
        elif np.float32(json.loads(body)["score"]) != self.expected[row]:
            self.wrong.append(f"row {row}: {body!r}, the batch runner says {self.expected[row]!r}")

    async def malformed(self) -> None:
        await self.bad(
            "/predictions/tabular", self.random.choice([b"", b"{", b"[1,", b'{"x": NaN}', b"\xff\xfe"])
        )

    async def misfit(self) -> None:
        row = self.random.choice([{"x": [1.0] * 31}, {"x": None}, {}, {"x": ["a"] * 32}, {"y": 1}, [], 3])
        await self.bad("/predictions/tabular", json.dumps(row).encode(), empty_list=row == [])

    async def oversized(self) -> None:
        await self.bad("/predictions/tabular", b" " * (BODY_LIMIT_MB * 1024 * 1024 + 1), {413})

    async def unknown(self) -> None:
        await self.bad("/predictions/tabulr", self.bodies[0], {404})

    async def abandoned(self) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", self.port)
        body = self.bodies[0]
        text = request("/predictions/tabular", body)
        writer.write(text[: self.random.choice([len(text), len(text) // 2])])
        writer.transport.abort()

    async def bad(
        self, path: str, body: bytes, statuses: set[int] | None = None, *, empty_list: bool = False
    ) -> None:
        status, text = await self.ask(path, body)
        fine = status in statuses if statuses else 400 <= status < 500
        if not fine and not (empty_list and status == 200 and text == b"[]"):
            self.wrong.append(f"bad request {body[:60]!r}: status {status}: {text[:200]!r}")

    async def ask(self, path: str, body: bytes) -> tuple[int, bytes]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(request(path, body, close=True))
            return await answer(reader)
        finally:
            writer.close()


def request(path: str, body: bytes, *, close: bool = False) -> bytes:
    """An HTTP/1.1 POST with a JSON body."""
    end = "Connection: close\r\n" if close else ""
    head = f"POST {path} HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n{end}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Status and body of one answer."""
    head = await reader.readuntil(b"\r\n\r\n")
    lower = head.lower()
    mark = lower.find(b"content-length:")
    length = int(lower[mark + 15 :].split(b"\r\n", 1)[0])
    return int(head[9:12]), await reader.readexactly(length)


async def soak(
    port: int, process: subprocess.Popen[str], rows: np.ndarray, expected: np.ndarray
) -> dict[str, object]:
    """The minute of mixed load, then SIGTERM under good load."""
    server = psutil.Process(process.pid)
    loop = asyncio.get_running_loop()
    clients = [Client(port, seed, rows, expected) for seed in range(CLIENTS)]
    started = loop.time()
    work = asyncio.gather(*(client.mixed(started + SECONDS) for client in clients))
    memory: list[float] = []
    while not work.done():
        memory.append(server.memory_info().rss / 2**20)
        await asyncio.wait([work], timeout=SECONDS / 30)
    await work
    draining = asyncio.gather(*(client.good_until_refused() for client in clients))
    await asyncio.wait([draining], timeout=2)
    process.send_signal(signal.SIGTERM)
    await draining
    code = await asyncio.to_thread(process.wait, 60)
    counts: Counter[str] = sum((client.counts for client in clients), Counter())
    wrong = [text for client in clients for text in client.wrong]
    settled = memory[len(memory) // 3 :]
    growth = max(settled[-5:]) / max(settled[:5]) - 1
    return {
        "requests": dict(counts),
        "wrong_answers": len(wrong),
        "first_wrong": wrong[:5],
        "memory_mb_first_and_last_third": [round(settled[0], 1), round(settled[-1], 1)],
        "exit_code": code,
        "bars": [
            bar("good requests answered wrongly, or bad ones without a 4xx", len(wrong), 0, at="most"),
            bar("memory after the minute over memory after a third of it", 1 + growth, 1.05, at="most"),
            bar("accepted requests without an answer at SIGTERM", counts[UNANSWERED], 0, at="most"),
            bar("exit code", code, 0, at="most"),
        ],
    }


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
