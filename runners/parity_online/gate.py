"""Readiness is earned: warm up, then answer the goldens through the queue that requests take."""

from __future__ import annotations

import itertools
import logging
from dataclasses import replace
from typing import NamedTuple, cast

from parity import golden
from parity.compare import compare
from parity.errors import GoldenError
from parity.result import Result
from parity.work import merge
from parity_online import logs
from parity_online.served import ServedModel
from parity_online.shapes import Piece, put_back
from parity_online.warming import size_up, warm_up
from parity_online.works import Columns, ColumnsWork

logger = logging.getLogger(__name__)

_PIECE_ROWS = (1, 32, 3, 7, 16, 2)


async def open_model(model: ServedModel) -> None:
    """Load a model, warm it up, run its goldens, and set the state that they earn it."""
    await model.load(warm_up, size_up)
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
        what = "it does not reproduce its goldens"
        cases = ", ".join(divergence.what for divergence in divergences)
        model.set_state("refused", f"{what}: {'; '.join(map(str, divergences))}", told=f"{what}: {cases}")
        logger.error("event=gate_refused model=%s reason=%s", logs.text(model.name), logs.text(model.reason))
    else:
        model.set_state("ready")


class Divergence(NamedTuple):
    """A golden case that is not reproduced, and why not, in words for whoever runs the server."""

    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


async def divergences_of(model: ServedModel) -> list[Divergence]:
    """Why the goldens are not reproduced, by case; empty when they are, or when there are none."""
    model.reason = "its goldens are being run"
    try:
        cases = golden.find_cases(model.loaded)
    except GoldenError as exc:
        return [Divergence("its golden cases", str(exc))]
    if not cases:
        logger.warning("event=gate_without_goldens model=%s", logs.text(model.name))
    found: list[Divergence] = []
    devices = model.devices
    for device, case in itertools.product(devices, cases):
        where = f" on {device}" if len(devices) > 1 else ""
        what = f"golden case {case.name!r}{where}"
        try:
            model.only_on(device if where else None)
            result = await _answers(model, case)
        except Exception as exc:
            found.append(Divergence(what, f"it could not be run: {type(exc).__name__}: {exc}"))
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
            found.append(Divergence(what, comparison.summary()))
    return found


async def _answers(model: ServedModel, case: golden.GoldenCase) -> Result:
    """The case's answers through the model's queue, in pieces of several sizes that share batches."""
    decoded = case.decoded(model.loaded)
    sizes = itertools.cycle(min(rows, model.settings.most_rows) for rows in _PIECE_ROWS)
    results: list[Result] = []
    for wave in decoded.batch.split(model.settings.queue_rows):
        pieces: list[Piece] = []
        start = 0
        while start < wave.num_rows:
            rows = wave.slice(start, start + next(sizes))
            cut = model.shapes.cut(rows, rows.num_rows)
            pieces += [replace(piece, rows=piece.rows + start) for piece in cut]
            start += rows.num_rows
        parts = [(ColumnsWork(piece.batch, key=piece.key), piece.batch.num_rows) for piece in pieces]
        keys = [piece.key for piece in pieces]
        answers = cast("list[Columns]", await model.driver.submit_parts(parts, keys=keys))
        results.append(put_back([answer.result for answer in answers], pieces, model.loaded.outputs))
    return merge(decoded, Result.concat(results, model.loaded.outputs))
