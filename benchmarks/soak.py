"""Online: mixed requests over all protocols, a tenth of them faulty, each answer held to the batch runner's.

`python -m benchmarks soak` probes both handlers of `benchmarks/serving`, scores their rows with a batch job,
serves them in exact mode, and lets several processes of real clients ask: 200,000 requests in all. Good rows
must have the batch runner's answers to the last bit, faults their statuses, and the server's memory, threads,
files and tasks must stay what they were.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq

from benchmarks.servers import ROOT, bar, metric
from benchmarks.serving.faults import BODY_LIMIT_MB, QUEUE_ROWS
from benchmarks.serving.questions import HANDLERS, MIXED, THUMB, write_answers, write_rows
from parity_online.process import ServerProcess

ASKED_ONLY = True
_BUCKETS = "1,16,32,64"
_ROWS, _PICTURES = 2000, 200
_WARM_SHARE = 0.1
_SAMPLE_S = 0.25
_SETTLE_S = 20.0


@dataclass(frozen=True)
class Held:
    """What the server holds while nobody asks."""

    rss_mb: float
    threads: int
    files: int
    tasks: int


def run(arguments: Sequence[str] = ()) -> dict[str, Any]:
    """The counts of each kind of request, what was wrong, what the server holds, and which bars hold."""
    asked = _asked(arguments)
    with tempfile.TemporaryDirectory(prefix="parity-soak-") as name:
        folder = Path(name)
        handlers = prepare(folder, asked.profile)
        options = [
            str(handlers / MIXED),
            str(handlers / THUMB),
            "--profile",
            asked.profile,
            "--grpc-port",
            "0",
        ]
        options += ["--body-limit-mb", str(BODY_LIMIT_MB), "--queue-rows", str(QUEUE_ROWS), "--gate", "off"]
        with ServerProcess([*options, "--log-level", "error", *asked.serve.split()]) as server:
            return _soak(server, folder, asked.requests, asked.processes, asked.clients)


def prepare(folder: Path, profile: str) -> Path:
    """Rows, the batch runner's answers, and both handlers, with certificates for exact mode; their folder.

    Raises:
        RuntimeError: exact mode does not hold here.
    """
    write_rows(folder, _ROWS, _PICTURES)
    handlers = folder / "handlers"
    shutil.copytree(HANDLERS, handlers)
    for name in (MIXED, THUMB) if profile == "exact" else ():
        rows = folder / f"probe-{name}.parquet"
        table = pq.read_table(folder / f"{name}.parquet").slice(0, 100)
        keep = [place for place in range(100) if place % 20 != 3]
        if name == MIXED:
            keep = [place for place, act in enumerate(table["act"].to_pylist()) if not act]
        pq.write_table(table.take(keep), rows)
        command = [sys.executable, "-m", "parity", "probe", str(handlers / name), "--rows", str(rows)]
        command += ["--profile", "exact", "--buckets", _BUCKETS, "--write", "--quiet"]
        done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(
                f"parity probe of {name} ended with {done.returncode}: {done.stdout}{done.stderr}"
            )
    write_answers(folder, handlers, profile)
    return handlers


def _soak(server: ServerProcess, folder: Path, requests: int, processes: int, clients: int) -> dict[str, Any]:
    warm = max(processes, round(requests * _WARM_SHARE))
    told = [_traffic(server, folder, warm, processes, clients, seed=1000)[0]]
    before = _held(server, None)
    started = time.perf_counter()
    main, memory = _traffic(server, folder, requests - warm, processes, clients, seed=0)
    seconds = time.perf_counter() - started
    after = _held(server, before)
    told.append(main)
    waiting = metric(server.url, "parity_queue_rows")
    code = server.stop()
    counts: Counter[str] = Counter()
    for part in told:
        counts += part["counts"]
    wrong, lost = sum(part["wrong"] for part in told), sum(part["lost"] for part in told)
    third = memory[len(memory) // 3 : len(memory) // 3 + 5] or memory
    growth = max(statistics.median(memory[-5:]), after.rss_mb) / max(statistics.median(third), before.rss_mb)
    internal = server.log().count("kind=internal") + server.log().count("event=batch_failed")
    return {
        "requests": sum(counts.values()),
        "requests_per_second": round((requests - warm) / seconds),
        "kinds": dict(sorted(counts.items())),
        "first": [text for part in told for text in part["first"]][:20],
        "held_before": vars(before),
        "held_after": vars(after),
        "rss_mb": [round(value, 1) for value in memory[:: max(1, len(memory) // 20)]],
        "log_tail": server.log_tail() if internal or code else "",
        "bars": [
            bar("requests without an answer", lost, 0, at="most"),
            bar("answers that are not the batch runner's, or of a wrong status", wrong, 0, at="most"),
            bar("requests that were sent, of those asked for", sum(counts.values()), requests),
            bar("internal errors in the log", internal, 0, at="most"),
            bar("memory at the end over memory after a third", growth, 1.05, at="most"),
            bar("file descriptors more than before", after.files - before.files, 0, at="most"),
            bar("threads more than before", after.threads - before.threads, 0, at="most"),
            bar("tasks more than before", after.tasks - before.tasks, 0, at="most"),
            bar("rows that still wait", waiting, 0, at="most"),
            bar("exit code", code, 0, at="most"),
        ],
    }


def _traffic(
    server: ServerProcess, folder: Path, requests: int, processes: int, clients: int, seed: int
) -> tuple[dict[str, Any], list[float]]:
    """What several processes of clients tell, and the server's memory in the meantime, in MB."""
    shares = [
        (requests * (place + 1)) // processes - (requests * place) // processes for place in range(processes)
    ]
    watched = psutil.Process(server.pid)
    memory: list[float] = []
    with contextlib.ExitStack() as stack:
        started: list[subprocess.Popen[str]] = []
        for place, share in enumerate(shares):
            command = [
                sys.executable,
                "-m",
                "benchmarks.serving.traffic",
                str(folder),
                server.url,
                server.grpc,
            ]
            command += ["--requests", str(share), "--clients", str(clients), "--seed", str(seed + place)]
            process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
            stack.callback(process.kill)
            started.append(stack.enter_context(process))
        while any(process.poll() is None for process in started):
            memory.append(_rss_mb(watched))
            time.sleep(_SAMPLE_S)
        told = [_told(process) for process in started]
    counts: Counter[str] = Counter()
    for part in told:
        counts += Counter(part["counts"])
    found = {key: sum(part[key] for part in told) for key in ("wrong", "lost")}
    return {"counts": counts, "first": [text for part in told for text in part["first"]], **found}, memory


