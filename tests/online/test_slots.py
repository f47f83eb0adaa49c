"""A slot that hangs or dies, on real servers: its requests are told, it is replaced, readiness is true."""

import os
import shutil
import signal
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from parity_online.process import ServerProcess
from tests.online.serving import LINEAR, PROBE, Probe, ask, metric, until

pytestmark = pytest.mark.slow

PATH = "/predictions/probe"


def readiness(url: str) -> tuple[int, str]:
    status, _, answer = ask(url, "GET", "/v2/models/probe/ready")
    return status, answer.get("error", "")


def hang(probe: Probe, pool: ThreadPoolExecutor, row: int = 0) -> Future[Any]:
    return pool.submit(probe.ask, PATH, {"id": row, "wait": str(probe.gate())})


def test_a_thread_that_hangs_is_given_up_and_replaced(tmp_path: Path):
    arguments = [PROBE, "--slot", "thread", "--batch-limit-s", "0.5"]
    with ServerProcess(arguments, stop_s=20) as server, ThreadPoolExecutor(4) as pool:
        probe = Probe(server, tmp_path)
        stuck = hang(probe, pool)
        until(lambda: probe.metric("parity_batch_rows_count") == 1)
        waits = pool.submit(probe.ask, PATH, {"id": 5, "x": 5})
        status, headers, answer = stuck.result()
        assert (status, headers["retry-after"]) == (503, "1")
        assert "took longer than 0.5 s" in answer["error"]
        assert waits.result()[2]["y"] == 11.0, "it waited in the queue for the new slot"
        until(lambda: readiness(server.url)[0] == 200)
        assert probe.metric("parity_slots_lost_total", cause="hung") == 1
        assert probe.metric("parity_slots") == 1
        assert "event=slot_replaced" in server.log()


def test_a_deadline_that_is_sooner_than_the_limit_is_504(tmp_path: Path):
    arguments = [PROBE, "--slot", "thread", "--batch-limit-s", "1"]
    with ServerProcess(arguments, stop_s=20) as server, ThreadPoolExecutor(4) as pool:
        probe = Probe(server, tmp_path)
        body = {"id": 1, "wait": str(probe.gate())}
        stuck = pool.submit(probe.ask, PATH, body, {"X-Request-Timeout": "0.2"})
        assert stuck.result()[0] == 504
        until(lambda: probe.metric("parity_slots_lost_total", cause="hung") == 1)
        until(lambda: readiness(server.url)[0] == 200)
        assert probe.ask(PATH, {"id": 2, "x": 1})[2]["y"] == 3.0


def test_threads_that_hang_again_and_again_end_in_not_ready(tmp_path: Path):
    arguments = [PROBE, "--slot", "thread", "--batch-limit-s", "0.2", "--drain-s", "1"]
    with ServerProcess(arguments, stop_s=20) as server, ThreadPoolExecutor(4) as pool:
        probe = Probe(server, tmp_path)
        for row in range(3):
            until(lambda: readiness(server.url)[0] == 200)
            assert hang(probe, pool, row).result()[0] == 503
        status, reason = readiness(server.url)
        assert status == 503
        assert "3 batches hang" in reason
        assert "--replicas" in reason
        assert probe.ask(PATH, {"id": 9})[0] == 503
        assert ask(server.url, "GET", "/v2/health/live")[0] == 200
        for gate in range(1, 4):
            (tmp_path / f"gate-{gate}").touch()
        until(lambda: readiness(server.url)[0] == 200)
        assert probe.ask(PATH, {"id": 10, "x": 5})[2]["y"] == 11.0, "once they end, a slot is made after all"


def replicas_of(server: ServerProcess) -> list[psutil.Process]:
    return [
        child
        for child in psutil.Process(server.pid).children(recursive=True)
        if "parity_online.replica" in " ".join(child.cmdline())
    ]


def test_replicas_answer_as_one_process_does():
    rows = [
        {"features": [0.5 * n - 1.0, 2, 3, -0.0, 5, 6, 7, 8], "account": 2**53 + n, "name": name, "at": None}
        for n, name in enumerate(["a", "reject me", "b", "raise", "c"])
    ]
    answers: list[Any] = []
    for replicas in ("0", "2"):
        with ServerProcess([LINEAR, "--replicas", replicas, "--show-failures"]) as server:
            answers.append([ask(server.url, "POST", "/predictions/linear", rows)[2]])
            answers[-1] += [ask(server.url, "POST", "/predictions/linear", row)[2] for row in rows]
            for answer in answers[-1]:
                if isinstance(answer, dict):
                    answer.pop("id", None)
            assert metric(server.url, "parity_slots") == max(1, int(replicas))
            children = replicas_of(server)
            assert len(children) == int(replicas)
            assert server.stop() == 0
        psutil.wait_procs(children, timeout=20)
        assert not any(child.is_running() for child in children)
    assert answers[0] == answers[1]


