"""A server with workers that preprocess: stages of batches overlap, and nothing else is otherwise."""

import signal
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from parity.errors import ConfigError
from parity_online.process import ServerProcess
from parity_online.settings import ModelSettings
from tests.online.serving import HANDLERS, ask, metric, until

pytestmark = pytest.mark.slow

STEPS = str(HANDLERS / "steps")
PATH = "/predictions/steps"

WHERE = pytest.mark.parametrize("where", [[], ["--replicas", "1"]], ids=["threads", "replica"])


def post(server: ServerProcess, body: object, headers: dict[str, str] | None = None) -> tuple[int, Any]:
    status, _, answer = ask(server.url, "POST", PATH, body, headers)
    return status, answer


@WHERE
def test_a_batch_is_preprocessed_while_another_is_inferred(tmp_path: Path, where: list[str]):
    with (
        ServerProcess([STEPS, "--preprocess-workers", "1", *where]) as server,
        ThreadPoolExecutor(8) as pool,
    ):
        seen = {"seen": str(tmp_path)}
        first = pool.submit(post, server, {"x": 1, "infer": str(tmp_path / "go"), **seen})
        until((tmp_path / "inference-1").exists)
        second = pool.submit(post, server, {"x": 2, "finish": str(tmp_path / "end"), **seen})
        until((tmp_path / "preprocess-2").exists)
        # One is inferred and one is ready: what comes now waits for the next batch.
        more: list[Future[Any]] = [pool.submit(post, server, {"x": x, **seen}) for x in (3, 4, 5)]
        until(lambda: metric(server.url, "parity_queue_rows") == 3)
        assert not (tmp_path / "inference-2").exists()
        (tmp_path / "go").touch()
        assert first.result() == (200, {"x": 1, "y": 3, "rows": 1})
        until((tmp_path / "postprocess-2").exists)
        (tmp_path / "end").touch()
        assert second.result() == (200, {"x": 2, "y": 5, "rows": 1})
        assert [future.result()[1]["y"] for future in more] == [7, 9, 11]
        for stage in ("preprocess", "inference", "postprocess"):
            assert metric(server.url, "parity_stage_seconds_count", stage=stage) >= 3
        assert server.stop() == 0


@WHERE
@pytest.mark.parametrize(
    ("settings", "taken"),
    [([], 3), (["--set", "buckets=[4]"], 4), (["--max-delay-ms", "1"], 4), (["--preferred", "4"], 4)],
    ids=["any", "bucket", "delay", "preferred"],
)
def test_a_batch_takes_its_share_of_the_rows_and_fills_a_bucket(
    tmp_path: Path, where: list[str], settings: list[str], taken: int
):
    """Of four that wait and one that runs, each of two batches gets three, or what costs as much.

    Where fuller ones are asked for, the first takes all.
    """
    arguments = [STEPS, "--preprocess-workers", "1", *settings, *where]
    with ServerProcess(arguments) as server, ThreadPoolExecutor(8) as pool:
        held: list[Future[Any]] = []
        for x in (1, 2):
            body = {"x": x, "infer": str(tmp_path / f"go-{x}"), "seen": str(tmp_path)}
            held.append(pool.submit(post, server, body))
            until((tmp_path / f"preprocess-{x}").exists)
        more = [pool.submit(post, server, {"x": x}) for x in (3, 4, 5, 6)]
        until(lambda: metric(server.url, "parity_queue_rows") == 4)
        (tmp_path / "go-1").touch()
        assert held[0].result()[0] == 200
        until(lambda: metric(server.url, "parity_queue_rows") == 4 - taken)
        (tmp_path / "go-2").touch()
        sizes = sorted(future.result()[1]["rows"] for future in more)
        assert sizes == [4 - taken] * (4 - taken) + [taken] * taken


@WHERE
def test_answers_errors_and_times_are_those_of_one_thread(where: list[str]):
    rows = [{"x": x, "act": act} for x, act in enumerate(["", "reject", "", "raise", "infer", "finish", ""])]
    answers: list[Any] = []
    for workers in ("0", "2"):
        arguments = [STEPS, "--preprocess-workers", workers, "--show-failures", *where]
        with ServerProcess(arguments) as server, ThreadPoolExecutor(8) as pool:
            together = post(server, rows)
            alone = list(pool.map(lambda row, server=server: post(server, row), rows * 20))
            assert metric(server.url, "parity_rows_total") == 3 * 21
        answers.append([(status, _plain(answer)) for status, answer in (together, *alone)])
    assert answers[0] == answers[1]


def _plain(answer: Any) -> Any:
    """An answer without the id, and without the rows of its batch, which is any."""
    if not isinstance(answer, dict):
        return [_plain(item) for item in answer] if isinstance(answer, list) else answer
    return {
        key: _plain(value)
        for key, value in answer.items()
        if key not in ("id", "rows") or (key == "rows" and isinstance(value, list))
    }


