"""Run a command and measure its whole process tree: seconds, CPU seconds, peak memory.

Run as a process of its own, `python meter.py RESULT.json TIMEOUT_S COMMAND...`, it adopts every orphan of the
command (Linux's subreaper): the CPU seconds of daemons that a tool leaves behind are counted, too, which it
ends at last.
Uses the standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_POLL_S = 0.1
_PAGE = resource.getpagesize()


@dataclass(frozen=True)
class Measured:
    """What a process tree took; `peak_bytes` is the largest sum of resident memory seen."""

    code: int
    seconds: float
    cpu_s: float
    peak_bytes: int


def measured(command: list[str], result: Path, env: dict[str, str], log: Path, timeout_s: float) -> Measured:
    """Run a command under the meter.

    Raises:
        RuntimeError: it failed or took too long; the message has the end of what it said.
    """
    meter = [sys.executable, str(Path(__file__)), str(result), str(timeout_s), *command]
    with log.open("wb") as said:
        subprocess.run(meter, check=True, env=env, stdout=said, stderr=subprocess.STDOUT)
    found = Measured(**json.loads(result.read_text(encoding="utf-8")))
    if found.code != 0:
        end = log.read_text(encoding="utf-8", errors="replace")[-3000:]
        raise RuntimeError(f"{' '.join(command)} ended with {found.code}\n{end}")
    return found


def _meter(command: list[str], timeout_s: float) -> Measured:
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before = _children_cpu_s()
    started = time.perf_counter()
    child = subprocess.Popen(command)
    peak, over = [0], threading.Event()

    def watch() -> None:
        while not over.wait(_POLL_S):
            peak[0] = max(peak[0], sum(map(_resident, _descendants())))

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        code = child.wait(timeout_s)
    except subprocess.TimeoutExpired:
        child.kill()
        code = child.wait()
    seconds = time.perf_counter() - started
    over.set()
    watching.join()
    _end_orphans()
    return Measured(code, seconds, _children_cpu_s() - before, peak[0])


def _end_orphans() -> None:
    """End and reap what is left, so that its CPU seconds are counted."""
    while left := _descendants():
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, 0)[0]:
                pass
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _descendants() -> list[int]:
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                stat = (entry / "stat").read_text()
                parents.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry.name))
    found: list[int] = []
    todo = [os.getpid()]
    while todo:
        children = parents.get(todo.pop(), [])
        found += children
        todo += children
    return found


def _resident(process: int) -> int:
    try:
        return int(Path("/proc", str(process), "statm").read_text().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return 0


if __name__ == "__main__":
    outcome = _meter(sys.argv[3:], float(sys.argv[2]))
    Path(sys.argv[1]).write_text(json.dumps(asdict(outcome)), encoding="utf-8")
