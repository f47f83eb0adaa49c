"""The engine's stages overlapped on threads: batch k+1 is preprocessed while batch k is inferred.

`Pipeline` is for a stream of batches, `Overlapped` for batches that come one by one.

In a stream order is kept, buffers are bounded, and the first exception ends the run. Every wait is for a step
that comes earlier in the chain and runs on a pool of its own, so there is no cycle to deadlock on.
"""

from __future__ import annotations

import contextvars
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Literal, Self, TypeVar

from parity.batch import Batch
from parity.codec.decoded import Decoded
from parity.engine import Engine
from parity.errors import ConfigError
from parity.failures import of_this_job
from parity.handler import LoadedHandler
from parity.profile import Profile
from parity.result import Result
from parity.work import Work, merge

T = TypeVar("T")

Step = Literal["prepared", "inferring"]
"""What becomes of a batch: it is preprocessed and waits for the model; the model has begun with it."""

WAIT = "inference_wait"
"""The seconds between a batch's preprocess and its inference, in `Result.timings` of `Overlapped`."""


class Pipeline:
    """Runs a stream of batches through one engine with its stages overlapped.

    Args:
        engine: an entered engine.
        preprocess_workers: threads that preprocess, at least 1; more help where the stage releases the GIL.
        depth: batches in flight behind the one that is being inferred, at least 1; this bounds the memory.

    Raises:
        ConfigError: a number is below 1.
    """

    def __init__(self, engine: Engine, *, preprocess_workers: int = 1, depth: int = 2) -> None:
        if preprocess_workers < 1 or depth < 1:
            raise ConfigError(
                f"preprocess_workers = {preprocess_workers} and depth = {depth} must both be at least 1"
            )
        self._engine = engine
        self._workers = preprocess_workers
        self._depth = depth

    def map(self, batches: Iterable[Decoded]) -> Generator[Result]:
        """A result for each batch, in order; batches are taken from the iterable as room comes free.

        The iterable is read by the caller's thread. Closing the iterator, or an exception from the iterable
        or from a stage, drops what is queued, waits for what is running and ends the threads.

        Yields:
            Results on the rows of each batch's source, decode errors included.

        Raises:
            InputMutatedError: the handler wrote into its inputs.
        """
        preparing = ThreadPoolExecutor(self._workers, "parity-preprocess", of_this_job())
        inferring = ThreadPoolExecutor(1, "parity-inference", of_this_job())
        finishing = ThreadPoolExecutor(1, "parity-postprocess", of_this_job())
        in_flight: deque[Future[Result]] = deque()

        def submit(decoded: Decoded) -> Future[Result]:
            prepared = preparing.submit(self._engine.preprocess, decoded.batch)
            inferred = inferring.submit(self._infer, prepared)
            return finishing.submit(self._finish, inferred, decoded)

        try:
            for decoded in batches:
                in_flight.append(submit(decoded))
                while len(in_flight) > self._depth + self._workers:
                    yield in_flight.popleft().result()
            while in_flight:
                yield in_flight.popleft().result()
        finally:
            for pool in (finishing, inferring, preparing):
                pool.shutdown(wait=False, cancel_futures=True)
            for pool in (preparing, inferring, finishing):
                pool.shutdown(wait=True)

    def _infer(self, prepared: Future[Work]) -> Work:
        return self._engine.infer(prepared.result())

    def _finish(self, inferred: Future[Work], decoded: Decoded) -> Result:
        return merge(decoded, self._engine.postprocess(inferred.result()))


class Overlapped:
    """An engine that several threads run batches on at once, with their stages overlapped.

    Preprocess and postprocess happen on the callers' threads, inference on one thread of its own that has
    also loaded the handler. With `preprocess_workers + 1` callers the model is kept busy.

    Args:
        engine: an engine that is not entered.
        preprocess_workers: how many callers preprocess at once, at least 1; the others wait.

    Raises:
        ConfigError: the number is below 1.
    """

    def __init__(self, engine: Engine, *, preprocess_workers: int) -> None:
        if preprocess_workers < 1:
            raise ConfigError(f"preprocess_workers = {preprocess_workers} must be at least 1")
        self._engine = engine
        self._preparing = threading.BoundedSemaphore(preprocess_workers)
        self._device: _DeviceThread | None = None

    @property
    def loaded(self) -> LoadedHandler:
        """The handler."""
        return self._engine.loaded

    @property
    def profile(self) -> Profile:
        """The engine's profile."""
        return self._engine.profile

    def __enter__(self) -> Self:
        """Load the handler on the thread that will infer; raises as `Engine.__enter__` does."""
        self._device = _DeviceThread(f"parity-inference-{self.loaded.name}")
        try:
            self._device.run(self._engine.__enter__)
        except BaseException:
            self._device.close()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Let go of the handler and end the thread, once nobody runs a batch any more."""
        self._engine.__exit__(None, None, None)
        if self._device is not None:
            self._device.close()

    def give_up(self) -> None:
        """See `Engine.give_up`."""
        self._engine.give_up()

    def fingerprint(self) -> dict[str, str]:
        """The engine's fingerprint."""
        return self._engine.fingerprint()

    def run(self, batch: Batch, note: Callable[[Step], None] = lambda _: None) -> Result:
        """What `Engine.run` gives; the timings tell the wait for the model, too, as `WAIT`.

        Args:
            batch: the rows.
            note: told of the batch's steps, on whatever thread they are made.
        """
        with self._preparing:
            work = self._engine.preprocess(batch)
        note("prepared")
        prepared_at = time.perf_counter()

        def infer() -> Work:
            note("inferring")
            work.timings[WAIT] = time.perf_counter() - prepared_at
            return self._engine.infer(work)

        if self._device is None:
            raise ConfigError(f"handler {self.loaded.name} is not loaded; use the engine in a with block")
        return self._engine.postprocess(self._device.run(infer))


class _DeviceThread:
    """One thread that runs what others hand it; a daemon, so that a model that hangs keeps nobody alive."""

    def __init__(self, name: str) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def run(self, job: Callable[[], T]) -> T:
        """What the job returns, or raises, in the caller's context."""
        done: Future[T] = Future()
        context = contextvars.copy_context()

        def work() -> None:
            try:
                done.set_result(context.run(job))
            except BaseException as exc:  # noqa: BLE001 - raised to who waits for it
                done.set_exception(exc)

        self._jobs.put(work)
        return done.result()

    def close(self) -> None:
        """End the thread after the jobs it has."""
        self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
