"""Start, readiness, drain and exit of a real server process."""

import asyncio
import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from parity.errors import RunnerError
from parity_online.client import Client
from parity_online.process import ServerProcess
from tests.online.serving import JSON, LINEAR, PROBE, Probe, address, ask, metric, until

pytestmark = pytest.mark.slow


def handler_folder(folder: Path, name: str, code: str) -> str:
    """A copy of a test handler with `code` added."""
    shutil.copytree(Path(PROBE).parent / name, folder / name)
    with (folder / name / "handler.py").open("a") as file:
        file.write(code)
    return str(folder / name)


def test_sigterm_under_load_answers_every_accepted_request():
    """Every answer is right, or a 503 that says why; no answer is cut off, and the exit code is 0."""
    counts: Counter[str] = Counter()

    async def client(url: str, number: int, enough: asyncio.Event) -> None:
        async with Client(url, connections=1) as http:
            while True:
                try:
                    reply = await http.post("/predictions/probe", b'{"id": %d, "x": %d}' % (number, number))
                except OSError:
                    counts["refused"] += 1
                    return
                except RunnerError:
                    counts["cut off"] += 1
                    return
                if reply.status == 503:
                    counts["503"] += 1
                    assert reply.headers["connection"] == "close"
                    assert "shutting down" in str(reply.json())
                    return
                assert reply.status == 200
                assert json.loads(reply.body)["y"] == 2.0 * number + 1
                counts["200"] += 1
                if counts["200"] == 500:
                    enough.set()

    async def main(server: ServerProcess) -> None:
        enough = asyncio.Event()
        clients = [asyncio.create_task(client(server.url, number, enough)) for number in range(16)]
        await enough.wait()
        server.signal()
        await asyncio.gather(*clients)

    with ServerProcess([PROBE]) as server:
        asyncio.run(main(server))
        assert server.wait() == 0
    assert counts["200"] >= 500
    assert counts["503"], "those who came during the drain were told so"
    assert counts["cut off"] == 0, counts
    assert "event=stopped" in server.log()


def readiness(connection: http.client.HTTPConnection) -> int:
    connection.request("GET", "/v2/health/ready")
    with connection.getresponse() as response:
        response.read()
        return response.status


def test_sigterm_is_not_ready_at_once_and_finishes_what_waits(tmp_path: Path):
    with (
        ServerProcess([PROBE, "--max-batch", "2", "--slot", "thread"]) as server,
        ThreadPoolExecutor(8) as pool,
    ):
        probe = Probe(server, tmp_path)
        gate = probe.gate()
        accepted = [pool.submit(probe.ask, "/predictions/probe", {"id": 0, "wait": str(gate)})]
        until(lambda: probe.metric("parity_batch_rows_count") == 1)
        accepted += [pool.submit(probe.ask, "/predictions/probe", {"id": n, "x": n}) for n in range(1, 6)]
        until(lambda: probe.metric("parity_queue_rows") == 5)
        kept = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=30)
        with contextlib.closing(kept):
            assert readiness(kept) == 200
            server.signal()
            until(lambda: "event=draining" in server.log())
            assert readiness(kept) == 503
        gate.touch()
        answers = [future.result() for future in accepted]
        assert [(answer[0], answer[2]["y"]) for answer in answers] == [(200, 2.0 * n + 1) for n in range(6)]
        assert server.wait() == 0


def test_a_drain_that_takes_too_long_is_given_up(tmp_path: Path):
    with (
        ServerProcess([PROBE, "--drain-s", "0.2", "--slot", "thread"], stop_s=20) as server,
        ThreadPoolExecutor(8) as pool,
    ):
        probe = Probe(server, tmp_path)
        stuck = pool.submit(probe.ask, "/predictions/probe", {"id": 0, "wait": str(probe.gate())})
        until(lambda: probe.metric("parity_batch_rows_count") == 1)
        server.signal()
        status, headers, answer = stuck.result()
        assert status == 503
        assert "ran out of time" in answer["error"]
        assert headers["connection"] == "close"
        assert server.wait() == 0
    assert "event=drain_gave_up requests=1" in server.log()


