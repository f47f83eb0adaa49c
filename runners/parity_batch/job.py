"""Run a batch job: plan, open the folder, skip what is done, score the rest on worker threads, complete.

A worker is a thread with an engine of its own that runs the stages one after the other, since a handler's
`inference` is called by one thread at a time; torch, numpy and Parquet release the GIL. A job of one unit has
one worker, and overlaps the stages instead.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from parity.engine import Engine
from parity.errors import ConfigError, did_you_mean, shown
from parity.handler import Handler, LoadedHandler
from parity.profile import Profile
from parity.registry import load_handler
from parity_batch.folder import OutputFolder, open_folder
from parity_batch.identity import file_metadata, manifest_of
from parity_batch.plan import Plan, Unit, make_plan
from parity_batch.progress import ProgressLine
from parity_batch.summary import Summary, peak_rss_bytes
from parity_batch.unit import JobStoppedError, Tally, UnitScorer

DEFAULT_BATCH_ROWS = 1024
"""Activations of a small network then stay in the L2 cache: 2.1 us a row, against 6.2 at 65,536 rows."""

_POLL_S = 0.2

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Settings:
    """How a job runs; nothing here but `batch_rows` and the profile has a say in what comes out.

    Attributes:
        profile: device, precision, buckets; the handler's default profile when None.
        batch_rows: rows in a micro-batch; by default 1024, or what fills the largest bucket.
        workers: threads that score, each with an engine of its own; by default one for each CPU core, and one
            for other devices.
        preprocess_workers: threads that preprocess for each engine, with its stages overlapped; by default 1
            for a single worker, and 0, no overlap, for several.
        max_errors: the most rows that may fail before the job stops; None for any number.
        restart: remove what an earlier job left in the output folder.
    """

    profile: Profile | None = None
    batch_rows: int | None = None
    workers: int | None = None
    preprocess_workers: int | None = None
    max_errors: int | None = None
    restart: bool = False

    def __post_init__(self) -> None:
        for name, least in (("batch_rows", 1), ("workers", 1), ("preprocess_workers", 0), ("max_errors", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ConfigError(f"{name} = {value} must be at least {least}")

    def with_defaults(self, table: Mapping[str, Any]) -> Settings:
        """The settings, with those of a handler.toml's `[batch]` table where none was given.

        Raises:
            ConfigError: a key is unknown (near names are given), or a value is no number in range.
        """
        known = ("batch_rows", "workers", "preprocess_workers")
        found: dict[str, int] = {}
        for key, value in table.items():
            if key not in known:
                raise ConfigError(f"handler.toml: [batch] has no setting {key!r}; {did_you_mean(key, known)}")
            if isinstance(value, bool) or not isinstance(value, int):
                raise ConfigError(f"handler.toml: [batch] {key} = {shown(value)} is not a whole number")
            if getattr(self, key) is None:
                found[key] = value
        return replace(self, **cast("dict[str, Any]", found))


def score(
    inputs: str | Path | Sequence[str | Path],
    output: str | Path,
    handler: str | Path | type[Handler] | LoadedHandler,
    *,
    columns: Sequence[str] = (),
    settings: Settings | None = None,
    app_dir: str | Path | None = None,
    progress: bool = False,
) -> Summary:
    """Score Parquet files into Parquet files; continues where an earlier run of the same job ended.

    Args:
        inputs: files, folders (searched recursively) and globs.
        output: a folder: a new or empty one, or one with this job's work.
        handler: a reference, a class or a loaded handler.
        columns: columns to pass through to the output.
        settings: how to run; what is not set comes from handler.toml's `[batch]` table, then the defaults.
        app_dir: a folder to import a "package.module:Class" handler from.
        progress: show a progress line on standard error when that is a terminal.

    Raises:
        DatasetError: an input is missing, broken or does not fit the handler (all problems are named, and
            nothing was scored), or a file cannot be read or written.
        ResumeError: the output folder holds the work of another job.
        RowsError: more rows failed than `max_errors` allows.
        CertificateError: the profile is exact, and no certificate holds here; nothing was scored.
        ParityError: the handler cannot be loaded, or wrote into its inputs.
    """
    started = time.perf_counter()
    loaded = _loaded(handler, app_dir)
    settings = (settings if settings is not None else Settings()).with_defaults(loaded.manifest.batch)
    profile = Engine(loaded, settings.profile).profile  # where it is exact, with a certificate's buckets
    paths = [inputs] if isinstance(inputs, str | Path) else list(inputs)
    plan = make_plan(paths, loaded, columns)
    batch_rows = settings.batch_rows or default_batch_rows(profile)
    manifest = manifest_of(plan, loaded, profile, batch_rows)
    with open_folder(Path(output), plan, manifest, restart=settings.restart) as folder:
        tally = Tally(settings.max_errors)
        todo = _unfinished(plan, folder, tally)
        resumed_rows = tally.rows
        tally.check()
        scoring_s = 0.0
        if todo:
            folder.reopen()
            workers, preprocess_workers = _threads(settings, profile, len(todo))
            with contextlib.ExitStack() as stack:
                engines = [stack.enter_context(Engine(loaded, profile)) for _ in range(workers)]
                metadata = file_metadata(manifest)
                scorers = [
                    UnitScorer(engine, plan, folder, metadata, batch_rows, preprocess_workers, tally)
                    for engine in engines
                ]
                began = time.perf_counter()
                with _progress_line(plan.num_rows, resumed_rows, progress) as show:
                    _run(scorers, todo, tally, show)
                scoring_s = time.perf_counter() - began
        scored_rows = tally.rows - resumed_rows
        summary = Summary(
            output=str(output),
            handler=f"{loaded.name}@{loaded.version}",
            files=len(plan.sources),
            rows=tally.rows,
            row_errors=dict(sorted(tally.row_errors.items())),
            parts=len(plan.units),
            resumed_parts=len(plan.units) - len(todo),
            scored_rows=scored_rows,
            seconds=round(time.perf_counter() - started, 3),
            rows_per_s=round(scored_rows / scoring_s, 1) if scoring_s else 0.0,
            step_seconds={step: round(spent, 3) for step, spent in tally.seconds.items()},
            peak_rss_bytes=peak_rss_bytes(),
        )
        if todo or not folder.is_complete:
            folder.complete(summary.to_dict())
    return summary


def default_batch_rows(profile: Profile) -> int:
    """1024 rows; with buckets, the largest multiple of the largest bucket up to there, or that bucket."""
    if profile.max_rows is None:
        return DEFAULT_BATCH_ROWS
    return max(profile.max_rows, DEFAULT_BATCH_ROWS // profile.max_rows * profile.max_rows)


def _loaded(handler: str | Path | type[Handler] | LoadedHandler, app_dir: str | Path | None) -> LoadedHandler:
    if isinstance(handler, LoadedHandler):
        return handler
    if isinstance(handler, str | Path):
        return load_handler(handler, app_dir=app_dir)
    return LoadedHandler.of(handler)


def _unfinished(plan: Plan, folder: OutputFolder, tally: Tally) -> list[Unit]:
    todo: list[Unit] = []
    for unit in plan.units:
        record = folder.finished(unit.part)
        if record is None:
            todo.append(unit)
        else:
            tally.count(record.rows, record.row_errors, {})
    return todo


def _threads(settings: Settings, profile: Profile, units: int) -> tuple[int, int]:
    """Workers, and threads that preprocess for each."""
    workers = settings.workers
    if workers is None:
        overlap = bool(settings.preprocess_workers)
        workers = 1 if overlap or profile.device != "cpu" else len(os.sched_getaffinity(0))
    workers = max(1, min(workers, units))
    if settings.preprocess_workers is not None:
        return workers, settings.preprocess_workers
    return workers, 1 if workers == 1 else 0


def _run(scorers: Sequence[UnitScorer], units: Sequence[Unit], tally: Tally, show: Progress) -> None:
    """Score the units on one thread for each scorer; the first error ends all of them and is raised."""
    waiting: queue.SimpleQueue[Unit] = queue.SimpleQueue()
    for unit in units:
        waiting.put(unit)

    def work(scorer: UnitScorer) -> None:
        try:
            while True:
                try:
                    unit = waiting.get_nowait()
                except queue.Empty:
                    return
                scorer.score(unit)
        except BaseException:
            tally.stop()
            raise

    with ThreadPoolExecutor(len(scorers), thread_name_prefix="parity-batch") as pool:
        futures = [pool.submit(work, scorer) for scorer in scorers]
        try:
            pending: set[Future[None]] = set(futures)
            while pending:
                _, pending = wait(pending, timeout=_POLL_S, return_when=FIRST_EXCEPTION)
                show(tally.rows, tally.row_errors.total())
        except BaseException:
            tally.stop()
            raise
    raised = [exc for exc in (future.exception() for future in futures) if exc is not None]
    for exc in raised:
        if not isinstance(exc, JobStoppedError):
            raise exc


@contextlib.contextmanager
def _progress_line(total: int, done: int, wanted: bool) -> Generator[Progress]:
    if not (wanted and sys.stderr.isatty()):
        yield lambda _rows, _errors: None
        return
    line = ProgressLine(total, sys.stderr, done=done)
    try:
        yield line.show
    finally:
        line.close()
