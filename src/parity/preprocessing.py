"""Processes that preprocess for an engine: for handlers whose preprocess is Python that keeps the GIL.

Each loads the handler once and then preprocesses one batch at a time. Preprocess has no side effects, so when
a process dies its batch is tried once more, by a process in its place; a batch that ends that one, too, has
failed, and the engine splits it until the guilty row stands alone. A process whose handler's files are no
longer those that the engine has loaded refuses to start.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Final

import numpy as np

from parity.batch import Batch
from parity.child import MODULE_FLAGS
from parity.codec.frames_ipc import encode_batch
from parity.errors import ConfigError, FingerprintError, ParityError, RunnerError
from parity.handler import LoadedHandler
from parity.profile import Profile
from parity.shared_values import Channel, Region
from parity.stages import TAP_VARIABLE

logger = logging.getLogger(__name__)

MODULE: Final = "parity.preprocess_process"
PROCESSES_MOST: Final = 256

_STOP_S = 5.0
_TRIES = 2
_STDERR = 2


class PreprocessDiedError(ParityError):
    """The process that preprocessed a batch ended before it was done, and so did the one in its place."""


class Preprocessors:
    """The processes of one engine; `preprocess` may be called by several threads.

    Args:
        loaded: the handler; it must have a reference.
        profile: the engine's profile, with a certificate's buckets.
        count: how many processes.

    Raises:
        ConfigError: the handler lives in this process only, or the number is out of range.
    """

    def __init__(self, loaded: LoadedHandler, profile: Profile, count: int) -> None:
        if not 1 <= count <= PROCESSES_MOST:
            raise ConfigError(f"preprocess_processes = {count} is not 0 to {PROCESSES_MOST}")
        if not loaded.ref:
            raise ConfigError(
                f"handler {loaded.name}: class {loaded.cls.__name__} lives in this process only, and others "
                "must load it to preprocess: put it in a file, and name that"
            )
        self._loaded = loaded
        self._profile = replace(profile, exact=False)  # the engine is held to its certificate, not they
        self._count = count
        self._idle: queue.LifoQueue[_Process | None] = queue.LifoQueue()
        self._all: set[_Process] = set()
        self._lock = threading.Lock()
        self._is_closed = False

    def open(self) -> None:
        """Start all processes.

        Raises:
            FingerprintError: the handler's files have changed since it was loaded.
            RunnerError: one could not load the handler.
        """
        with ThreadPoolExecutor(self._count, "parity-preprocess-start") as pool:
            started = [pool.submit(self._start) for _ in range(self._count)]
        errors = [error for future in started if (error := future.exception()) is not None]
        if errors:
            self.close()
            raise errors[0]
        for future in started:
            self._idle.put(future.result())

    def preprocess(self, batch: Batch) -> Any:
        """What the handler's preprocess makes of a batch; rows that it rejects are rejected in the batch.

        Raises:
            PreprocessDiedError: two processes ended over it.
            FingerprintError, RunnerError: a process that died could not be replaced.
            Exception: whatever preprocess raises.
        """
        process = self._idle.get()
        try:
            ended: Exception | None = None
            for _ in range(_TRIES):
                if process is None or process.is_dead:
                    dead, process = process, None
                    process = self._replacement(dead)
                try:
                    return process.preprocess(batch)
                except _GoneError as exc:
                    ended = exc
            raise PreprocessDiedError(
                f"the process that it was preprocessed in {ended}, as did the one in its place"
            )
        finally:
            self._idle.put(process)

    def kill(self) -> None:
        """End all processes now and for good, so that nobody waits for one; from any thread."""
        with self._lock:
            self._is_closed = True
            for process in self._all:
                process.kill()

    def close(self) -> None:
        """End all processes, once nobody preprocesses."""
        with self._lock:
            self._is_closed = True
            processes, self._all = self._all, set()
        for process in processes:
            if process.is_loaded:
                process.close()
            else:
                process.end()

    def _replacement(self, dead: _Process | None) -> _Process:
        if dead is not None:
            with self._lock:
                self._all.discard(dead)
            dead.close()
        try:
            process = self._start()
        except BaseException:
            logger.exception("event=preprocess_process_not_replaced handler=%s", self._loaded.name)
            raise
        logger.warning(
            "event=preprocess_process_replaced handler=%s pid=%d was=%s",
            self._loaded.name,
            process.pid,
            "none" if dead is None else dead.pid,
        )
        return process

    def _start(self) -> _Process:
        process = _Process()
        with self._lock:
            is_closed = self._is_closed
            if not is_closed:
                self._all.add(process)  # from now on `kill` reaches it
        try:
            if not is_closed:
                process.load(self._loaded, self._profile)
                return process
        except BaseException as exc:
            with self._lock:
                self._all.discard(process)
            process.end()
            if not (self._is_closed and isinstance(exc, RunnerError)):
                raise
        process.end()
        raise RunnerError(f"handler {self._loaded.name} is no longer loaded: its processes were ended")


class _GoneError(Exception):
    """A process ended; the text says how."""


class _Process:
    """One process and the channel to it, started; it does nothing before it is told to load the handler."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        to, back = Region.new(), Region.new()
        self._channel = Channel(ours, to, back)
        self.is_loaded = False
        environment = {name: value for name, value in os.environ.items() if name != TAP_VARIABLE}
        numbers = [theirs.fileno(), to.descriptor, back.descriptor]
        try:
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, *MODULE_FLAGS, MODULE, str(os.getpid()), *map(str, numbers)],
                    stdin=subprocess.DEVNULL,
                    stdout=_STDERR,  # results are ours alone
                    pass_fds=numbers,
                    env=environment,
                )
        except BaseException:
            self._channel.close()
            raise

    def load(self, loaded: LoadedHandler, profile: Profile) -> None:
        """Load the handler there.

        Raises:
            FingerprintError: its files have changed since it was loaded here.
            RunnerError: it could not be loaded, or the process ended.
        """
        try:
            self._channel.send(
                {
                    "ref": loaded.ref,
                    "app_dir": loaded.app_dir,
                    "name": loaded.name,
                    "version": loaded.version,
                    "digests": dict(loaded.digests),
                    "profile": profile.name,
                    "settings": profile.to_settings(),
                    "log_level": logging.getLogger().getEffectiveLevel(),
                }
            )
            problem = self._channel.receive()
        except (EOFError, OSError) as exc:
            raise RunnerError(
                f"a process that preprocesses for handler {loaded.name} {self._end()} while it loaded"
            ) from exc
        if problem is not None:
            kind, text = problem
            raise FingerprintError(text) if kind == "FingerprintError" else RunnerError(text)
        self.is_loaded = True

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def is_dead(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None

    def preprocess(self, batch: Batch) -> Any:
        """See `Preprocessors.preprocess`; raises _GoneError when the process ends."""
        try:
            self._channel.send(np.frombuffer(encode_batch(batch), np.uint8))
            rejections, value, error = self._channel.receive()
        except (EOFError, OSError) as exc:
            raise _GoneError(self._end()) from exc
        for row, reason in rejections.items():
            batch.reject(row, reason)
        if error is not None:
            raise error
        return value

    def kill(self) -> None:
        """End it at once."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    def end(self) -> None:
        """End it at once, and let go of it."""
        self.kill()
        self.close()

    def close(self) -> None:
        """End it: in order where it waits, at once where it does not."""
        with contextlib.suppress(OSError):
            self._channel.close()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.wait()

    def _end(self) -> str:
        try:
            code = self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
            code = self._process.wait()
        return f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
