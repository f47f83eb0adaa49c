"""What happens to requests while the slot is busy: batches, deadlines, a full queue, clients that leave."""

import concurrent.futures
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.online.serving import Probe, until

pytestmark = pytest.mark.slow

PATH = "/predictions/probe"
Answer = tuple[int, dict[str, str], Any]


class Busy:
    """The slot held by a row that waits for a file, and requests sent in the meantime, each on a thread."""

    def __init__(self, probe: Probe, pool: ThreadPoolExecutor) -> None:
        self.probe = probe
        self._pool = pool
        self._gate: Path = probe.gate()
        batches = probe.metric("parity_batch_rows_count", model="probe")
        self.holder = self.send({"id": 1000, "wait": str(self._gate)})
        until(lambda: probe.metric("parity_batch_rows_count", model="probe") > batches)

    def send(self, body: object, headers: dict[str, str] | None = None, path: str = PATH) -> Future[Answer]:
        return self._pool.submit(self.probe.ask, path, body, headers)

    def queue(self, body: object) -> Future[Answer]:
        """Send, and return once the row waits."""
        before = self.waiting()
        future = self.send(body)
        until(lambda: self.waiting() > before)
        return future

    def waiting(self) -> float:
        return self.probe.metric("parity_queue_rows", model="probe")

    def release(self) -> None:
        self._gate.touch()


@pytest.fixture
def busy(probe: Probe) -> Iterator[Callable[[], Busy]]:
    held: list[Busy] = []
    with ThreadPoolExecutor(32) as pool:

        def hold() -> Busy:
            held.append(Busy(probe, pool))
            return held[-1]

        yield hold
        for each in held:
            each.release()


def test_rows_that_queue_share_a_batch(busy: Callable[[], Busy]):
    slot = busy()
    queued = [slot.queue({"id": number, "x": number}) for number in range(5)]
    slot.release()
    answers = [future.result()[2] for future in queued]
    assert [(answer["id"], answer["y"], answer["rows"]) for answer in answers] == [
        (number, 2.0 * number + 1, 5) for number in range(5)
    ]
    assert slot.holder.result()[0] == 200


def test_a_row_that_raises_does_not_harm_its_neighbours(busy: Callable[[], Busy]):
    slot = busy()
    queued = [slot.queue({"id": n, "x": n, "act": {2: "raise", 4: "reject"}.get(n, "")}) for n in range(6)]
    slot.release()
    answers = [future.result() for future in queued]
    assert [answer[0] for answer in answers] == [200, 200, 500, 200, 400, 200]
    assert [answer[2]["y"] for answer in answers if answer[0] == 200] == [1.0, 3.0, 7.0, 11.0]


def test_both_protocols_share_a_batch(busy: Callable[[], Busy]):
    slot = busy()
    rows = [slot.queue({"id": 1, "x": 1.0})]
    tensors = {
        "inputs": [
            {"name": "id", "datatype": "INT64", "shape": [3], "data": [2, 3, 4]},
            {"name": "x", "datatype": "FP32", "shape": [3], "data": [2.0, 3.0, 4.0]},
        ]
    }
    before = slot.waiting()
    infer = slot.send(tensors, path="/v2/models/probe/infer")
    until(lambda: slot.waiting() > before)
    rows.append(slot.queue({"id": 5, "x": 5.0}))
    slot.release()
    assert [future.result()[2]["y"] for future in rows] == [3.0, 11.0]
    assert {future.result()[2]["rows"] for future in rows} == {5}
    outputs = {output["name"]: output["data"] for output in infer.result()[2]["outputs"]}
    assert outputs == {"id": [2, 3, 4], "y": [5.0, 7.0, 9.0], "rows": [5, 5, 5]}


