"""Servers and load for the online benchmarks, each in a process of its own."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
TABULAR = "benchmarks/handlers/tabular"


@contextmanager
def parity_server(*options: str, handler: str = TABULAR) -> Generator[str]:
    """The URL of a running `parity serve`, ready; stopped by SIGTERM at the end."""
    command = [
        sys.executable,
        "-m",
        "parity",
        "serve",
        handler,
        "--port",
        "0",
        "--log-level",
        "error",
        *options,
    ]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            url = ""
            for line in process.stdout:
                event = json.loads(line)
                url = event.get("url", url)
                if event["event"] == "ready":
                    break
            else:
                raise RuntimeError(f"parity serve ended with exit code {process.wait()}")
            yield url
        finally:
            process.terminate()
            process.wait(60)


@contextmanager
def plain_server() -> Generator[str]:
    """The URL of the plain FastAPI server of `benchmarks.plain_fastapi`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "benchmarks.plain_fastapi", str(port)]
    with subprocess.Popen(command, cwd=ROOT) as process:
        try:
            wait_until_open(port)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(60)


def wait_until_open(port: int) -> None:
    """Return once something listens on the port; raises TimeoutError after a minute."""
    give_up = time.monotonic() + 60
    while time.monotonic() < give_up:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            time.sleep(0.05)
    raise TimeoutError(f"nothing listens on port {port}")


def load(url: str, bodies: Path, connections: int, seconds: float) -> dict[str, float]:
    """The figures of one closed-loop run from another process; every answer must be 200."""
    command = [sys.executable, "-m", "benchmarks.load", url, "--bodies", str(bodies)]
    command += ["--connections", str(connections), "--seconds", str(seconds)]
    found = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    if set(found.pop("statuses")) != {"200"}:
        raise RuntimeError(f"answers other than 200 from {url}: {found}")
    return found


def write_bodies(path: Path, rows: int = 256) -> Path:
    """One JSON row of the tabular handler a line, seeded."""
    values = np.random.default_rng(7).normal(size=(rows, 32)).astype(np.float32)
    path.write_text("\n".join(json.dumps({"x": [float(str(v)) for v in row]}) for row in values) + "\n")
    return path


def bar(what: str, value: float, limit: float, *, at: str = "least") -> dict[str, object]:
    """A bar that a figure is held to, as `python -m benchmarks` prints it."""
    return {"what": what, "value": value, "bar": limit, "at": at}


def metric(url: str, name: str) -> float:
    """The sum of a metric's samples at /metrics whose name is exactly `name`."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.split("{")[0].split(" ")[0] == name)
