"""Replicas are killed under load: every request is answered once, rightly or with a 503 that says why."""

import asyncio
import json
import os
import signal
from collections import Counter

import psutil
import pytest

from parity_online.client import Client
from parity_online.process import ServerProcess
from tests.online.serving import PROBE, metric, until
from tests.online.test_slots import replicas_of

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("PARITY_CHAOS_KILLS", "5"))


@pytest.mark.timeout(60 + 60 * KILLS)
def test_replicas_killed_under_load_lose_no_request():
    counts: Counter[str] = Counter()

    async def client(url: str, number: int, done: asyncio.Event) -> None:
        async with Client(url, connections=1) as http:
            while not done.is_set():
                reply = await http.post("/predictions/probe", b'{"id": %d, "x": %d}' % (number, number))
                if reply.status == 200:
                    answer = json.loads(reply.body)
                    right = (answer["id"], answer["y"]) == (number, 2.0 * number + 1)
                    counts["right" if right else "wrong"] += 1
                elif reply.status == 503 and "retry-after" in reply.headers:
                    said = str(reply.json())
                    counts["died" if "was ended by signal 9" in said else f"503: {said[:200]}"] += 1
                else:
                    counts[f"{reply.status}: {reply.body[:200]!r}"] += 1

    async def killer(server: ServerProcess, done: asyncio.Event) -> None:
        for kill in range(KILLS):
            before = counts["right"]
            async with asyncio.timeout(60):
                while counts["right"] < before + 100:  # noqa: ASYNC110 - the clients count
                    await asyncio.sleep(0.01)
            replicas = await asyncio.to_thread(replicas_of, server)
            os.kill(replicas[kill % len(replicas)].pid, signal.SIGKILL)
            async with asyncio.timeout(60):
                lost, alive = 0.0, 0.0
                while lost < kill + 1 or alive < 2:
                    await asyncio.sleep(0.02)
                    lost = await asyncio.to_thread(metric, server.url, "parity_slots_lost_total")
                    alive = await asyncio.to_thread(metric, server.url, "parity_slots")
        done.set()

    async def main(server: ServerProcess) -> None:
        done = asyncio.Event()
        clients = [client(server.url, number, done) for number in range(16)]
        await asyncio.gather(killer(server, done), *clients)

    with ServerProcess([PROBE, "--replicas", "2", "--max-batch", "4"]) as server:
        asyncio.run(main(server))
        until(lambda: metric(server.url, "parity_slots") == 2)
        assert len(replicas_of(server)) == 2
        assert psutil.Process(server.pid).num_threads() < 40, "the threads of lost slots have ended"
        assert server.stop() == 0
    unforeseen = {what: count for what, count in counts.items() if what not in ("right", "died")}
    recovering = sum(count for what, count in unforeseen.items() if "is not ready" in what)
    assert sum(unforeseen.values()) == recovering, unforeseen
    assert counts["right"] >= 100 * KILLS
    assert counts["died"] <= 4 * KILLS, "a death costs the batch that it took, and no more"
