"""`--batch-rows auto`: how many rows make a micro-batch, measured before the first one is scored.

Rows of the first unit that has some go through the engine as the job's own will, in micro-batches of growing
size, and their answers are let go: every row is scored, counted and reported later, as in any job. The search
is the core's, `parity.sizing`. It is done once, by the process that starts the job; the size is in the
manifest before the first part is, and whoever continues the job takes it from there.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from parity.batch_engines import LOCAL
from parity.codec.rebatch import BATCH_BYTES, TOGETHER_BYTES
from parity.engine import Engine
from parity.errors import ConfigError, ParityError
from parity.failures import unlogged
from parity.memory import larger_batch_fits
from parity.profile import Profile
from parity.sizing import Sizing, Timing, choose, sizes_to_try
from parity_batch.groups import MOST_BATCHES, Pace
from parity_batch.local import default_workers
from parity_batch.lost import UnreadableError
from parity_batch.prepared import Prepared
from parity_batch.stream import read_unit
from parity_batch.unit import decoded_rows, score_group

LEAST_ROWS, MOST_ROWS = 64, 16384
"""The sizes that are tried, without buckets."""

_BUDGET_S, _LEAST_BUDGET_S = 3.0, 0.5
_JOB_SHARE = 0.05
"""How much of the job's own time measuring may take, within the budgets."""

_LEAST_RUNS, _MOST_RUNS = 2, 8
_RUNS_S = 0.05
_WARM_ROWS = (1, 8)
_SAMPLED_UNITS = 3
_SAMPLED_BATCHES = 4
_SAMPLE_BYTES = 64 * 1024 * 1024
"""Of a unit that is read for rows, those that a condition leaves out included."""


