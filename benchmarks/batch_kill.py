"""Batch jobs killed at random moments and started again, per engine: the bytes of uninterrupted ones."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from benchmarks.batch_data import parity_command, timed, write_features

ROWS, FILES = 400_000, 20
KILLS = 50
SHARES = {"local": 0.6, "ray": 0.3, "spark": 0.1}
"""Which share of the kills each engine gets."""

_WORKERS = {"ray": "ray::", "spark": "pyspark"}
_PATIENCE_S = 300
_STARTING_S = 5.0
_TIMING = {"_summary.json", ".parity.lock"}


@dataclass
class Killed:
    """What became of a job under one engine.

    Attributes:
        kills: how many times it was killed, by how: "group", "worker" or "interrupt".
        units: the finished units at each kill.
        differing: the files that are not those of the uninterrupted job.
        left: the processes that the killed ones had started.
    """

    kills: Counter[str] = field(default_factory=Counter[str])
    units: list[int] = field(default_factory=list[int])
    differing: list[str] = field(default_factory=list[str])
    left: list[psutil.Process] = field(default_factory=list[psutil.Process])


def run(kills: int = KILLS, rows: int = ROWS) -> dict[str, Any]:
    """How many files of the resumed jobs differ from the uninterrupted one's.

    Args:
        kills: how many, over all engines.
        rows: the rows of the job.
    """
    bars: list[dict[str, Any]] = []
    told: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="parity-bench-") as temporary:
        root = Path(temporary)
        write_features(root / "in", rows, FILES)
        timed(parity_command(root / "in", root / "whole"))
        expected = digests(root / "whole")
        for position, (engine, share) in enumerate(SHARES.items()):
            count = round(kills * share)
            found = killed(root, engine, count, expected, seed=11 + position)
            what = f"{engine}: files that differ after {count} kills"
            bars.append({"what": what, "value": len(found.differing), "bar": 0, "at": "most"})
            told[f"{engine}: kills, and units finished at each"] = [dict(found.kills), found.units]
    return {"bars": bars, **told}


def killed(root: Path, engine: str, kills: int, expected: dict[str, str], seed: int) -> Killed:
    """A job over `root`/in killed so many times and then ended in order.

    The job is killed with SIGKILL for its process group, SIGKILL for one of its workers, which it survives,
    or SIGINT, while it starts or some units further on; when it ends before its moment comes it begins anew.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        # A shell starts what it puts in the background deaf to SIGINT, and the jobs would inherit it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    draw = random.Random(seed)
    out = root / f"out-{engine}"
    command = parity_command(root / "in", out, "--engine", engine)
    found = Killed()
    hows = ("group", "group", "interrupt", *(("worker",) if engine in _WORKERS else ()))
    while found.kills.total() < kills:
        how = draw.choice(hows)
        more = draw.randrange(4)
        after_s = draw.uniform(0, 0.4 if more else _STARTING_S)
        if more:  # workers of Ray finish units for a second or two after their driver's death
            _wait_for(found.left)
        if _killed(command, how, out, more, after_s, _WORKERS.get(engine, ""), found.left):
            found.kills[how] += 1
            found.units.append(_finished(out))
        if (out / "_SUCCESS").exists():
            _wait_for(found.left)
            found.differing += _differing(expected, digests(out))
            shutil.rmtree(out)
    if kills:
        timed(command)
        _wait_for(found.left)
        found.differing += _differing(expected, digests(out))
    return found


def digests(folder: Path) -> dict[str, str]:
    """The SHA-256 of every file of an output folder but those that tell how long it took."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in _TIMING
    }


def _wait_for(left: list[psutil.Process]) -> None:
    """Wait until the processes that killed ones had started are gone; none may stay."""
    _, alive = psutil.wait_procs(left, _PATIENCE_S)
    if alive:
        raise RuntimeError(f"killed jobs left processes behind: {[' '.join(one.cmdline()) for one in alive]}")
    left.clear()


def _killed(
    command: Sequence[str],
    how: str,
    out: Path,
    more: int,
    after_s: float,
    worker: str,
    left: list[psutil.Process],
) -> bool:
    """Start a job and kill it so long after it finished so many more units; whether it was still there."""
    wanted = _finished(out) + more
    until = time.monotonic() + _PATIENCE_S
    with (
        tempfile.TemporaryFile("w+") as said,
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said, start_new_session=True) as process,
    ):
        try:
            while process.poll() is None and _finished(out) < wanted and time.monotonic() < until:
                time.sleep(0.01)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(after_s)
            with contextlib.suppress(psutil.NoSuchProcess):
                left += psutil.Process(process.pid).children(recursive=True)
            hit = process.poll() is None and _strike(process, how, worker)
            code = process.wait(_PATIENCE_S)
        except BaseException as exc:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(exc, subprocess.TimeoutExpired):
                raise RuntimeError(f"{how}: the job did not end within {_PATIENCE_S} s") from None
            raise
        said.seek(0)
        if code != 0 and (not hit or how == "worker"):
            raise RuntimeError(f"{' '.join(command)} ended with {code} ({how})\n{said.read()}")
    return hit


def _finished(out: Path) -> int:
    return len(list(out.glob("_units/*.json")))


def _strike(process: subprocess.Popen[bytes], how: str, worker: str) -> bool:
    if how == "group":
        os.killpg(process.pid, signal.SIGKILL)
    elif how == "interrupt":
        process.send_signal(signal.SIGINT)
    else:
        return _kill_worker(process, worker)
    return True


def _kill_worker(process: subprocess.Popen[bytes], worker: str) -> bool:
    """Kill one worker as soon as there is one; whether the job lived long enough to have one."""
    until = time.monotonic() + _PATIENCE_S
    while process.poll() is None and time.monotonic() < until:
        with contextlib.suppress(psutil.Error):
            for child in reversed(psutil.Process(process.pid).children(recursive=True)):
                if worker in " ".join(child.cmdline()) and "java" not in child.name():
                    child.kill()
                    return True
        time.sleep(0.05)
    return False


def _differing(expected: dict[str, str], found: dict[str, str]) -> list[str]:
    return [name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name)]
