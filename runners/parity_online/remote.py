"""An engine in another process: what `Engine` is to a slot, over a socket to a replica.

Blocking, for a slot's threads. A replica that dies takes the batches with it that it has, and nothing else;
whoever runs one is told.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Self

import orjson

from parity.batch import Batch
from parity.child import MODULE_FLAGS
from parity.codec.frames_ipc import decode_result, encode_batch
from parity.errors import FingerprintError, MalformedError, ParityError, RunnerError
from parity.handler import LoadedHandler
from parity.pipeline import Step
from parity.profile import Profile
from parity.result import Result
from parity_online import logs
from parity_online.frames import receive_frame, send_frame

logger = logging.getLogger(__name__)

_STOP_S = 10.0

_KINDS: dict[str, type[Exception]] = {kind.__name__: kind for kind in (FingerprintError, RunnerError)}
"""What a replica's engine raises that is answered otherwise than a failure of the server."""

_Answered = tuple[bytes, memoryview]


class ReplicaDiedError(ParityError):
    """The process that ran a batch ended before it had answered."""


class StartTimeoutError(RunnerError):
    """A replica took longer to load than it may, and was ended."""


class RemoteEngine:
    """One handler under one profile in a process of its own; a context manager.

    Args:
        loaded: the handler.
        profile: its profile as configured; the replica holds it to its certificate where it is exact.
        resolved: the profile with the certificate's buckets.
        preprocess_workers: threads that preprocess there, its stages overlapped; one more thread may then run
            batches here at once. 0: one batch at a time.
        preprocess_processes: processes that preprocess for it; see `Engine`.
        start_timeout_s: how long it may take to load the handler.
    """

    def __init__(
        self,
        loaded: LoadedHandler,
        profile: Profile,
        resolved: Profile,
        *,
        preprocess_workers: int = 0,
        preprocess_processes: int = 0,
        start_timeout_s: float = 600.0,
    ) -> None:
        self.loaded = loaded
        self.profile = resolved
        self._configured = profile
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: socket.socket | None = None
        self._fingerprint: dict[str, str] = {}
        self._preprocess_workers = preprocess_workers
        self._preprocess_processes = preprocess_processes
        self._start_timeout_s = start_timeout_s
        self._numbers = itertools.count(1)
        self._sending = threading.Lock()
        self._waiting: dict[int, _Waiter] = {}
        self._reader: threading.Thread | None = None
        self._is_over = False

    @property
    def pid(self) -> int:
        """The replica's process id; 0 before it is started."""
        return 0 if self._process is None else self._process.pid

    @property
    def is_dead(self) -> bool:
        """Whether the replica was started and has ended."""
        return self._process is not None and self._process.poll() is not None

    def __enter__(self) -> Self:
        """Start the process and load the handler there.

        Raises:
            StartTimeoutError: it took too long; the process was ended.
            RunnerError: the handler could not be loaded, or the process died.
        """
        # Imported late, and only for its constants: `python -m` runs that module as a program.
        from parity_online import replica

        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, *MODULE_FLAGS, replica.__name__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr,  # our own standard output speaks in events
                pass_fds=[theirs.fileno()],
            )
        self._connection = ours
        config = {
            "ref": self.loaded.ref,
            "app_dir": self.loaded.app_dir,
            "name": self.loaded.name,
            "version": self.loaded.version,
            "profile": self._configured.name,
            "profile_settings": self._configured.to_settings(),
            "preprocess_workers": self._preprocess_workers,
            "preprocess_processes": self._preprocess_processes,
            "log_level": logging.getLevelName(logging.getLogger().level).lower(),
            "log_format": logs.form(),
            "log_failures": logs.tells_failures(),
        }
        try:
            send_frame(ours, replica.CONFIGURE, orjson.dumps(config))
            ours.settimeout(self._start_timeout_s)
            kind, _, body = receive_frame(ours)
            ours.settimeout(None)
        except TimeoutError as exc:
            self.kill()
            raise StartTimeoutError(
                f"a replica of {self.loaded.name} on {self.profile.device} took longer than "
                f"{self._start_timeout_s:g} s to load the handler (--start-timeout), and was ended"
            ) from exc
        except (EOFError, OSError) as exc:
            self.kill()
            raise RunnerError(f"a replica of {self.loaded.name} {self._end()} while it loaded") from exc
        if kind == replica.FAILED:
            self.kill()
            raise RunnerError(str(orjson.loads(body)["error"]))
        self._fingerprint = orjson.loads(body)
        self._reader = threading.Thread(target=self._read, name=f"parity-replica-{self.pid}", daemon=True)
        self._reader.start()
        logger.info("event=replica_started model=%s pid=%d", logs.text(self.loaded.name), self.pid)
        return self

    def __exit__(self, *exc_info: object) -> None:
        """End the process: in order where it waits, and not so where it does not end."""
        if self._connection is not None:
            with contextlib.suppress(OSError):  # it is gone already
                self._connection.shutdown(socket.SHUT_RDWR)
        if self._process is not None:
            try:
                self._process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                self.kill()
        if self._reader is not None:
            self._reader.join()
        if self._connection is not None:
            self._connection.close()

    def fingerprint(self) -> dict[str, str]:
        """The replica's fingerprint."""
        return dict(self._fingerprint)

    def run(self, batch: Batch, note: Callable[[Step], None] = lambda _: None) -> Result:
        """The answers of the replica.

        Args:
            batch: the rows.
            note: told of the batch's steps, where stages overlap, on a thread that must not be kept.

        Raises:
            ReplicaDiedError: it died first.
            FingerprintError, RunnerError: a process that preprocesses for it could not be replaced.
            RuntimeError: its engine raised anything else.
        """
        from parity_online import replica

        assert self._connection is not None, "entered"
        number = next(self._numbers)
        waiter = self._waiting[number] = _Waiter(note)
        try:
            frame = encode_batch(batch, number=logs.batch_number())
            if not self._is_over:
                with self._sending:
                    send_frame(self._connection, replica.BATCH, frame, number)
            answer = None if self._is_over and waiter.answer.empty() else waiter.answer.get()
        except OSError:
            answer = None
        finally:
            self._waiting.pop(number, None)
        if answer is None:
            raise ReplicaDiedError(
                f"the process that ran this request {self._end()}; it is being replaced, send the "
                "request again"
            )
        told, body = answer
        if told == replica.FAILED:
            found = orjson.loads(body)
            kind = _KINDS.get(found["type"], RuntimeError)
            raise kind(f"{found['type']} in replica {self.pid}: {found['error']}")
        try:
            return decode_result(self.loaded.outputs, body)
        except MalformedError as exc:  # no fault of who asked
            raise RuntimeError(f"replica {self.pid} gave answers of another form: {exc}") from exc

    def kill(self) -> None:
        """End the process at once; from any thread."""
        if self._process is not None and self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    def _read(self) -> None:
        """Hand what the replica says to who waits for it, until it is gone."""
        from parity_online import replica

        assert self._connection is not None, "entered"
        try:
            while True:
                kind, number, body = receive_frame(self._connection)
                waiter = self._waiting.get(number)
                if waiter is None:
                    continue
                step = replica.STEPS.get(kind)
                if step is None:
                    waiter.answer.put((kind, body))
                else:
                    waiter.note(step)
        except (EOFError, OSError):
            self._is_over = True
            for waiter in list(self._waiting.values()):
                waiter.answer.put(None)

    def _end(self) -> str:
        """How the process ended, in words."""
        assert self._process is not None, "started"
        try:
            code = self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
            code = self._process.wait()
        logger.warning(
            "event=replica_ended model=%s pid=%d code=%d", logs.text(self.loaded.name), self.pid, code
        )
        return f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"


class _Waiter:
    """Who waits for a batch; None is put where none will come."""

    def __init__(self, note: Callable[[Step], None]) -> None:
        self.note = note
        self.answer: queue.SimpleQueue[_Answered | None] = queue.SimpleQueue()
