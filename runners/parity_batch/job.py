"""Run a batch job: plan, open the folder, skip what is done, give the rest to a batch engine, complete."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from parity.batch_engines import LOCAL, BatchEngine, find_batch_engine
from parity.errors import ConfigError, DatasetError, RowsError
from parity.failures import few_of_a_kind
from parity.handler import Handler, LoadedHandler
from parity_batch.folder import OutputFolder, open_folder
from parity_batch.identity import file_metadata
from parity_batch.local import LocalEngine
from parity_batch.places import anywhere, place_of, shown_place
from parity_batch.plan import Plan, Unit
from parity_batch.prepared import prepare
from parity_batch.progress import PlanningLine, ProgressLine
from parity_batch.reasons import common_reasons, kind_of
from parity_batch.settings import Settings
from parity_batch.sizing import BatchSize
from parity_batch.summary import Summary, peak_rss_bytes
from parity_batch.task import UnitTask
from parity_batch.unit import Tally

Progress = Callable[[int, int], None]

_log = logging.getLogger(__name__)

_FIRST_ROWS = 5000
"""Rows after which a job whose every row failed is told."""


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
        output: a folder, by path or URL: a new or empty one, or one with this job's work.
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
    with _planning_line(progress) as planned:
        ready = prepare(inputs, handler, columns, settings, app_dir, planned)
    loaded, settings, plan = ready.loaded, ready.settings, ready.plan
    tally = Tally(settings.most_errors(plan.num_rows), str(settings.max_errors), settings.log_failures)
    skipped = dict(plan.skipped)
    lost: set[str] = set()
    worker_notes: dict[str, None] = {}
    show: list[Progress] = []

    resumed_rows = 0
    warned = False

    def watch() -> None:
        nonlocal warned
        failed = tally.row_errors.total()
        show[0](tally.rows, failed)
        if not warned and failed == tally.rows >= resumed_rows + _FIRST_ROWS:
            warned = True
            _warn_of_all_failing(tally)

    engine = _engine(settings, watch)
    place = output if isinstance(output, Path) else place_of(output)
    shown = shown_place(place)
    peak = 0
    with (
        BatchSize(ready) as size,
        open_folder(place, plan, size.manifest_after, restart=settings.restart) as folder,
    ):
        todo = _unfinished(plan, folder, tally)
        resumed_rows = tally.rows
        tally.check()
        scoring_s = 0.0
        if todo:
            folder.reopen()
            task = UnitTask(
                profile=ready.profile,
                layout=plan.layout,
                folder=folder,
                metadata=file_metadata(size.manifest),
                batch_rows=size.rows,
                preprocess_workers=ready.preprocess_workers,
                preprocess_processes=settings.preprocess_processes or 0,
                max_row_bytes=settings.max_row_bytes,
                form=settings.form,
                log_failures=settings.log_failures,
                handler=loaded,
                tally=tally,
            )
            if (measured_with := size.take_engine()) is not None:
                task.adopt(measured_with)
            with (
                few_of_a_kind(tells_texts=settings.log_failures),
                contextlib.closing(task),
                _progress_line(plan.num_rows, resumed_rows, progress) as shown_line,
            ):
                show.append(shown_line)
                began = time.perf_counter()
                peak = _run(engine, todo, task, tally, settings, watch, skipped, lost, worker_notes)
                scoring_s = time.perf_counter() - began
        scored_rows = tally.rows - resumed_rows
        notes = [*plan.notes, *worker_notes]
        if settings.where:
            notes.append(f"--where left {tally.rows:,} of {plan.num_rows:,} rows")
        summary = Summary(
            output=shown,
            handler=f"{loaded.name}@{loaded.version}",
            files=len(plan.sources) + len(plan.skipped),
            rows=tally.rows,
            row_errors=dict(sorted(tally.row_errors.items())),
            parts=len(plan.units),
            resumed_parts=len(plan.units) - len(todo),
            scored_rows=scored_rows,
            seconds=round(time.perf_counter() - started, 3),
            rows_per_s=round(scored_rows / scoring_s, 1) if scoring_s else 0.0,
            step_seconds={step: round(spent, 3) for step, spent in tally.seconds.items()},
            peak_rss_bytes=max(peak, peak_rss_bytes()),
            engine=engine.name,
            notes=notes,
            skipped_files=skipped,
            batch_rows=size.rows,
            sizing=size.sizing,
        )
        if skipped and not tally.rows and plan.num_rows and not settings.where:
            raise DatasetError(f"no input file could be read: {'; '.join(skipped.values())}")
        if todo or not folder.is_complete:
            every_row_failed = 0 < summary.rows == summary.failed_rows and tally.max_errors is None
            parts = [unit.part for unit in plan.units if unit.part not in lost]
            folder.complete(summary.to_dict(), parts=parts, success=not every_row_failed)
            if every_row_failed:
                reasons = common_reasons(folder.store, parts, texts=settings.log_failures)
                raise RowsError(
                    f"every row failed ({summary.rows:,}); {shown}/_errors says why, and the same "
                    "command with --max-errors 100% calls that a success"
                    + "".join(f"\n  {reason}" for reason in reasons)
                )
    return summary


def _warn_of_all_failing(tally: Tally) -> None:
    """Say early that a job may be in vain: whoever started it need not wait for its end to hear it."""
    last = f"; the last one: {kind_of(tally.last_failed.error)}" if tally.last_failed else ""
    _log.warning(
        "each of the first %s rows failed%s; Ctrl-C ends the job, and with --max-errors 100 it would have "
        "ended by now",
        f"{tally.rows:,}",
        last,
    )


def _unfinished(plan: Plan, folder: OutputFolder, tally: Tally) -> list[Unit]:
    todo: list[Unit] = []
    records = folder.all_finished([unit.part for unit in plan.units])
    for unit, record in zip(plan.units, records, strict=True):
        if record is None:
            todo.append(unit)
        else:
            tally.count(record.rows, record.row_errors, {})
    return todo


def _engine(settings: Settings, watch: Callable[[], None]) -> BatchEngine:
    if not isinstance(settings.engine, str):
        return settings.engine
    if settings.engine == LOCAL:
        if settings.engine_options:
            key = next(iter(settings.engine_options))
            raise ConfigError(
                f"the engine {LOCAL!r} has no option {key!r}; it has none, --workers is for all engines"
            )
        return cast("BatchEngine", LocalEngine(watch))
    return find_batch_engine(settings.engine, settings.engine_options)


def _run(
    engine: BatchEngine,
    units: Sequence[Unit],
    task: UnitTask,
    tally: Tally,
    settings: Settings,
    watch: Callable[[], None],
    skipped: dict[str, str],
    lost: set[str],
    notes: dict[str, None],
) -> int:
    """Score the units; the first error ends the job. Gives the most memory that a worker had in use."""
    peak = 0
    names = {unit.part: unit.source.name for unit in units}
    units = [replace(unit, source=replace(unit.source, path=anywhere(unit.source.path))) for unit in units]
    reports = engine.run(units, task, workers=settings.workers, device=task.profile.device)
    try:
        for report in reports:
            peak = max(peak, report.peak_rss_bytes)
            notes.update((f"a worker's environment differs: {text}", None) for text in report.notes)
            if report.problem is not None:
                if settings.on_file_error == "stop":
                    raise DatasetError(f"{report.problem}; or --on-file-error skip leaves it out")
                lost.add(report.part)
                skipped[names[report.part]] = report.problem
            if not report.counted:
                tally.count(report.rows, report.row_errors, report.seconds)
                watch()
            tally.check()
    finally:
        close = getattr(reports, "close", None)
        if close is not None:
            close()
    whole = [unit.part for unit in units if unit.part not in lost]
    records = task.folder.all_finished(whole)
    missing = [part for part, record in zip(whole, records, strict=True) if record is None]
    if missing:
        raise DatasetError(
            f"engine {engine.name!r} ended without {len(missing)} of {len(units)} units, {missing[0]} first; "
            "the same command continues"
        )
    return peak


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


@contextlib.contextmanager
def _planning_line(wanted: bool) -> Generator[Progress]:
    if not (wanted and sys.stderr.isatty()):
        yield lambda _read, _all: None
        return
    line = PlanningLine(sys.stderr)
    try:
        yield line.show
    finally:
        line.close()
