"""Readiness is earned: warm every bucket, then answer the goldens through the queue that requests take."""

from __future__ import annotations

import contextlib
import itertools
import logging
import threading
import time
from collections.abc import Generator
from dataclasses import replace
from typing import cast

import numpy as np

from parity import golden
from parity.batch import Batch
from parity.compare import compare
from parity.errors import GoldenError
from parity.examples import example_batch
from parity.result import Result
from parity.work import merge
from parity_online import logs
from parity_online.served import Columns, ColumnsWork, ServedModel
from parity_online.slots import EngineLike

logger = logging.getLogger(__name__)

_TIMED_RUNS = 5
_PIECE_ROWS = (1, 32, 3, 7, 16, 2)


async def open_model(model: ServedModel) -> None:
    """Load a model, warm it up, run its goldens, and set the state that they earn it."""
    await model.load(warm_up)
    gate = model.settings.gate
    model.metrics.is_rehearsing = True
    try:
        divergences = [] if gate == "off" else await divergences_of(model)
    finally:
        model.metrics.is_rehearsing = False
    for divergence in divergences:
        model.metrics.gate_divergences.inc()
        logger.warning(
            "event=gate_divergence model=%s reason=%s", logs.text(model.name), logs.text(divergence)
        )
    if divergences and gate == "strict":
        model.set_state("refused", f"it does not reproduce its goldens: {'; '.join(divergences)}")
        logger.error("event=gate_refused model=%s reason=%s", logs.text(model.name), logs.text(model.reason))
    else:
        model.set_state("ready")


async def divergences_of(model: ServedModel) -> list[str]:
    """Why the goldens are not reproduced, a sentence a case; empty when they are, or when there are none."""
    model.reason = "its goldens are being run"
    try:
        cases = golden.find_cases(model.loaded)
    except GoldenError as exc:
        return [str(exc)]
    if not cases:
        logger.warning("event=gate_without_goldens model=%s", logs.text(model.name))
    found: list[str] = []
    devices = model.devices
    for device, case in itertools.product(devices, cases):
        where = f" on {device}" if len(devices) > 1 else ""
        try:
            model.only_on(device if where else None)
            result = await _answers(model, case)
        except Exception as exc:
            found.append(f"golden case {case.name!r}{where} could not be run: {type(exc).__name__}: {exc}")
            logger.error("event=gate_failed model=%s", logs.text(model.name), exc_info=exc)
            continue
        finally:
            model.only_on(None)
        rules = golden.case_tolerances(case, replace(model.profile, device=device))
        comparison = compare(case.expected, result.to_table(), rules, inputs=case.inputs)
        logger.info(
            "event=gate_compared model=%s case=%s rows=%d verdict=%s",
            logs.text(model.name),
            logs.text(case.name),
            comparison.rows,
            comparison.verdict,
        )
        model.goldens.append(f"{case.name}{where}: {comparison.verdict}, {comparison.rows} rows")
        if not comparison:
            found.append(f"golden case {case.name!r}{where}: {comparison.summary()}")
    return found


def warm_up(engine: EngineLike, max_batch: int) -> float:
    """Run every bucket, or the smallest and the largest batch; the seconds that a warm largest one takes.

    The rows are golden ones where there are any, and made up from the schema otherwise; a handler may refuse
    those, which is no fault.
    """
    sizes = sorted({size for size in engine.profile.buckets if size <= max_batch} | {1, max_batch})
    rows = _golden_rows(engine, sizes[-1])
    best_s = 0.0
    for size in sizes:
        batch = rows.slice(0, size)
        with _quiet_rows():
            best_s = min(_timed(engine, batch) for _ in range(_TIMED_RUNS))
    return best_s


async def _answers(model: ServedModel, case: golden.GoldenCase) -> Result:
    """The case's answers through the model's queue, in pieces of several sizes that share batches."""
    decoded = case.decoded(model.loaded)
    sizes = itertools.cycle(min(rows, model.settings.max_batch) for rows in _PIECE_ROWS)
    results: list[Result] = []
    for wave in decoded.batch.split(model.settings.queue_rows):
        pieces: list[Batch] = []
        start = 0
        while start < wave.num_rows:
            pieces.append(wave.slice(start, start + next(sizes)))
            start += pieces[-1].num_rows
        parts = [(ColumnsWork(piece), piece.num_rows) for piece in pieces]
        answers = cast("list[Columns]", await model.driver.submit_parts(parts))
        results += [_result(piece.num_rows, answer) for piece, answer in zip(pieces, answers, strict=True)]
    return merge(decoded, Result.concat(results, model.loaded.outputs))


def _result(rows: int, answer: Columns) -> Result:
    index = np.setdiff1d(np.arange(rows, dtype=np.int64), [error.row for error in answer.errors])
    return Result(rows, answer.outputs, index, answer.errors)


def _golden_rows(engine: EngineLike, rows: int) -> Batch:
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


@contextlib.contextmanager
def _quiet_rows() -> Generator[None]:
    """Keep the engine from logging the rows that fail on this thread."""
    thread = threading.get_ident()
    engine_logger = logging.getLogger("parity.engine")

    def is_loud(record: logging.LogRecord) -> bool:
        return record.thread != thread

    engine_logger.addFilter(is_loud)
    try:
        yield
    finally:
        engine_logger.removeFilter(is_loud)