@pytest.fixture
def hears_hangups() -> Iterator[None]:
    """What is started hears SIGHUP, though the tests themselves may run under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("hears_hangups")
@pytest.mark.parametrize("replicas", ["0", "1"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_it_costs_no_request_whoever_of_its_group_hears_it(
    number: signal.Signals, replicas: str, tmp_path: Path
):
    with (
        ServerProcess([PROBE, "--slot", "thread", "--replicas", replicas]) as server,
        ThreadPoolExecutor(8) as pool,
    ):
        probe = Probe(server, tmp_path)
        gate = probe.gate()
        accepted = pool.submit(probe.ask, "/predictions/probe", {"id": 7, "x": 7, "wait": str(gate)})
        until(lambda: probe.metric("parity_batch_rows_count") == 1)
        os.killpg(server.pid, number)  # as a terminal does
        until(lambda: "event=draining" in server.log())
        gate.touch()
        status, _, answer = accepted.result()
        assert (status, answer["y"]) == (200, 15.0)
        assert server.wait() == 0


def answers(server: ServerProcess) -> bool:
    connection = http.client.HTTPConnection(*address(server.url), timeout=0.5)
    try:
        connection.request("GET", "/v2/health/live")
        return connection.getresponse().status == 200
    except TimeoutError:
        return False
    finally:
        connection.close()


def test_a_second_signal_ends_a_server_whose_event_loop_hangs(tmp_path: Path):
    with (
        ServerProcess([PROBE, "--slot", "loop"], stop_s=20) as server,
        ThreadPoolExecutor(2) as pool,
    ):
        body = {"id": 0, "wait": str(tmp_path / "never")}
        lost = pool.submit(ask, server.url, "POST", "/predictions/probe", body)
        until(lambda: not answers(server))
        server.signal()
        until(lambda: "event=draining" in server.log())
        server.signal()
        assert server.wait() == 128 + signal.SIGTERM
        assert isinstance(lost.exception(), OSError | http.client.HTTPException)
    assert "event=ended_stuck signal=SIGTERM" in server.log()


@pytest.mark.parametrize("replicas", ["0", "1"])
def test_signals_of_other_customs_are_ignored_and_logged(replicas: str):
    with ServerProcess([LINEAR, "--replicas", replicas]) as server:
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            os.killpg(server.pid, number)
            until(lambda number=number: f"event=signal_ignored signal={number.name}" in server.log())
        assert ask(server.url, "GET", "/v2/health/ready")[0] == 200
        assert metric(server.url, "parity_slots_lost_total") == 0
        assert server.stop() == 0


def test_a_server_under_nohup_outlives_its_terminal(tmp_path: Path):
    command = ["nohup", sys.executable, "-m", "parity", "serve", "--port", "0", LINEAR]
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            url = json.loads(process.stdout.readline())["url"]
            assert json.loads(process.stdout.readline())["event"] == "ready"
            process.send_signal(signal.SIGHUP)
            assert ask(url, "GET", "/v2/health/ready")[0] == 200
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        finally:
            process.kill()


def test_sigterm_while_loading_ends_it(tmp_path: Path):
    slow = handler_folder(tmp_path, "probe", "\n    def initialize(self, context):\n        time.sleep(60)\n")
    with ServerProcess([slow], wait_ready=False, stop_s=20) as server:
        assert ask(server.url, "GET", "/v2/health/live")[0] == 200
        status, _, answer = ask(server.url, "GET", "/v2/health/ready")
        assert status == 503
        assert "it is being loaded" in answer["error"]
        status, headers, _ = ask(server.url, "POST", "/predictions/probe", {"id": 1})
        assert (status, headers["retry-after"]) == (503, "1")
        started = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - started < 15


def start(*arguments: str) -> str:
    """The message of a server that must not start."""
    server = ServerProcess(arguments)
    with pytest.raises(RunnerError) as caught, server:
        pass
    assert server.exit_code != 0
    return f"{server.exit_code}: {caught.value}"


def test_a_handler_that_cannot_be_loaded_ends_the_server(tmp_path: Path):
    broken = handler_folder(
        tmp_path, "probe", "\n    def initialize(self, context):\n        raise OSError('no disk')\n"
    )
    message = start(broken)
    assert message.startswith("6: ")
    assert "initialize raised OSError: no disk" in message


def test_a_handler_that_is_not_there_ends_the_server():
    message = start(PROBE[:-1])
    assert message.startswith("2: ")
    assert "'probe'" in message


def test_a_port_in_use_is_told():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        message = start(PROBE, "--port", str(taken.getsockname()[1]))
    assert message.startswith("6: ")
    assert "--port 0" in message


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--max-batch", "0"], "max_batch"),
        (["--gate", "maybe"], "strict"),
        (["--queue-rows", "4"], "queue_rows"),
        (["--set", "buckts=[8]"], "buckets"),
    ],
)
def test_a_wrong_option_ends_the_server(options: list[str], said: str):
    message = start(PROBE, *options)
    assert message.startswith("2: ")
    assert said in message


def test_a_ready_file_holds_the_url(tmp_path: Path):
    with ServerProcess([LINEAR, "--ready-file", str(tmp_path / "ready")]) as server:
        until((tmp_path / "ready").exists)
        assert (tmp_path / "ready").read_text().strip() == server.url


@pytest.mark.parametrize("slot", ["loop", "thread"])
def test_standard_output_is_for_events_alone_whatever_a_handler_prints(tmp_path: Path, slot: str) -> None:
    (tmp_path / "handler.py").write_text(
        "import os\nfrom parity import Handler, Int64, Schema\n\nprint('imported')\n\n\n"
        "class Prints(Handler):\n    inputs = Schema(x=Int64())\n    outputs = Schema(x=Int64())\n\n"
        "    def inference(self, inputs):\n        print('asked', flush=True)\n"
        "        os.write(1, b'by descriptor\\n')\n"
        "        return {'x': inputs['x']}\n"
    )
    options = ["--port", "0", "--gate", "off", "--slot", slot]
    command = [sys.executable, "-m", "parity", "serve", str(tmp_path / "handler.py:Prints"), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        lines: list[str] = []
        while not lines or json.loads(lines[-1])["event"] != "ready":
            lines.append(process.stdout.readline())
        url, path = json.loads(lines[0])["url"], f"/predictions/{tmp_path.name}"
        status, _, _ = ask(url, "POST", path, {"x": 1}, JSON)
        process.send_signal(signal.SIGTERM)
        out, said = process.communicate(timeout=60)
    assert status == 200
    assert all(json.loads(line)["event"] for line in [*lines, *out.splitlines()])
    assert "imported" in said
    assert "asked" in said
    assert "by descriptor" in said
