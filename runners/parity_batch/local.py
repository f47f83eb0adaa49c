"""The engine `local`: units on threads of this process, one for each CPU core.

Torch, numpy and Parquet release the GIL. Where there are fewer units than threads, the units are scored one
after the other, and all threads take micro-batches of the same one.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Protocol

import pyarrow as pa

from parity.batch_engines import LOCAL
from parity.failures import of_this_job
from parity_batch.plan import Unit
from parity_batch.task import UnitTask
from parity_batch.unit import JobStoppedError, UnitReport

_POLL_S = 0.2

_SWITCH_S = 0.001
"""How long a thread that wants the GIL waits before it asks for it: after each operation of a model, with the
interpreter's five milliseconds, while another thread is at its bookkeeping. A job was 1.03 times as fast."""


class Watch(Protocol):
    """Called a few times a second while units are scored; it may raise to end the job."""

    def __call__(self) -> None:
        """Look."""


class LocalEngine:
    """Scores units on threads; a `parity.batch_engines.BatchEngine`.

    Args:
        watch: called a few times a second.
    """

    name = LOCAL

    def __init__(self, watch: Watch = lambda: None) -> None:
        self._watch = watch

    def run(
        self, units: Sequence[Unit], task: UnitTask, *, workers: int | None, device: str
    ) -> Iterator[UnitReport]:
        """The task's report for each unit, as units finish; see `BatchEngine.run`."""
        threads = workers if workers is not None else default_workers(device, task.preprocess_workers)
        if len(units) < threads and not task.preprocess_workers:
            lanes, engines = 1, threads
        else:
            lanes, engines = min(threads, len(units)), 1
        task.prepare(lanes * engines)
        with _SETTINGS:
            yield from self._run(units, task, lanes, engines)

    def _run(self, units: Sequence[Unit], task: UnitTask, lanes: int, engines: int) -> Iterator[UnitReport]:
        waiting: queue.SimpleQueue[Unit] = queue.SimpleQueue()
        for unit in units:
            waiting.put(unit)
        pool = ThreadPoolExecutor(lanes, "parity-batch", of_this_job())
        running: set[Future[UnitReport]] = set()
        try:
            while True:
                while len(running) < lanes and not waiting.empty():
                    running.add(pool.submit(task.score, waiting.get_nowait(), engines))
                if not running:
                    return
                done, running = wait(running, timeout=_POLL_S, return_when=FIRST_COMPLETED)
                self._watch()
                failed = [exc for future in done if (exc := future.exception()) is not None]
                for exc in sorted(failed, key=lambda exc: isinstance(exc, JobStoppedError)):
                    raise exc
                for future in done:
                    yield future.result()
        finally:
            if task.tally is not None and (running or not waiting.empty()):
                task.tally.stop()
            pool.shutdown(wait=True, cancel_futures=True)


class _SharedSettings:
    """A context in which Python and Arrow suit threads that score: what they were before comes back after it.

    Arrow's own choice gives memory back to the system and takes it anew at every read, page by page. With
    jemalloc, which keeps it for a second, a job on a wide table was 1.05 times as fast. Who has chosen by
    Arrow's variable keeps that.

    Jobs may overlap in a process: the last one that ends takes back what the first one set, unless somebody
    else has set it since.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs = 0
        self._undo: list[Callable[[], None]] = []

    def __enter__(self) -> None:
        with self._lock:
            self._jobs += 1
            if self._jobs == 1:
                self._set_interval()
                if "ARROW_DEFAULT_MEMORY_POOL" not in os.environ:
                    with contextlib.suppress(NotImplementedError):  # not every build of Arrow has it
                        self._set_pool(pa.jemalloc_memory_pool())

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._jobs -= 1
            while not self._jobs and self._undo:
                self._undo.pop()()

    def _set_interval(self) -> None:
        before = sys.getswitchinterval()
        sys.setswitchinterval(min(before, _SWITCH_S))
        ours = sys.getswitchinterval()

        def undo() -> None:
            if sys.getswitchinterval() == ours:
                sys.setswitchinterval(before)

        self._undo.append(undo)

    def _set_pool(self, ours: pa.MemoryPool) -> None:
        before = pa.default_memory_pool()
        pa.set_memory_pool(ours)

        def undo() -> None:
            if pa.default_memory_pool().backend_name == ours.backend_name:
                pa.set_memory_pool(before)

        self._undo.append(undo)


_SETTINGS = _SharedSettings()


def default_workers(device: str, preprocess_workers: int = 0) -> int:
    """One for each CPU core; one on another device, or where stages are overlapped."""
    return 1 if preprocess_workers or device != "cpu" else len(os.sched_getaffinity(0))
