"""A process that a runner keeps, with the cluster that it started, for all rows that it is asked to replay.

A cluster takes seconds to start, so it is started once for a check or a test session. The process ends with
the process that started it, after some idle time, and when what it inherited (environment, working folder)
has changed. A job is a folder; its path is one line of the process's standard input, its outcome one line of
its standard output.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Generator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from parity.child import child_error
from parity.codec.arrow import decode_table
from parity.errors import FingerprintError, ParityError, RowError, RunnerError
from parity.handler import LoadedHandler
from parity.profile import Profile
from parity.result import ERROR_COLUMN, Result, empty_batch
from parity.schema import Schema
from parity.stages import TAP_VARIABLE

ROW_COLUMN: Final = "_row"
"""Where each answered row came from: its position in the rows that were asked."""

IDLE_S: Final = 180
TIMEOUT_S: Final = 600
_GRACE_S: Final = 30
_ROWS, _JOB, _ANSWERS, _LOG = "rows.arrow", "job.json", "answers.arrow", "log.txt"
_LOG_LINES: Final = 20


@dataclass(frozen=True)
class Job:
    """What a standing process is asked.

    Attributes:
        handler: the handler's reference.
        app_dir: the folder to import `package.module` from.
        profile: the profile's name.
        settings: its settings.
        tap: the folder that engines write their stages to, or None.
    """

    handler: str
    app_dir: str | None
    profile: str
    settings: list[str]
    tap: str | None

    def to_profile(self) -> Profile:
        """The profile."""
        return Profile(self.profile).with_settings(self.settings)


class Standing:
    """A process that runs `python -m MODULE`, whose main function is `serve`; started when it is needed.

    Args:
        module: the module.
        what: who asks, for errors, such as "runner ray".
        timeout_s: the longest that a job may take, the start included; then the process is killed.
    """

    def __init__(self, module: str, what: str, timeout_s: float = TIMEOUT_S) -> None:
        self._module = module
        self._what = what
        self._timeout_s = timeout_s
        self._process: subprocess.Popen[bytes] | None = None
        self._inherited: object = None
        self._scratch: tempfile.TemporaryDirectory[str] | None = None

    def replay(self, loaded: LoadedHandler, rows: pa.Table, profile: Profile) -> Result:
        """The rows' answers, aligned with them.

        Raises:
            FingerprintError: a worker refused to answer here.
            RunnerError: the process failed, took too long, or its answers are not whole.
        """
        job = Job(
            loaded.ref, loaded.app_dir, profile.name, profile.to_settings(), os.environ.get(TAP_VARIABLE)
        )
        with tempfile.TemporaryDirectory(prefix="parity-replay-") as folder:
            path = Path(folder)
            (path / _JOB).write_text(json.dumps(asdict(job)), encoding="utf-8")
            write_table(rows, path / _ROWS)
            self._ask(path, f"{self._what} on handler {loaded.ref}")
            return to_result(read_table(path / _ANSWERS), loaded.outputs, rows.num_rows, self._what)

    def close(self) -> None:
        """End the process and what it started."""
        process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None
            assert process.stdout is not None
            with contextlib.suppress(OSError):
                process.stdin.close()
            try:
                process.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                _kill(process)
            process.stdout.close()
        if self._scratch is not None:
            self._scratch.cleanup()
            self._scratch = None

    def _ask(self, folder: Path, what: str) -> None:
        try:
            line = self._outcome(folder, what)
        except (OSError, _WentIdleError):
            self.close()
            line = self._outcome(folder, what, again=True)
        outcome: dict[str, Any] = json.loads(line)
        if "error" in outcome:
            kind = FingerprintError if outcome["code"] == FingerprintError.exit_code else RunnerError
            raise kind(f"{what}: {outcome['error']}")

    def _outcome(self, folder: Path, what: str, *, again: bool = False) -> bytes:
        """The outcome of a job; OSError or _WentIdleError where the process was ending, idle for long."""
        process = self._running()
        assert process.stdin is not None
        process.stdin.write(f"{folder}\n".encode())
        process.stdin.flush()
        return self._line(process, what, again=again)

    def _running(self) -> subprocess.Popen[bytes]:
        inherited = _inherited()
        if self._process is not None and (self._process.poll() is not None or self._inherited != inherited):
            self.close()
        if self._process is None:
            self._inherited = inherited
            self._scratch = tempfile.TemporaryDirectory(prefix="parity-standing-")
            atexit.register(self.close)
            environment = {key: value for key, value in os.environ.items() if key != TAP_VARIABLE}
            environment["PYTHONUNBUFFERED"] = "1"  # what it says last is not lost when it dies
            with (Path(self._scratch.name) / _LOG).open("wb") as log:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", self._module],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env=environment,
                    start_new_session=True,
                )
        return self._process

    def _line(self, process: subprocess.Popen[bytes], what: str, *, again: bool) -> bytes:
        assert process.stdout is not None
        deadline = time.monotonic() + self._timeout_s
        found = b""
        while not found.endswith(b"\n"):
            left = deadline - time.monotonic()
            ready, _, _ = select.select([process.stdout], [], [], max(0.0, left))
            if not ready:
                _kill(process)
                said = self._said()
                self.close()
                raise RunnerError(
                    "\n  ".join(
                        [
                            f"{what}: no answer within {self._timeout_s:.0f} s, and it was ended; is the "
                            "machine short of memory or CPUs? It said last:",
                            *said,
                        ]
                    )
                )
            piece = os.read(process.stdout.fileno(), 65536)
            if not piece:
                code = _ended(process)
                if code == 0 and not found and not again:
                    raise _WentIdleError
                said = self._said()
                self.close()
                raise child_error(code, f"{what}: ended with code {code}", said)
            found += piece
        return found

    def _said(self) -> list[str]:
        assert self._scratch is not None
        text = (Path(self._scratch.name) / _LOG).read_text(encoding="utf-8", errors="replace")
        return text.rstrip().splitlines()[-_LOG_LINES:]


class _WentIdleError(Exception):
    """The process ended in order, and answered nothing."""


def serve(
    start: Callable[[], contextlib.AbstractContextManager[Callable[[Job, pa.Table], pa.Table]]],
) -> None:
    """Answer jobs until standard input ends or nothing was asked for long.

    Args:
        start: starts the cluster, and gives what scores: rows in, `ROW_COLUMN`, outputs and `_error` out, in
            any order.
    """
    busy = threading.Event()
    threading.Thread(target=_end_with_asker, args=(busy,), name="parity-asker", daemon=True).start()
    with _only_outcomes() as told, start() as score:
        while True:
            ready, _, _ = select.select([sys.stdin], [], [], IDLE_S)
            line = sys.stdin.readline() if ready else ""
            if not line:
                return
            folder = Path(line.rstrip("\n"))
            busy.set()
            try:
                job = Job(**json.loads((folder / _JOB).read_text(encoding="utf-8")))
                write_table(score(job, read_table(folder / _ROWS)), folder / _ANSWERS)
                outcome: dict[str, Any] = {}
            except Exception as exc:  # noqa: BLE001 - told to whoever asked
                traceback.print_exc()
                outcome = {"error": _told(exc), "code": _code(exc)}
            busy.clear()
            told(json.dumps(outcome))


def _end_with_asker(busy: threading.Event) -> None:
    """Wait until who asks is gone, then interrupt the job that runs, and in the end kill it.

    Without a job, `serve` sees the end of its input itself.
    """
    if not hasattr(select, "poll"):
        return
    poll = select.poll()
    poll.register(sys.stdin, 0)  # a pipe that nobody can write to any more says so unasked
    poll.poll()
    busy.wait()
    main = threading.main_thread().ident
    assert main is not None
    signal.pthread_kill(main, signal.SIGINT)
    time.sleep(_GRACE_S)  # to end the cluster in
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


@contextlib.contextmanager
def _only_outcomes() -> Generator[Callable[[str], None]]:
    """Keep standard output for outcomes: what libraries print goes to standard error."""
    channel = os.dup(1)
    os.dup2(2, 1)

    def tell(text: str) -> None:
        os.write(channel, f"{text}\n".encode())

    try:
        yield tell
    finally:
        os.close(channel)


def to_result(answers: pa.Table, outputs: Schema, num_rows: int, what: str) -> Result:
    """Answers in any order as a result aligned with the rows that were asked.

    Raises:
        RunnerError: a row is missing or there twice, or an answer does not fit the output schema.
    """
    if num_rows == answers.num_rows == 0:
        return Result(0, empty_batch(outputs), np.empty(0, np.int64))
    places = answers.column(ROW_COLUMN).to_numpy()
    order = np.argsort(places, kind="stable")
    if not np.array_equal(places[order], np.arange(num_rows)):
        raise RunnerError(
            f"{what}: {answers.num_rows} answers of {len(np.unique(places))} rows came back for {num_rows} "
            "rows"
        )
    answers = answers.take(cast("Any", pa.array(order)))
    told = answers.column(ERROR_COLUMN).to_pylist()
    good = np.asarray([row for row, entry in enumerate(told) if entry is None], np.int64)
    decoded = decode_table(outputs, answers.select(list(outputs.names)).take(cast("Any", pa.array(good))))
    if decoded.errors:
        raise RunnerError(f"{what}: an answer does not fit the output schema: {decoded.errors[0].message}")
    errors = tuple(
        RowError(row, entry["kind"], entry["message"] or "", entry["field"], entry["stage"])
        for row, entry in enumerate(told)
        if entry is not None
    )
    return Result(num_rows, decoded.batch, good, errors)


def write_table(table: pa.Table, path: Path) -> None:
    """Write a table as an Arrow IPC file."""
    with pa.OSFile(str(path), "wb") as sink, ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def read_table(path: Path) -> pa.Table:
    """The table in an Arrow IPC file."""
    with pa.OSFile(str(path), "rb") as source, ipc.open_file(source) as reader:
        return reader.read_all()


def _inherited() -> object:
    """What a process takes from the one that starts it."""
    environment = {key: value for key, value in os.environ.items() if key not in _OWN_VARIABLES}
    return environment, Path.cwd()


_OWN_VARIABLES: Final = (TAP_VARIABLE, "PYTEST_CURRENT_TEST")


def _ended(process: subprocess.Popen[bytes]) -> int:
    """The exit code of a process that has nothing more to say; it is killed where it does not end."""
    try:
        return process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        _kill(process)
        return process.returncode


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _told(exc: BaseException) -> str:
    if isinstance(exc, ParityError):
        return str(exc)
    of_worker = _OF_WORKER.findall(str(exc))
    return of_worker[-1][1] if of_worker else f"{type(exc).__name__}: {exc}"


def _code(exc: BaseException) -> int:
    of_worker = _OF_WORKER.findall(str(exc))
    if isinstance(exc, FingerprintError) or (of_worker and of_worker[-1][0] in _REFUSALS):
        return FingerprintError.exit_code
    return RunnerError.exit_code


_OF_WORKER: Final = re.compile(r"^(?:\S*\.)?(\w+Error): (.+)$", re.MULTILINE)
"""How a traceback that a cluster brings back from a worker ends."""

_REFUSALS: Final = ("FingerprintError", "CertificateError")
