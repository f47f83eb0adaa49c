"""Decoded columns through a model's queue: split to batches, put together again, errors under their own rows.

What the protocols that carry columns share; none of them is decoded here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

from parity.batch import Batch
from parity.codec.decoded import Decoded
from parity.result import Result
from parity.work import merge
from parity_online.call import Call
from parity_online.problems import ProblemError, rows_problem
from parity_online.shapes import Piece, put_back
from parity_online.works import Columns, ColumnsWork

LARGE_BODY_BYTES = 128 * 1024
"""Larger bodies are decoded on another thread, so that the event loop goes on."""

Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class Scored:
    """The answers to a request.

    Attributes:
        result: the answers aligned with the request's rows; timings and buckets are left out.
        batch: the number under which the log tells more.
    """

    result: Result
    batch: int | None

    def whole(self, call: Call) -> Batch:
        """The answers, for a protocol that has no form for the error of one row.

        Raises:
            ProblemError: a row has no answer.
        """
        if self.result.errors:
            raise rows_problem(
                self.result.errors,
                self.result.num_rows,
                show_failures=call.show_failures,
                batch=self.batch,
            )
        return self.result.outputs


async def read_body(size: int, read: Callable[[], Read]) -> Read:
    """What a decoder makes of a body of so many bytes; large ones are left to another thread."""
    return read() if size <= LARGE_BODY_BYTES else await asyncio.to_thread(read)


def require_fitting(call: Call, decoded: Decoded, body: bytes) -> None:
    """Count and record rows that do not fit, and refuse requests of no rows or of more than the queue holds.

    Raises:
        ProblemError: (400) there is no row; (413) there are too many.
    """
    if decoded.errors:
        call.refuse(decoded.errors, body)
    most = call.model.settings.queue_rows
    if decoded.num_rows == 0:
        raise no_rows(most)
    if decoded.num_rows > most:
        raise ProblemError(
            413,
            "too_many_rows",
            f"the request has {decoded.num_rows} rows: expected 1 to {most}, what the queue holds; send "
            "fewer rows at a time, or score them with `parity batch`",
        )


def no_rows(most: int) -> ProblemError:
    """The problem of a request without rows: in every protocol more often a mistake than a question."""
    return ProblemError(400, "malformed", f"the request has 0 rows: expected 1 to {most}; send at least one")


def require_good(call: Call, decoded: Decoded) -> None:
    """Refuse a request with a row that does not fit, for a protocol without a form for one row's error.

    Raises:
        ProblemError: (400) a row does not fit.
    """
    if decoded.errors:
        raise rows_problem(decoded.errors, decoded.num_rows, show_failures=call.show_failures)


async def score(call: Call, decoded: Decoded, deadline: float | None = None) -> Scored:
    """The good rows' answers, and every row's error.

    Raises:
        QueueFullError, DeadlineExceededError, DrainingError: see `parity_online.driver`.
        ProblemError: the model is not ready.
    """
    driver = call.model.require_ready()
    batch = decoded.batch
    places = decoded.index
    most = call.model.settings.most_rows
    until = call.deadline if deadline is None else deadline
    is_gone = call.request.is_gone
    priority = call.request.priority
    pieces = call.model.shapes.cut(batch, most) if batch.num_rows else []
    is_whole = len(pieces) == 1 and not decoded.errors
    works = [
        ColumnsWork(piece.batch, call.origin, None if is_whole else places[piece.rows].tolist(), piece.key)
        for piece in pieces
    ]
    answers: Sequence[Columns]
    if len(works) == 1:
        (work,) = works
        found = await driver.submit(
            work, batch.num_rows, key=work.key, deadline=until, priority=priority, is_gone=is_gone
        )
        answers = [cast("Columns", found)]
    else:
        parts = [(work, work.batch.num_rows) for work in works]
        keys = [work.key for work in works]
        scored = await driver.submit_parts(
            parts, keys=keys, deadline=until, priority=priority, is_gone=is_gone
        )
        answers = cast("list[Columns]", scored)
    return _joined(call, decoded, pieces, answers)


def _joined(call: Call, decoded: Decoded, pieces: Sequence[Piece], answers: Sequence[Columns]) -> Scored:
    """The pieces' answers as one, under the request's row numbers."""
    good = put_back([answer.result for answer in answers], pieces, call.model.loaded.outputs)
    call.request.ran = answers[-1].ran if answers else None
    return Scored(merge(decoded, good), answers[0].batch if answers else None)
