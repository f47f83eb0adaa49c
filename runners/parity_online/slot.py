"""Where a batch runs: on a thread of its own, or on the event loop when it is too short for a hand-over.

A slot runs one job at a time. Its thread is a daemon, so that a job that never ends cannot keep the process
alive after a drain has given up.
"""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Literal, Protocol, TypeVar, cast

T = TypeVar("T")

SlotKind = Literal["thread", "loop"]
SlotChoice = Literal["auto", "thread", "loop"]

LOOP_BATCH_LIMIT_S = 0.00025
"""Below this time a full batch is run on the loop: handing it to a thread and back costs about as much.

Measured with a small network (0.6 ms for 32 rows) at concurrency 32 on two busy cores: on a thread 1.3 times
the requests per second, since torch lets the loop go on meanwhile; alone, 0.1 ms more a request.
"""

LOOP_BATCH_TOLERATED_S = 0.02
"""A model whose batches take longer than this on the loop, a few times, is moved to a thread after all."""


class JobCrashedError(RuntimeError):
    """A job raised what a future cannot carry or a thread would not survive: StopIteration, SystemExit."""


class Slot(Protocol):
    """Runs jobs one at a time."""

    kind: SlotKind

    def run(self, job: Callable[[], T]) -> asyncio.Future[T]:
        """Start `job` and return a future of its result on the slot's loop."""
        ...

    def close(self) -> None:
        """Take no more jobs; one that runs is left to end by itself."""
        ...


class LoopSlot:
    """Runs each job at once, on the loop."""

    kind: SlotKind = "loop"

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def run(self, job: Callable[[], T]) -> asyncio.Future[T]:
        """Run `job` now; the future is done when this returns."""
        future: asyncio.Future[T] = self._loop.create_future()
        result, error = _outcome(job)
        _settle(future, result, error)
        return future

    def close(self) -> None:
        """Nothing to end."""


class ThreadSlot:
    """Runs jobs on one thread of its own; the loop is woken once a job."""

    kind: SlotKind = "thread"

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str) -> None:
        self._loop = loop
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def run(self, job: Callable[[], T]) -> asyncio.Future[T]:
        """Hand `job` to the thread."""
        future: asyncio.Future[T] = self._loop.create_future()

        def work() -> None:
            result, error = _outcome(job)
            # RuntimeError: the loop has closed, and nobody waits any more.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(_settle, future, result, error)

        self._jobs.put(work)
        return future

    def close(self) -> None:
        """Let the thread end after the jobs it has."""
        self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()


def _outcome(job: Callable[[], T]) -> tuple[T | None, Exception | None]:
    try:
        return job(), None
    except StopIteration as exc:
        return None, _crash(exc)
    except Exception as exc:  # noqa: BLE001 - carried by the future
        return None, exc
    except BaseException as exc:  # noqa: BLE001 - the slot outlives its jobs
        return None, _crash(exc)


def _crash(cause: BaseException) -> JobCrashedError:
    crash = JobCrashedError(f"the job raised {type(cause).__name__}: {cause}")
    crash.__cause__ = cause
    return crash


def _settle(future: asyncio.Future[T], result: T | None, error: Exception | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(cast("T", result))
