"""Five seconds of everything at once: good, bad, oversized and abandoned requests on one server."""

import asyncio
import json
import random
from collections import Counter
from urllib.parse import urlsplit

import pytest

from parity_online.client import Client
from parity_online.process import ServerProcess
from tests.online.serving import PROBE, metric

pytestmark = pytest.mark.slow

SECONDS = 5.0


class Traffic:
    """A client that sends what chance says and counts what came back wrong."""

    def __init__(self, url: str, seed: int) -> None:
        self.url = url
        self.random = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + SECONDS
        async with Client(self.url, connections=1) as self.client:
            while loop.time() < until:
                kind = self.random.choices(
                    [self.good, self.mixed, self.tensors, self.malformed, self.oversized, self.abandoned],
                    [60, 10, 10, 10, 2, 8],
                )[0]
                await kind()
                self.counts[kind.__name__] += 1

    async def post(self, path: str, body: object, status: int) -> object:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        reply = await self.client.post(path, data)
        if reply.status != status:
            self.wrong.append(f"{path} {data[:80]!r}: {reply.status} {reply.body[:200]!r}")
            return None
        return reply.json()

    async def good(self) -> None:
        number = self.random.randrange(10**6)
        answer = await self.post("/predictions/probe", {"id": number, "x": number % 1000}, 200)
        self.check(answer, number)

    async def mixed(self) -> None:
        number = self.random.randrange(10**6)
        rows = [{"id": number, "x": number % 1000}, {"id": 1, "act": "raise"}, {"id": "no"}]
        answers = await self.post("/predictions/probe", rows, 200)
        if isinstance(answers, list):
            self.check(answers[0], number)
            if [list(answer) for answer in answers[1:]] != [["error"], ["error"]]:
                self.wrong.append(f"mixed: {answers}")

    async def tensors(self) -> None:
        number = self.random.randrange(10**6)
        body = {
            "inputs": [
                {"name": "id", "datatype": "INT64", "shape": [2], "data": [number, number]},
                {"name": "x", "datatype": "FP32", "shape": [2], "data": [number % 1000, 0]},
            ]
        }
        answer = await self.post("/v2/models/probe/infer", body, 200)
        if isinstance(answer, dict) and answer["outputs"][1]["data"] != [2.0 * (number % 1000) + 1, 1.0]:
            self.wrong.append(f"tensors: {answer}")

    async def malformed(self) -> None:
        await self.post("/predictions/probe", self.random.choice([b"", b"{", b"[1,", b"\xff", b"{}"]), 400)

    async def oversized(self) -> None:
        await self.post("/predictions/probe", b" " * (2**20 + 1), 413)

    async def abandoned(self) -> None:
        host, _, port = urlsplit(self.url).netloc.partition(":")
        _, writer = await asyncio.open_connection(host, int(port))
        text = b'POST /predictions/probe HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"id": 1}'
        writer.write(text[: self.random.choice([len(text), len(text) // 2])])
        writer.transport.abort()

    def check(self, answer: object, number: int) -> None:
        if isinstance(answer, dict) and (answer["id"], answer["y"]) != (number, 2.0 * (number % 1000) + 1):
            self.wrong.append(f"row {number}: {answer}")


def test_under_mixed_load_every_good_request_gets_its_answer_and_every_bad_one_its_status():
    async def main(url: str) -> list[Traffic]:
        clients = [Traffic(url, seed) for seed in range(16)]
        await asyncio.gather(*(client.run() for client in clients))
        return clients

    with ServerProcess([PROBE, "--body-limit-mb", "1", "--log-level", "error"]) as server:
        clients = asyncio.run(main(server.url))
        assert metric(server.url, "parity_queue_rows") == 0
        assert server.stop() == 0
    wrong = [text for client in clients for text in client.wrong]
    assert not wrong, wrong[:5]
    counts = sum((client.counts for client in clients), Counter[str]())
    assert min(counts[kind] for kind in ("good", "mixed", "tensors", "malformed", "abandoned")) > 0
    assert "event=batch_failed" not in server.log()
    assert "kind=internal" not in server.log()