def test_batches_run_on_two_replicas_at_once(tmp_path: Path):
    with ServerProcess([PROBE, "--replicas", "2"]) as server, ThreadPoolExecutor(4) as pool:
        probe = Probe(server, tmp_path)
        gates = [probe.gate(), probe.gate()]
        held: list[Future[Any]] = []
        for number, gate in enumerate(gates):
            body = {"id": number, "x": number, "wait": str(gate)}
            held.append(pool.submit(probe.ask, PATH, body))
            until(lambda n=number: probe.metric("parity_batch_rows_count") == n + 1)
        gates[1].touch()
        assert held[1].result()[2]["y"] == 3.0
        gates[0].touch()
        assert held[0].result()[2]["y"] == 1.0


def test_a_replica_that_is_killed_costs_its_batch_only_and_is_replaced(tmp_path: Path):
    with ServerProcess([PROBE, "--replicas", "1"]) as server, ThreadPoolExecutor(4) as pool:
        probe = Probe(server, tmp_path)
        held = hang(probe, pool)
        until(lambda: probe.metric("parity_batch_rows_count") == 1)
        waits = pool.submit(probe.ask, PATH, {"id": 5, "x": 5})
        until(lambda: probe.metric("parity_queue_rows") == 1)
        (replica,) = replicas_of(server)
        os.kill(replica.pid, signal.SIGKILL)
        status, headers, answer = held.result()
        assert (status, headers["retry-after"]) == (503, "1")
        assert "was ended by signal 9" in answer["error"]
        assert waits.result()[2]["y"] == 11.0
        assert readiness(server.url)[0] == 200
        assert probe.metric("parity_slots_lost_total", cause="died") == 1
        (other,) = replicas_of(server)
        assert other.pid != replica.pid


def test_a_replica_that_dies_while_it_waits_is_replaced_before_a_batch_meets_it():
    with ServerProcess([PROBE, "--replicas", "1"]) as server:
        (replica,) = replicas_of(server)
        os.kill(replica.pid, signal.SIGKILL)
        until(lambda: metric(server.url, "parity_slots_lost_total", cause="died") == 1)
        until(lambda: readiness(server.url)[0] == 200)
        assert ask(server.url, "POST", PATH, {"id": 1, "x": 1})[2]["y"] == 3.0


def test_a_replica_is_not_replaced_by_one_of_other_files(tmp_path: Path):
    folder = shutil.copytree(PROBE, tmp_path / "probe")
    with ServerProcess([str(folder), "--replicas", "1"]) as server:
        source = (folder / "handler.py").read_text()
        (folder / "handler.py").write_text(source + "\n# another version\n")
        (replica,) = replicas_of(server)
        os.kill(replica.pid, signal.SIGKILL)
        until(lambda: "changed since it was loaded" in readiness(server.url)[1])
        assert ask(server.url, "POST", PATH, {"id": 1, "x": 1})[0] == 503
        (folder / "handler.py").write_text(source)
        until(lambda: readiness(server.url)[0] == 200)
        assert ask(server.url, "POST", PATH, {"id": 1, "x": 1})[2]["y"] == 3.0


def test_a_replica_that_hangs_is_killed_and_replaced_as_often_as_it_takes(tmp_path: Path):
    with (
        ServerProcess([PROBE, "--replicas", "1", "--batch-limit-s", "0.3"]) as server,
        ThreadPoolExecutor(4) as pool,
    ):
        probe = Probe(server, tmp_path)
        for row in range(4):
            until(lambda: readiness(server.url)[0] == 200)
            status, _, answer = hang(probe, pool, row).result()
            assert status == 503
            assert "took longer than 0.3 s" in answer["error"]
        until(lambda: readiness(server.url)[0] == 200)
        assert probe.metric("parity_slots_lost_total", cause="hung") == 4
        assert probe.ask(PATH, {"id": 7, "x": 2})[2]["y"] == 5.0
        assert len(replicas_of(server)) == 1, "none is left over"


def test_a_server_that_is_killed_leaves_no_replica(tmp_path: Path):
    with ServerProcess([PROBE, "--replicas", "2"]) as server, ThreadPoolExecutor(4) as pool:
        probe = Probe(server, tmp_path)
        hang(probe, pool)
        until(lambda: probe.metric("parity_batch_rows_count") == 1)
        children = replicas_of(server)
        server.signal(signal.SIGKILL)
        server.wait()
        gone, left = psutil.wait_procs(children, timeout=20)
        assert len(gone) == 2
        assert not left


def test_a_replica_that_cannot_load_ends_the_server(tmp_path: Path):
    (tmp_path / "handler.py").write_text(
        (Path(PROBE) / "handler.py").read_text()
        + "\n    def initialize(self, context):\n        raise OSError('no disk')\n"
    )
    server = ServerProcess([str(tmp_path), "--replicas", "2"])
    with pytest.raises(Exception, match="initialize raised OSError: no disk"), server:
        pass
    assert server.exit_code == 6