def test_a_deadline_in_the_queue_is_504_and_the_row_does_not_run(busy: Callable[[], Busy]):
    slot = busy()
    timeouts = slot.probe.metric("parity_timeouts_total", model="probe")
    status, _, answer = slot.send({"id": 2001}, {"X-Request-Timeout": "0.05"}).result()
    assert status == 504
    assert "in the queue" in answer["error"]
    assert slot.probe.metric("parity_timeouts_total", model="probe") == timeouts + 1
    slot.release()
    slot.holder.result()
    assert 2001 not in slot.probe.ran()


def test_a_deadline_while_the_batch_runs_is_504(busy: Callable[[], Busy]):
    slot = busy()
    slot.release()
    slot.holder.result()
    gate = slot.probe.gate()
    try:
        status, _, answer = slot.probe.ask(
            PATH, {"id": 2002, "wait": str(gate)}, {"X-Request-Timeout": "0.05"}
        )
        assert status == 504
        assert "while its batch ran" in answer["error"]
    finally:
        gate.touch()


def test_a_v2_timeout_counts_in_microseconds(busy: Callable[[], Busy]):
    slot = busy()
    body = {
        "parameters": {"timeout": 50_000},
        "inputs": [{"name": "id", "datatype": "INT64", "shape": [1], "data": [1]}],
    }
    assert slot.send(body, path="/v2/models/probe/infer").result()[0] == 504


def test_a_full_queue_is_503_with_retry_after_and_loses_nothing(busy: Callable[[], Busy]):
    slot = busy()
    queued = [slot.send({"id": number, "x": number}) for number in range(16)]
    until(lambda: slot.waiting() == 16)
    status, headers, answer = slot.send({"id": 99}).result()
    assert status == 503
    assert int(headers["retry-after"]) >= 1
    assert "16 of 16 rows" in answer["error"]
    assert slot.send([{"id": 98}, {"id": 97}]).result()[0] == 503
    assert slot.probe.metric("parity_rejected_total", model="probe", reason="queue_full") >= 2
    slot.release()
    answers = [future.result() for future in queued]
    assert [(answer[0], answer[2]["y"]) for answer in answers] == [(200, 2.0 * n + 1) for n in range(16)]


def leave(probe: Probe, row: int) -> socket.socket:
    """Send a request and return its connection, to be closed without reading."""
    host, _, port = urlsplit(probe.server.url).netloc.partition(":")
    connection = socket.create_connection((host, int(port)), timeout=30)
    body = b'{"id": %d}' % row
    head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)
    return connection


def test_a_client_that_leaves_is_dropped_from_the_queue(busy: Callable[[], Busy]):
    slot = busy()
    cancelled = slot.probe.metric("parity_cancelled_total", model="probe")
    left = slot.probe.metric("parity_answers_total", model="probe", status="499")
    gone = leave(slot.probe, 3001)
    until(lambda: slot.waiting() == 1)
    gone.close()
    stays = slot.queue({"id": 3002})
    slot.release()
    assert stays.result()[2]["rows"] == 1
    assert slot.probe.metric("parity_cancelled_total", model="probe") == cancelled + 1
    assert slot.probe.metric("parity_answers_total", model="probe", status="499") == left + 1
    assert 3002 in slot.probe.ran()
    assert 3001 not in slot.probe.ran()


def test_clients_that_left_make_room_in_a_full_queue(busy: Callable[[], Busy]):
    slot = busy()
    gone = [leave(slot.probe, 3100 + number) for number in range(16)]
    until(lambda: slot.waiting() == 16)
    for connection in gone:
        connection.close()
    assert slot.waiting() == slot.waiting() == 16, (
        "nobody looks before there is a need; the loop sees them leave"
    )
    stays = slot.send({"id": 3200})
    until(lambda: slot.waiting() == 1)
    slot.release()
    assert stays.result()[0] == 200
    assert not slot.probe.ran() & set(range(3100, 3116))


def test_health_and_metrics_answer_while_the_model_is_busy(busy: Callable[[], Busy]):
    slot = busy()
    assert slot.probe.metric("parity_ready", model="probe") == 1
    assert not concurrent.futures.wait([slot.holder], timeout=0).done
