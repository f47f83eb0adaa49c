"""A real `parity serve` process, started, awaited and stopped from another one."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self, cast

from parity.child import child_error
from parity.errors import RunnerError

_TAIL_LINES = 25


class ServerProcess:
    """`parity serve` with these arguments, on a free port of loopback; a context manager.

    Entering waits until the port is open (or, with `wait_ready`, until the models are ready). Leaving sends
    SIGTERM and waits.

    Args:
        arguments: what follows `parity serve`.
        wait_ready: whether entering waits for readiness.
        start_s: how long starting may take.
        stop_s: how long stopping may take before the process is killed.
        environment: variables added to this process's own.

    Attributes:
        url: the server's root.
        grpc: where it speaks gRPC, empty where it does not.
        exit_code: the exit code, once it has ended.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        wait_ready: bool = True,
        start_s: float = 120.0,
        stop_s: float = 60.0,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.url = ""
        self.grpc = ""
        self.exit_code: int | None = None
        self._command = [sys.executable, "-m", "parity", "serve", "--port", "0", *arguments]
        self._wait_ready = wait_ready
        self._start_s = start_s
        self._stop_s = stop_s
        self._environment = {**os.environ, **(environment or {})}
        self._final_log = ""
        self._events: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()

    def __enter__(self) -> Self:
        """Start the process.

        Raises:
            RunnerError: it ended, refused to become ready, or took too long; the message ends with its log.
        """
        self._log = tempfile.TemporaryFile("w+b")
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=self._environment,
            start_new_session=True,  # Ctrl-C in a notebook or test is for us, who then stop it in order
        )
        self._reader = threading.Thread(target=self._read_events, name="parity-serve-events", daemon=True)
        self._reader.start()
        try:
            listening = self.await_event("listening")
            self.url, self.grpc = listening["url"], listening.get("grpc", "")
            if self._wait_ready:
                self.await_event("ready")
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the process; see `stop`."""
        self.stop()

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def await_event(self, name: str) -> dict[str, Any]:
        """The next event of this name on the process's standard output.

        Raises:
            FingerprintError: the process refused to run here.
            RunnerError: it ended otherwise, said that it is not ready, or took too long.
        """
        try:
            while (event := self._events.get(timeout=self._start_s)) is not None:
                if event["event"] == name:
                    return event
                if event["event"] == "not_ready":
                    raise RunnerError(f"the server is not ready: {event['reason']}")
        except queue.Empty:
            raise RunnerError(
                f"the server said no {name!r} in {self._start_s:g} s; the end of its log:\n{self.log_tail()}"
            ) from None
        code = self._process.wait()
        what = f"the server ended with exit code {code} at start; the end of its log"
        raise child_error(code, what, self.log_tail().splitlines())

    def signal(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Send a signal, if the process still runs."""
        if self._process.poll() is None:
            self._process.send_signal(number)

    def wait(self) -> int:
        """The exit code, once the process has ended by itself.

        Raises:
            RunnerError: it did not end in time, and has been killed.
        """
        try:
            self.exit_code = self._process.wait(timeout=self._stop_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self.exit_code = self._process.wait()
            raise RunnerError(
                f"the server did not stop within {self._stop_s:g} s; the end of its log:\n{self.log_tail()}"
            ) from None
        return self.exit_code

    def stop(self) -> int:
        """SIGTERM, then the exit code."""
        try:
            self.signal()
            return self.wait()
        finally:
            self._reader.join(self._stop_s)
            self._final_log = self.log()
            self._log.close()

    def log(self) -> str:
        """What the process has logged so far."""
        if self._log.closed:
            return self._final_log
        # Not by seek and read: the file offset is shared with the process that writes.
        data = os.pread(self._log.fileno(), os.fstat(self._log.fileno()).st_size, 0)
        return data.decode("utf-8", "replace")

    def log_tail(self) -> str:
        """The last lines of the log."""
        return "\n".join(self.log().splitlines()[-_TAIL_LINES:])

    def _read_events(self) -> None:
        assert self._process.stdout is not None, "started with a pipe"
        with self._process.stdout as lines:
            for line in lines:
                # A handler may print: only our own lines are objects with an event.
                with contextlib.suppress(ValueError):
                    event = json.loads(line)
                    if isinstance(event, dict) and "event" in event:
                        self._events.put(cast("dict[str, Any]", event))
        self._events.put(None)