class BatchSize:
    """The rows of a micro-batch of a job: given, recorded by an earlier run, or measured.

    A context manager: leaving lets go of the engine that was loaded to measure, unless it was taken.

    Args:
        ready: the job.

    Attributes:
        rows: how many, once `manifest_after` was asked.
        sizing: how that was decided; None where a number was given.
        manifest: the job's manifest.
    """

    def __init__(self, ready: Prepared) -> None:
        self._ready = ready
        self._loaded = contextlib.ExitStack()
        self._engine: Engine | None = None
        self.rows = 0
        self.sizing: Sizing | None = None
        self.manifest: dict[str, Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loaded.close()

    def manifest_after(self, before: Mapping[str, Any]) -> dict[str, Any]:
        """The job's manifest; `before` is that of the job that is continued, empty where none is.

        Raises:
            ConfigError: the size is to be measured here, for an engine of other processes, and the handler
                cannot be loaded here.
            ParityError: what would end the job with its first rows.
        """
        rows = self._ready.given_rows
        if rows is None:
            self.sizing = recorded(before) if before else size_up(self._ready, self._enter)
            rows = self.sizing.rows
            if self._ready.settings.engine != LOCAL:
                self._engine = None
                self._loaded.close()
        self.rows, self.manifest = rows, self._ready.manifest(rows)
        return self.manifest

    def take_engine(self) -> Engine | None:
        """The engine that measured, which is the caller's from now on."""
        self._loaded.pop_all()
        engine, self._engine = self._engine, None
        return engine

    def _enter(self) -> Engine:
        ready = self._ready
        processes = ready.settings.preprocess_processes or 0
        try:
            self._engine = self._loaded.enter_context(
                Engine(ready.loaded, ready.profile, preprocess_processes=processes)
            )
        except ParityError as exc:
            if ready.settings.engine == LOCAL:
                raise
            raise ConfigError(
                "batch_rows = 'auto' is measured where the job is started, and the handler cannot be loaded "
                f"there: {exc}; give a number"
            ) from exc
        return self._engine


def recorded(manifest: Mapping[str, Any]) -> Sizing:
    """The size that a job was begun with."""
    return Sizing(int(manifest["batch_rows"]), (), "as the job was begun with")


def size_up(ready: Prepared, load: Callable[[], Engine]) -> Sizing:
    """Measure and decide.

    Takes about `_BUDGET_S` at most, and a small share of the job, beside loading. An exact profile measures
    nothing: its certificate's buckets are filled, as without "auto".

    Args:
        ready: the job.
        load: gives the engine, entered; not called where nothing is measured.
    """
    default = ready.default_rows
    if ready.profile.exact:
        return Sizing(default, (), "which fills the largest bucket that its certificate proves exact")
    sample = sample_rows(ready)
    rows = 0 if sample is None else sample.num_rows
    sizes = [size for size in sizes_of(ready.profile) if size <= rows]
    if sample is None or len(sizes) < 2:
        return Sizing(default, (), f"for {rows} rows to measure with are too few")
    with unlogged():  # this thread runs every stage that logs: other jobs of the process go on logging
        return _Measuring(ready, load(), sample).choose(sizes)


def sizes_of(profile: Profile) -> list[int]:
    """The sizes to try: powers of two, or the profile's buckets and then whole ones of the largest."""
    if profile.max_rows is None:
        return sizes_to_try((), MOST_ROWS, LEAST_ROWS)
    buckets = sizes_to_try(profile.buckets, max(MOST_ROWS, profile.max_rows))
    doubled = (profile.max_rows << power for power in range(1, MOST_ROWS.bit_length()))
    return [*buckets, *(size for size in doubled if size <= MOST_ROWS)]


def sample_rows(ready: Prepared) -> pa.RecordBatch | None:
    """Rows of the first unit that has some, `MOST_ROWS` or `BATCH_BYTES` of them at most; None for none.

    A unit that cannot be read is left to the job, which knows whether that ends it.
    """
    most_bytes = min(BATCH_BYTES, ready.settings.max_row_bytes)
    for unit in itertools.islice((unit for unit in ready.plan.units if unit.kept_rows), _SAMPLED_UNITS):
        most_read = max(MOST_ROWS, _SAMPLE_BYTES * unit.num_rows // max(1, unit.size_bytes))
        read = read_unit(unit, ready.plan.layout, MOST_ROWS, most_bytes, most_read_rows=most_read)
        found: pa.RecordBatch | None = None
        with contextlib.suppress(UnreadableError), contextlib.closing(read) as batches:
            for rows in itertools.islice(batches, _SAMPLED_BATCHES):  # a row that is too large stands alone
                if found is None or rows.num_rows > found.num_rows:
                    found = rows
                if found.num_rows >= LEAST_ROWS:
                    break
        if found is not None:
            return found
    return None


class _Measuring:
    """Times micro-batches of a sample, within a budget of seconds."""

    def __init__(self, ready: Prepared, engine: Engine, sample: pa.RecordBatch) -> None:
        self._ready = ready
        self._engine = engine
        self._sample = sample
        overlapped = bool(ready.preprocess_workers)  # a pipeline takes micro-batches one by one
        self._most_together = 1 if overlapped else MOST_BATCHES
        self._row_bytes = max(1, sample.nbytes // sample.num_rows)
        self._fits = larger_batch_fits()
        self._began = time.perf_counter()

    def choose(self, sizes: list[int]) -> Sizing:
        self._once(1, 1)  # pays for what is set up once
        self._began = time.perf_counter()
        warm = [rows for rows in _WARM_ROWS if rows < sizes[0]] or sizes[:1]
        for rows, more in itertools.pairwise([*warm, sizes[0]]):
            seconds = self._once(rows, rows)
            if self._exceeds(Timing(rows, seconds), more, _LEAST_RUNS if more == sizes[0] else 1):
                return Sizing(
                    sizes[0], (), f"the smallest, for a batch of {rows} takes {seconds:.2g} s already"
                )
        return choose(self._time_s, sizes, refused=self._refused)

    def _once(self, rows: int, batch_rows: int) -> float:
        started = time.perf_counter()
        inputs, layout = self._engine.loaded.inputs, self._ready.plan.layout
        score_group(
            self._engine,
            self._sample.slice(0, rows),
            batch_rows,
            lambda piece: decoded_rows(inputs, piece, layout),
        )
        return time.perf_counter() - started

    def _time_s(self, size: int) -> float:
        """The least seconds of a micro-batch, in groups as a job makes them."""
        together = min(self._sample.num_rows, TOGETHER_BYTES // self._row_bytes) // size
        pace = Pace(min(self._most_together, together))
        times: list[float] = []
        spent = 0.0
        while len(times) < _LEAST_RUNS or (len(times) < _MOST_RUNS and spent < _RUNS_S):
            batches = pace.batches()
            seconds = self._once(size * batches, size)
            pace.took(seconds)
            times.append(seconds / batches)
            spent += seconds
        return min(times)

    def _refused(self, last: Timing, size: int) -> str:
        if self._exceeds(last, size):
            budget_s = self._budget_s(last)
            return f"to measure one of {size} would take more than the {budget_s:.2g} s that measuring may"
        return "" if self._fits(last.rows, size) else f"a batch of {size} may not fit into memory"

    def _exceeds(self, last: Timing, size: int, runs: int = _LEAST_RUNS) -> bool:
        """Whether so many batches of so many rows, as the last one went, take more than is left."""
        spent_s = time.perf_counter() - self._began
        return spent_s + runs * size / last.rows_per_s > self._budget_s(last)

    def _budget_s(self, last: Timing) -> float:
        ready = self._ready
        workers = ready.settings.workers or default_workers(ready.profile.device, ready.preprocess_workers)
        job_s = ready.plan.num_rows / last.rows_per_s / workers
        return min(_BUDGET_S, max(_LEAST_BUDGET_S, _JOB_SHARE * job_s))