@pytest.mark.parametrize(
    ("where", "stage"), [([], "infer"), (["--replicas", "1"], "prepare")], ids=["threads", "replica"]
)
def test_a_stage_that_hangs_costs_what_waits_for_it_and_its_slot_is_replaced(
    tmp_path: Path, where: list[str], stage: str
):
    arguments = [STEPS, "--preprocess-workers", "1", "--batch-limit-s", "0.5", *where]
    with ServerProcess(arguments, stop_s=20) as server, ThreadPoolExecutor(8) as pool:
        stuck = pool.submit(post, server, {"x": 1, stage: str(tmp_path / "never")})
        status, answer = stuck.result()
        assert status == 503
        assert "took longer than 0.5 s" in answer["error"]
        until(lambda: ask(server.url, "GET", "/v2/health/ready")[0] == 200)
        assert metric(server.url, "parity_slots_lost_total", cause="hung") == 1
        assert post(server, {"x": 5})[1]["y"] == 11


def test_waiting_for_the_model_is_no_hanging(tmp_path: Path):
    """Three batches that each take half the limit: the last waits for longer than that in all."""
    arguments = [STEPS, "--preprocess-workers", "2", "--batch-limit-s", "4"]
    with ServerProcess(arguments, stop_s=20) as server, ThreadPoolExecutor(8) as pool:
        held: list[Future[Any]] = []
        for x in range(3):
            body = {"x": x, "infer": str(tmp_path / f"go-{x}"), "seen": str(tmp_path)}
            held.append(pool.submit(post, server, body))
            until((tmp_path / f"preprocess-{x}").exists)
        for x in range(3):
            until((tmp_path / f"inference-{x}").exists)
            with pytest.raises(TimeoutError):
                held[x].result(2)
            (tmp_path / f"go-{x}").touch()
            assert held[x].result()[0] == 200
        assert metric(server.url, "parity_slots_lost_total") == 0


def test_a_deadline_passes_while_the_batch_waits_for_the_model(tmp_path: Path):
    arguments = [STEPS, "--preprocess-workers", "1"]
    with ServerProcess(arguments) as server, ThreadPoolExecutor(8) as pool:
        first = pool.submit(post, server, {"x": 1, "infer": str(tmp_path / "go"), "seen": str(tmp_path)})
        until((tmp_path / "inference-1").exists)
        late = post(server, {"x": 2}, {"X-Request-Timeout": "0.2"})
        assert late[0] == 504
        assert "while its batch ran" in late[1]["error"]
        (tmp_path / "go").touch()
        assert first.result()[1]["y"] == 3
        assert post(server, {"x": 3})[1]["y"] == 7


def test_a_drain_finishes_what_is_in_any_stage(tmp_path: Path):
    arguments = [STEPS, "--preprocess-workers", "1", "--replicas", "1"]
    with ServerProcess(arguments) as server, ThreadPoolExecutor(8) as pool:
        held: list[Future[Any]] = []
        for x in (1, 2):
            body = {"x": x, "infer": str(tmp_path / "go"), "seen": str(tmp_path)}
            held.append(pool.submit(post, server, body))
            until((tmp_path / f"preprocess-{x}").exists)
        held.append(pool.submit(post, server, {"x": 3}))
        until(lambda: metric(server.url, "parity_queue_rows") == 1)
        server.signal(signal.SIGTERM)
        until(lambda: "event=draining" in server.log())
        (tmp_path / "go").touch()
        assert [future.result()[1]["y"] for future in held] == [3, 5, 7]
        assert server.wait() == 0


def test_preprocessing_in_processes_survives_their_death_and_ends_with_the_server(tmp_path: Path):
    arguments = [STEPS, "--preprocess-processes", "1", "--show-failures", "--batch-limit-s", "20"]
    rows = [{"x": x, "act": act} for x, act in enumerate(["", "reject", "raise", ""])]
    with ServerProcess(arguments) as server, ThreadPoolExecutor(8) as pool:
        assert [post(server, row)[0] for row in rows] == [200, 400, 500, 200]
        held = pool.submit(post, server, {"x": 7, "prepare": str(tmp_path / "go"), "seen": str(tmp_path)})
        until((tmp_path / "preprocess-7").exists)
        (process,) = processes_of(server)
        process.kill()
        (tmp_path / "go").touch()
        assert held.result() == (200, {"x": 7, "y": 15, "rows": 1}), "tried once more by another process"
        assert "event=preprocess_process_replaced" in server.log()
        left = processes_of(server)
        assert len(left) == 1
        assert server.stop() == 0
    gone, alive = psutil.wait_procs(left, timeout=20)
    assert (len(gone), alive) == (1, [])


def test_a_process_that_hangs_while_it_preprocesses_is_ended_with_its_slot(tmp_path: Path):
    arguments = [STEPS, "--preprocess-processes", "1", "--batch-limit-s", "0.5"]
    with ServerProcess(arguments) as server, ThreadPoolExecutor(2) as pool:
        before = processes_of(server)
        stuck = pool.submit(post, server, {"x": 1, "prepare": str(tmp_path / "never")})
        assert stuck.result()[0] == 503
        until(lambda: ask(server.url, "GET", "/v2/health/ready")[0] == 200)
        assert psutil.wait_procs(before, timeout=20)[1] == []
        assert metric(server.url, "parity_slots_lost_total", cause="hung") == 1
        assert post(server, {"x": 5})[1]["y"] == 11


def processes_of(server: ServerProcess) -> list[psutil.Process]:
    return [
        child
        for child in psutil.Process(server.pid).children(recursive=True)
        if "parity.preprocess_process" in " ".join(child.cmdline())
    ]


def test_the_event_loop_has_no_stages_that_overlap():
    with pytest.raises(ConfigError, match="exclude each other"):
        ModelSettings(slot="loop", preprocess_workers=1)
