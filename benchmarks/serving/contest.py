"""Interleaved rounds: ours and every peer in turn, each started, warmed, driven and ended."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import psutil

from benchmarks.batch.rounds import HANDLERS as BATCH_HANDLERS
from benchmarks.environments import Environments
from benchmarks.servers import ROOT
from benchmarks.serving.drive import judged
from benchmarks.serving.peers import HERE, Peer
from benchmarks.serving.questions import HANDLERS

FOLDERS = {"vector": HANDLERS / "vector", "picture": BATCH_HANDLERS / "picture"}
OURS, LOOP = "parity", "loop"
CONNECTIONS = (8, 32, 64)
_BODIES = 64
_START_S = 180.0
_WARM_S = 1.0


@dataclass(frozen=True)
class Contest:
    """One workload's rounds.

    Attributes:
        workload: "vector" or "picture".
        runs: of each name and number of connections, a dict of `benchmarks.serving.drive` for each round.
        loop_rps: rows per second of the loop without a server, a figure a round.
    """

    workload: str
    runs: dict[str, dict[int, list[dict[str, Any]]]]
    loop_rps: list[float]

    def median(self, name: str, connections: int, figure: str) -> float:
        """The median of a figure over the rounds."""
        return statistics.median(run[figure] for run in self.runs[name][connections])

    def wrong(self, name: str) -> int:
        """How many answers were wrong in all."""
        return sum(run["wrong"] for runs in self.runs[name].values() for run in runs)


def contest(
    workload: str,
    peers: Sequence[Peer],
    environments: Environments,
    rounds: int,
    seconds: float,
    scratch: Path,
    connections: Sequence[int] = CONNECTIONS,
) -> Contest:
    """Run the rounds.

    Raises:
        RuntimeError: a server did not start, or answers otherwise than the model.
    """
    items = _items(workload)
    expected = _expected(workload, items, scratch)
    runs = {name: {number: [] for number in connections} for name in (OURS, *(peer.name for peer in peers))}
    found = Contest(workload, runs, [])
    for _ in range(rounds):
        for peer in (_ours(workload), *peers):
            with _server(peer, workload, environments, scratch) as port:
                plan = _plan(peer, workload, port, items, expected, scratch)
                _await_right(plan)
                _drive(scratch, max(connections), _WARM_S)
                for number in connections:
                    told = _drive(scratch, number, seconds)
                    runs[peer.name][number].append(told)
                    said = f"{told['rps']:.0f}/s, p99 {told['p99_ms']:.1f} ms"
                    wrong = f", WRONG: {told['first']}" if told["wrong"] else ""
                    print(f"  {workload} {peer.name} at {number}: {said}{wrong}", file=sys.stderr, flush=True)
        found.loop_rps.append(_loop(workload, scratch, seconds))
    return found


def _ours(workload: str) -> Peer:
    arguments = ("-m", "parity", "serve", str(FOLDERS[workload]), "--port", "{port}", "--gate", "off")
    return Peer(OURS, "`parity serve`", (*arguments, "--log-level", "error"), (), f"/predictions/{workload}")


def _items(workload: str) -> list[Any]:
    """Rows of 32 numbers, or JPEG files of 640x480."""
    rng = np.random.default_rng(11)
    if workload == "vector":
        return [
            [float(str(value)) for value in row] for row in rng.normal(size=(_BODIES, 32)).astype(np.float32)
        ]
    files: list[bytes] = []
    for _ in range(_BODIES):
        coarse = rng.integers(0, 256, (24, 32, 3), dtype=np.uint8)
        smooth = cv2.resize(coarse, (640, 480), interpolation=cv2.INTER_CUBIC).astype(np.int16)
        picture = np.clip(smooth + rng.integers(-12, 13, smooth.shape, dtype=np.int16), 0, 255).astype(
            np.uint8
        )
        encoded: Any = cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, 90])[1]
        files.append(encoded.tobytes())
    return files


def _expected(workload: str, items: Sequence[Any], scratch: Path) -> list[float]:
    """The model's scores, from a process without a server."""
    code = (
        "import base64, importlib, json, pathlib, sys\n"
        "model = importlib.import_module(sys.argv[1] + '_model')\n"
        "items = json.loads(pathlib.Path(sys.argv[2]).read_text())\n"
        "items = [base64.b64decode(item) if isinstance(item, str) else item for item in items]\n"
        "print(json.dumps(model.score(model.load(), [items]).tolist()))\n"
    )
    path = scratch / "items.json"
    told = [base64.b64encode(item).decode() if isinstance(item, bytes) else item for item in items]
    path.write_text(json.dumps(told), encoding="utf-8")
    command = [sys.executable, "-c", code, workload, str(path)]
    done = subprocess.run(command, check=True, env=_environment(workload), stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def _plan(
    peer: Peer, workload: str, port: int, items: Sequence[Any], expected: Sequence[float], scratch: Path
) -> dict[str, Any]:
    bodies = [_body(peer.form, item) for item in items]
    is_file = peer.form == "row" and workload == "picture"
    plan: dict[str, Any] = {
        "url": f"http://127.0.0.1:{port}{peer.path}",
        "content_type": "image/jpeg" if is_file else "application/json",
        "bodies": [base64.b64encode(body).decode() for body in bodies],
        "expected": list(expected),
        "answer": list(peer.answer),
    }
    if is_file and peer.name in (OURS, "litserve"):
        plan["content_type"] = "application/octet-stream"
    (scratch / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    return plan


def _body(form: str, item: Any) -> bytes:
    if form == "row":
        return item if isinstance(item, bytes) else json.dumps({"x": item}).encode()
    plain = base64.b64encode(item).decode() if isinstance(item, bytes) else item
    if form == "list":
        return json.dumps({"x": [plain]}).encode()
    kind, shape, data = ("BYTES", [1, 1], [plain]) if isinstance(item, bytes) else ("FP32", [1, 32], plain)
    return json.dumps({"inputs": [{"name": "x", "datatype": kind, "shape": shape, "data": data}]}).encode()


@contextlib.contextmanager
def _server(peer: Peer, workload: str, environments: Environments, scratch: Path) -> Generator[int]:
    """The port of a running server, whose whole process tree is ended afterwards."""
    port = _free_port()
    python = sys.executable if peer.name == OURS else str(environments.python(peer.name))
    parts = {"port": port, "workload": workload, "scratch": str(scratch / peer.name)}
    command = [python, *(text.format(**parts) for text in peer.arguments)]
    log = scratch / f"{peer.name}.log"
    with log.open("wb") as said:
        process = subprocess.Popen(
            command, cwd=ROOT, env=_environment(workload), stdout=said, stderr=said, start_new_session=True
        )
    try:
        _await_open(process, port, log)
        yield port
    finally:
        _end(process)


def _await_open(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    give_up = time.monotonic() + _START_S
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            if process.poll() is not None or time.monotonic() > give_up:
                end = log.read_text(encoding="utf-8", errors="replace")[-3000:]
                raise RuntimeError(f"{process.args} does not listen\n{end}") from None
            time.sleep(0.1)


def _await_right(plan: dict[str, Any]) -> None:
    """Return once the server gives the right answer: many listen before they can."""
    give_up = time.monotonic() + _START_S
    body = base64.b64decode(plan["bodies"][0])
    request = urllib.request.Request(plan["url"], body, {"Content-Type": plan["content_type"]})
    while True:
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                wrong = judged(plan, 0, answer.status, answer.read())
        except urllib.error.HTTPError as exc:
            wrong = f"status {exc.code}: {exc.read()[:500]!r}"
        except OSError as exc:
            wrong = str(exc)
        if not wrong:
            return
        if time.monotonic() > give_up:
            raise RuntimeError(f"{plan['url']}: {wrong}")
        time.sleep(0.2)


def _end(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM, then SIGKILL for whatever of the process tree is left."""
    tree = [psutil.Process(process.pid)] if process.poll() is None else []
    with contextlib.suppress(psutil.NoSuchProcess):
        tree += [child for root in tree for child in root.children(recursive=True)]
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(20)
    for left in tree:
        with contextlib.suppress(psutil.NoSuchProcess):
            left.kill()
    psutil.wait_procs(tree, timeout=10)


def _drive(scratch: Path, connections: int, seconds: float) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.serving.drive", str(scratch / "plan.json")]
    command += ["--connections", str(connections), "--seconds", str(seconds)]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)


def _loop(workload: str, scratch: Path, seconds: float) -> float:
    items = json.loads((scratch / "items.json").read_text(encoding="utf-8"))
    bodies = [base64.b64encode(json.dumps({"x": item}).encode()).decode() for item in items]
    plan = {"bodies": items if workload == "picture" else bodies}
    path = scratch / "loop.json"
    path.write_text(json.dumps(plan), encoding="utf-8")
    command = [sys.executable, str(HERE / "loop.py"), workload, str(path), str(seconds)]
    done = subprocess.run(command, check=True, env=_environment(workload), stdout=subprocess.PIPE)
    return json.loads(done.stdout)["rps"]


def _environment(workload: str) -> dict[str, str]:
    """This process's variables, one torch thread, and the plain torch module on the path."""
    dropped = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "VIRTUAL_ENV")
    kept = {key: value for key, value in os.environ.items() if key not in dropped}
    path = os.pathsep.join([str(FOLDERS[workload]), str(HERE)])
    told = {"PYTHONPATH": path, "WORKLOAD": workload, "TORCH_THREADS": "1", "OMP_NUM_THREADS": "1"}
    quiet = {"BENTOML_DO_NOT_TRACK": "True", "RAY_USAGE_STATS_ENABLED": "0"}
    return kept | told | quiet


def _free_port() -> int:
    """A port with two free ones behind it."""
    while True:
        with contextlib.ExitStack() as stack:
            first = stack.enter_context(socket.socket())
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            try:
                for more in (1, 2):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port + more))
            except (OSError, OverflowError):
                continue
            return port
