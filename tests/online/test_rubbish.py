"""Handlers that do what none should, a target of a capture that fails and a clock that jumps: under load."""

import asyncio
import json
import os
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from parity_online.client import Client
from parity_online.process import ServerProcess
from tests.online.serving import HANDLERS, PROBE, ask, metric, until

pytestmark = pytest.mark.slow

CHAOS = str(HANDLERS / "chaos")
WHOLE = ("mutate", "interrupt")
"""What fails a batch as a whole, so that its requests are run once more, each alone."""

ACTS = (
    *("mutate", "no memory", "exit", "interrupt", "stop", "cancel", "half", "recurse"),
    *("none", "short", "long", "dtype", "names", "object"),
)
CLOCK = """
import os, time
_real, _real_ns = time.time, time.time_ns
def _offset():
    try:
        with open(os.environ["CLOCK_OFFSET"]) as file:
            return int(file.read() or 0)
    except OSError:
        return 0
time.time = lambda: _real() + _offset()
time.time_ns = lambda: _real_ns() + _offset() * 10**9
"""
"""A sitecustomize.py: the wall clock of the process is off by the seconds that a file holds."""


class Load:
    """Clients that ask for good rows until they are told to stop; every answer is counted."""

    def __init__(self, url: str, name: str) -> None:
        self.url = url
        self.path = f"/predictions/{name}"
        self.outcomes: Counter[str] = Counter()
        self.done = asyncio.Event()

    async def client(self, number: int) -> None:
        async with Client(self.url, connections=1) as http:
            while not self.done.is_set():
                reply = await http.post(self.path, b'{"id": %d, "x": %d}' % (number, number))
                right = reply.status == 200 and json.loads(reply.body)["y"] == 2.0 * number + 1
                self.outcomes["right" if right else f"{reply.status}: {reply.body[:200]!r}"] += 1

    async def more(self, count: int) -> None:
        """Return once so many more rows have been answered rightly."""
        goal = self.outcomes["right"] + count
        async with asyncio.timeout(60):
            while self.outcomes["right"] < goal:  # noqa: ASYNC110 - the clients count
                await asyncio.sleep(0.005)

    async def around(self, trouble: Callable[[], Awaitable[None]]) -> None:
        """Run the trouble while eight clients ask."""
        clients = [asyncio.create_task(self.client(number)) for number in range(8)]
        try:
            await trouble()
        finally:
            self.done.set()
            await asyncio.gather(*clients)


@pytest.mark.parametrize("slot", ["thread", "loop"])
def test_whatever_a_handler_does_to_one_row_the_others_get_their_answers(slot: str) -> None:
    told: dict[str, tuple[int, bytes]] = {}

    async def main(url: str) -> Counter[str]:
        load = Load(url, "chaos")

        async def trouble() -> None:
            async with Client(url, connections=1) as http:
                for act in ACTS:
                    await load.more(20)
                    reply = await http.post("/predictions/chaos", json.dumps({"id": 1, "act": act}).encode())
                    told[act] = reply.status, reply.body

        await load.around(trouble)
        return load.outcomes

    with ServerProcess([CHAOS, "--slot", slot, "--max-batch", "8"]) as server:
        outcomes = asyncio.run(main(server.url))
        assert {act: status for act, (status, _) in told.items()} == dict.fromkeys(ACTS, 500), told
        kinds = {act: json.loads(body).get("rows", [{}])[0].get("kind") for act, (_, body) in told.items()}
        assert kinds == {act: None if act in WHOLE else "failed" for act in ACTS}, told
        assert set(outcomes) == {"right"}, outcomes
        assert ask(server.url, "GET", "/v2/health/ready")[0] == 200
        assert server.stop() == 0


def test_a_clock_that_jumps_changes_no_answer_and_no_deadline(tmp_path: Path) -> None:
    offset = tmp_path / "offset"
    (tmp_path / "sitecustomize.py").write_text(CLOCK)
    capture = tmp_path / "capture"
    before = os.environ.get("PYTHONPATH")
    environment = {
        "CLOCK_OFFSET": str(offset),
        "PYTHONPATH": str(tmp_path) if before is None else f"{tmp_path}{os.pathsep}{before}",
    }

    async def main(url: str) -> Counter[str]:
        load = Load(url, "probe")

        async def trouble() -> None:
            async with Client(url, connections=1) as http:
                for seconds in (86_400, -86_400, 10**8, 0, -(10**9), 5):
                    offset.write_text(str(seconds))
                    await load.more(50)
                    timeout = [("X-Request-Timeout", "30")]
                    reply = await http.post("/predictions/probe", b'{"id": 1, "x": 1}', timeout)
                    assert reply.status == 200
                    late = await http.post(
                        "/predictions/probe", b'{"id": 1}', [("X-Request-Timeout", "1e-6")]
                    )
                    assert late.status == 504

        await load.around(trouble)
        return load.outcomes

    arguments = [PROBE, "--capture", str(capture), "--capture-rotate-s", "1"]
    with ServerProcess(arguments, environment=environment) as server:
        outcomes = asyncio.run(main(server.url))
        assert set(outcomes) == {"right"}, outcomes
        until(lambda: metric(server.url, "parity_captured_rows_total") >= 300)
        assert metric(server.url, "parity_capture_lost_rows_total") == 0
        assert server.stop() == 0
    assert list(capture.rglob("*.parquet"))
    assert "kind=internal" not in server.log()
