"""The engine's stages overlapped on threads: batch k+1 is preprocessed while batch k is inferred.

Order is kept, buffers are bounded, and the first exception ends the run. Every wait is for a step that comes
earlier in the chain and runs on a pool of its own, so there is no cycle to deadlock on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from parity.codec.decoded import Decoded
from parity.engine import Engine, Work, merge
from parity.errors import ConfigError
from parity.result import Result


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
        preparing = ThreadPoolExecutor(self._workers, thread_name_prefix="parity-preprocess")
        inferring = ThreadPoolExecutor(1, thread_name_prefix="parity-inference")
        finishing = ThreadPoolExecutor(1, thread_name_prefix="parity-postprocess")
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
