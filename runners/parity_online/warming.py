"""Warm an engine up before it takes requests, and measure on the way; on the slot's thread."""

from __future__ import annotations

import contextlib
import time

from parity import golden
from parity.batch import Batch
from parity.errors import GoldenError
from parity.examples import example_batch
from parity.failures import unlogged
from parity.memory import larger_batch_fits
from parity.sizing import Sizing, Timing, choose, sizes_to_try
from parity_online.place import EngineLike
from parity_online.remote import RemoteEngine
from parity_online.settings import ModelSettings

_TIMED_RUNS = 5
_LEAST_RUNS = 2
_RUNS_S = 1.0


def warm_up(engine: EngineLike, max_batch: int) -> float:
    """Run every bucket, or the smallest and the largest batch; the seconds that a warm largest one takes.

    The rows are golden ones where there are any, and made up from the schema otherwise; a handler may refuse
    those, which is no fault.
    """
    sizes = sorted({size for size in engine.profile.buckets if size <= max_batch} | {1, max_batch})
    rows = _rows_to_run(engine, sizes[-1])
    best_s = 0.0
    for size in sizes:
        batch = rows.slice(0, size)
        with unlogged():
            best_s = min(_timed(engine, batch) for _ in range(_TIMED_RUNS))
    return best_s


def size_up(engine: EngineLike, settings: ModelSettings) -> Sizing:
    """Run batches of growing sizes, each some times, and decide how many rows are best.

    The rows are those of `warm_up`. A batch that a device's memory does not hold is run in halves by the
    engine, which is slower than the size before, and so is never chosen.
    """
    most = settings.most_rows
    sizes = sizes_to_try(engine.profile.buckets, most)
    rows = _rows_to_run(engine, sizes[-1])

    def time_s(size: int) -> float:
        batch = rows.slice(0, size)
        times: list[float] = []
        with unlogged():
            while len(times) < _LEAST_RUNS or (len(times) < _TIMED_RUNS and sum(times) < _RUNS_S):
                times.append(_timed(engine, batch))
        return min(times)

    pid = engine.pid if isinstance(engine, RemoteEngine) else None
    fits = larger_batch_fits(pid, max(1, settings.replicas))

    def refused(last: Timing, size: int) -> str:
        return "" if fits(last.rows, size) else f"a batch of {size} may not fit into memory"

    return choose(time_s, sizes, allowed_s=settings.batch_allowed_s, refused=refused)


def _rows_to_run(engine: EngineLike, rows: int) -> Batch:
    """So many rows to warm up with: golden ones, repeated as needed."""
    with contextlib.suppress(GoldenError):
        for case in golden.find_cases(engine.loaded):
            found = case.decoded(engine.loaded).batch
            if found.num_rows == 0:
                continue
            return found.take([row % found.num_rows for row in range(rows)])
    return example_batch(engine.loaded.inputs, rows)


def _timed(engine: EngineLike, batch: Batch) -> float:
    started = time.perf_counter()
    engine.run(batch)
    return time.perf_counter() - started
