"""Rows whose stages failed: tried again in fewer, until each has its answer or its own error."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Any, cast

import numpy as np

from parity.batch import Batch
from parity.errors import OutputError, RowError
from parity.failures import ENGINE_LOGGER
from parity.out_of_memory import fewer_rows, is_out_of_memory, let_go, told
from parity.padding import UnpaddableError
from parity.profile import Profile
from parity.work import Answers, Failure, Part, Rows, rejection

logger = logging.getLogger(ENGINE_LOGGER)


class Isolation:
    """Finds the rows that are to blame for a part's failure, and answers the others without them.

    Args:
        handler: its name.
        profile: what rows are padded to.
        through: takes a part through all stages, with the seconds of each to add to; its outputs, or None
            where one failed, which the part then says.
    """

    def __init__(
        self, handler: str, profile: Profile, through: Callable[[Part, dict[str, float]], Batch | None]
    ) -> None:
        self._handler = handler
        self._profile = profile
        self._through = through

    def settle(self, part: Part, timings: dict[str, float], answers: Answers) -> None:
        """Give each row of a part that failed an answer or an error."""
        if is_out_of_memory(cast("Failure", part.failure).exc):
            self._lessen(part, timings, answers)
        else:
            self._isolate(part, timings, answers)

    # Memory that runs out is the fault of all rows together: they are tried once more, fewer at a time.

    def _lessen(self, part: Part, timings: dict[str, float], answers: Answers) -> None:
        rows, failure = part.rows, cast("Failure", part.failure)
        shape = part.shape_rows or len(rows)
        size = fewer_rows(self._profile, shape)
        let_go(failure.exc)
        logger.warning(
            "event=out_of_memory handler=%s stage=%s device=%s rows=%d again=%s",
            self._handler,
            failure.stage,
            self._profile.device,
            shape,
            size or "no",
        )
        if size is None:
            self._give_up(part, answers, f"with rows at once: {shape}")
            return
        for some in np.split(rows, range(size, len(rows), size)):
            piece = _again(part, some, self._profile.bucket_for(len(some)))
            outputs = self._through(piece, timings)
            if outputs is not None:
                answers.take(piece, outputs, self._handler)
            elif is_out_of_memory(cast("Failure", piece.failure).exc):
                smaller = piece.shape_rows or len(some)
                self._give_up(piece, answers, f"with rows at once: {shape}, then {smaller}")
            else:
                self._isolate(piece, timings, answers)

    def _give_up(self, part: Part, answers: Answers, tried: str) -> None:
        failure = cast("Failure", part.failure)
        message = told(self._profile, failure.stage, tried, shown_text(failure.exc))
        let_go(failure.exc)
        kind, name = type(failure.exc).__name__, self._handler
        for position, row in enumerate(part.rows.tolist()):
            reason = part.batch.rejections.get(position)
            answers.errors.append(
                RowError(row, "failed", f"handler {name}: {message}", None, failure.stage, kind)
                if reason is None
                else rejection(self._handler, row, reason)
            )

    # Isolation: split until the guilty rows stand alone, then give the others the shape they would have had.

    def _isolate(self, part: Part, timings: dict[str, float], answers: Answers) -> None:
        shape_rows, failure = part.shape_rows or part.batch.num_rows, part.failure
        found = Answers()
        self._split(part, shape_rows, timings, found)
        if len(found.outputs) > 1:
            innocent = np.sort(np.concatenate(found.rows))
            together = _again(part, innocent, shape_rows)
            outputs = self._through(together, timings)
            if outputs is not None:
                found.rows, found.outputs, found.buckets, found.stages = [], [], [], []
                found.take(together, outputs, self._handler)
        if failure is not None and not found.errors:
            logger.warning(
                "event=batch_failed handler=%s stage=%s type=%s rows=%d "
                "note='its rows have answers in smaller batches: mend what depends on their number'",
                self._handler,
                failure.stage,
                type(failure.exc).__name__,
                len(part.rows),
                exc_info=failure.exc,
            )
        for name in ("rows", "outputs", "buckets", "errors", "stages"):
            getattr(answers, name).extend(getattr(found, name))

    def _split(
        self,
        part: Part,
        shape_rows: int,
        timings: dict[str, float],
        answers: Answers,
        *,
        believing: bool = True,
    ) -> None:
        rows = part.rows
        if len(rows) == 1:
            row, failure, reason = int(rows[0]), cast("Failure", part.failure), part.batch.rejections.get(0)
            error = self._row_error(row, failure) if reason is None else rejection(self._handler, row, reason)
            answers.errors.append(error)
            return
        accused = _accused(part) if believing else None
        # Believed once: an exception that accuses one row at a time would cost a call, and a level, for each.
        pieces = _halves(rows) if accused is None else accused
        for some in pieces:
            piece = _again(part, some, shape_rows)
            outputs = self._through(piece, timings)
            if outputs is not None:
                answers.take(piece, outputs, self._handler)
            elif is_out_of_memory(cast("Failure", piece.failure).exc):
                self._lessen(piece, timings, answers)
            else:
                self._split(piece, shape_rows, timings, answers, believing=believing and accused is None)

    def _row_error(self, row: int, failure: Failure) -> RowError:
        exc = failure.exc
        name = self._handler
        if isinstance(exc, OutputError):
            return RowError(row, "failed", str(exc), exc.field, failure.stage, type(exc).__name__)
        if getattr(exc, "rejects_rows", False):
            message = f"handler {name}: {exc}"
            return RowError(row, "rejected", message, None, failure.stage, type(exc).__name__)
        if logger.isEnabledFor(logging.WARNING):
            logger.warning(
                "event=row_failed handler=%s stage=%s type=%s",
                name,
                failure.stage,
                type(exc).__name__,
                exc_info=exc,
            )
        text = (
            str(exc)
            if isinstance(exc, UnpaddableError)
            else f"raised {type(exc).__name__}: {shown_text(exc)}"
        )
        message = f"handler {name}: {failure.stage} {text}"
        return RowError(row, "failed", message, None, failure.stage, type(exc).__name__)


def _again(part: Part, rows: Rows, shape_rows: int | None) -> Part:
    batch = part.batch.take(np.searchsorted(part.rows, rows))
    return Part(batch, rows, shape_rows, keep_stages=part.keep_stages)


def _halves(rows: Rows) -> list[Rows]:
    return [rows[: len(rows) // 2], rows[len(rows) // 2 :]]


def _accused(part: Part) -> list[Rows] | None:
    """The rows that the exception does not accuse, then each that it does; None where it accuses none.

    What it says is believed only as far as the pieces bear it out, since each of them is asked.
    """
    rows, count = part.rows, len(part.rows)
    accused = getattr(cast("Failure", part.failure).exc, "failing_rows", None)
    if not isinstance(accused, Collection) or not 0 < len(cast("Collection[Any]", accused)) <= count:
        return None
    places = sorted({place for place in cast("Collection[Any]", accused) if isinstance(place, int)})
    if not places or places[0] < 0 or places[-1] >= count:
        return None
    others = np.delete(rows, places)
    alone = [rows[place : place + 1] for place in places]
    return [others, *alone] if len(others) else alone


def shown_text(exc: BaseException) -> str:
    """An exception's text cut to a line of 300 characters."""
    text = " ".join(str(exc).split())
    return text if len(text) <= 300 else f"{text[:299]}…"
