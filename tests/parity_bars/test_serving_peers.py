"""The comparison with other servers, with the peer that needs nothing but this environment; untimed."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from benchmarks.environments import Environments
from benchmarks.serving.contest import OURS, contest
from benchmarks.serving.drive import drive, judged, whole_answer
from benchmarks.serving.peers import HERE, PEERS
from benchmarks.serving_peers import bars, markdown, marks


class Here(Environments):
    """This environment for every peer."""

    def python(self, name: str) -> Path:
        return Path(sys.executable)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_peers_are_driven_and_their_answers_checked(tmp_path: Path) -> None:
    peers = [peer for peer in PEERS if peer.name == "fastapi"]
    found = contest("vector", peers, Here(tmp_path), 1, 0.2, tmp_path, connections=(2,))
    assert set(found.runs) == {OURS, "fastapi"}
    for runs in found.runs.values():
        (told,) = runs[2]
        assert told["requests"] > 0
        assert told["wrong"] == 0, told["first"]
        assert 0 < told["p50_ms"] <= told["p99_ms"]
    assert found.loop_rps[0] > 0
    names = [bar["what"] for bar in bars(found)]
    assert "vector, 2 connections: requests/s over FastAPI, row by row's" in names
    text = markdown(found, {"fastapi": "1.2.3"})
    assert "| `parity serve` |" in text
    assert "fastapi 1.2.3" in text


def test_each_workload_has_its_place_in_the_docs_and_each_peer_its_script() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "benchmarks.md").read_text(encoding="utf-8")
    for workload in ("vector", "picture"):
        begin, end = marks(workload)
        assert page.index(begin) < page.index(end)
    for peer in PEERS:
        scripts = [text for text in peer.arguments if text.startswith(str(HERE))]
        assert all(Path(script).is_file() for script in scripts), peer.name


def test_answers_are_taken_whole_whatever_their_framing() -> None:
    plain = b'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n{"a"'
    assert whole_answer(plain[:-1]) is None
    assert whole_answer(plain) == (200, b'{"a"', False)
    head = b"HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    assert whole_answer(head + b"3\r\nabc\r\n") is None
    assert whole_answer(head + b"3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n") == (500, b"abcd", True)


def test_a_wrong_answer_is_told_from_a_right_one() -> None:
    plan = {"answer": ["outputs", 0], "expected": [1.5, -1.0]}
    assert judged(plan, 0, 200, b'{"outputs": [1.5]}') == ""
    assert judged(plan, 1, 200, b'{"outputs": [1.5]}') == "score 1.5 of request 1, expected -1.0"
    assert judged(plan, 0, 503, b"busy").startswith("status 503")
    assert judged(plan, 0, 200, b"{}").startswith("no score")


def test_a_server_that_hangs_up_is_told() -> None:
    async def main() -> dict[str, object]:
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        plan = {"url": f"http://127.0.0.1:{port}/x", "content_type": "a/b", "answer": [], "expected": [0.0]}
        async with server:
            return await drive({**plan, "bodies": ["YQ=="]}, 1, 0.1)

    found = asyncio.run(main())
    assert found["wrong"] == 1
    assert "closed without an answer" in json.dumps(found["first"])