def _told(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None, "started with a pipe"
    said = process.stdout.read()
    if process.returncode:
        raise RuntimeError(f"a process of clients ended with {process.returncode}: {said[-2000:]}")
    return json.loads(said)


def _held(server: ServerProcess, before: Held | None) -> Held:
    """What the server holds, once it has let go of what its clients left: no more than before, or in time."""
    process = psutil.Process(server.pid)
    give_up = time.monotonic() + _SETTLE_S
    for held in _holdings(server, process):
        if before is None and held.tasks <= 10:
            return held
        if (
            before is not None
            and held.threads <= before.threads
            and held.files <= before.files
            and held.tasks <= before.tasks
        ):
            return held
        if time.monotonic() > give_up:
            return held
    raise AssertionError("holdings never end")


def _holdings(server: ServerProcess, process: psutil.Process) -> Iterator[Held]:
    while True:
        tasks = int(metric(server.url, "parity_tasks"))
        yield Held(_rss_mb(process), process.num_threads(), process.num_fds(), tasks)
        time.sleep(_SAMPLE_S)


def _rss_mb(process: psutil.Process) -> float:
    return process.memory_info().rss / 2**20


def _asked(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks soak")
    parser.add_argument("--requests", type=int, default=200_000)
    parser.add_argument("--processes", type=int, default=3, help="of clients")
    parser.add_argument("--clients", type=int, default=16, help="at once in each of them")
    parser.add_argument(
        "--profile", default="exact", help="exact, or default: one bucket of 32 rows, without a probe"
    )
    parser.add_argument("--serve", default="", help="more options of parity serve, such as '--http asgi'")
    return parser.parse_args(list(arguments))
