"""Where a batch runs: on a thread of its own, or on the event loop when it is too short for a hand-over.

A slot runs one job at a time. Its thread is a daemon, so that a job that never ends cannot keep the process
alive after a drain has given up.

Two threads of Python that both have something to do hand the GIL back and forth, a small model at each of its
operations, and each hand-over may take milliseconds. So the loop waits for a short job as if it ran it
itself, but only so long: a job that takes longer, or hangs, costs it `PATIENCE_S` and goes on beside it.
"""

import asyncio
import contextlib
import logging
import queue
import threading
from collections.abc import Callable
from typing import Literal, Protocol, TypeVar, cast

logger = logging.getLogger(__name__)

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


SHORT_BATCH_S = 0.002
"""The loop waits for a slot's jobs where a warm batch of the largest size takes less than this.

Measured with a small network (32 rows in 0.6 ms) on two cores, one of them the clients': at 32 and 64
connections more requests a second; at 8 not settled.
"""

PATIENCE_S = 0.005
"""How long the loop waits for a job that should be short."""

_OVERRUNS_MOST = 10.0
_OVERRUN_FADES = 0.1


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
    """Runs jobs on one thread of its own; the loop is woken once a job, or waits for it.

    Attributes:
        is_short: whether jobs are short, so that the loop waits for them. It turns false by itself where too
            many are not: more than one of ten for a while.
    """

    kind: SlotKind = "thread"

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str) -> None:
        self._loop = loop
        self.is_short = False
        self._overruns = 0.0
        self._settling = threading.Lock()
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def run(self, job: Callable[[], T]) -> asyncio.Future[T]:
        """Hand `job` to the thread."""
        future: asyncio.Future[T] = self._loop.create_future()
        ended = threading.Lock() if self.is_short else None
        found: list[tuple[T | None, Exception | None]] = []
        is_left = ended is None
        if ended is not None:
            ended.acquire()

        def work() -> None:
            outcome = _outcome(job)
            with self._settling:
                if not is_left and ended is not None:
                    found.append(outcome)
                    ended.release()
                    return
            # RuntimeError: the loop has closed, and nobody waits any more.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(_settle, future, *outcome)

        self._jobs.put(work)
        if ended is not None:
            is_over = ended.acquire(timeout=PATIENCE_S)
            with self._settling:
                is_left = not found
            self._note(is_over)
            if found:
                _settle(future, *found[0])
        return future

    def close(self) -> None:
        """Let the thread end after the jobs it has."""
        self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    def _note(self, is_over: bool) -> None:
        self._overruns = max(0.0, self._overruns - _OVERRUN_FADES) if is_over else self._overruns + 1.0
        if self._overruns > _OVERRUNS_MOST:
            self.is_short = False
            logger.info("event=slot_not_short thread=%s patience_s=%g", self._thread.name, PATIENCE_S)


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
