"""`POST /v2/models/{name}[/versions/{version}]/infer`: Open Inference Protocol V2 with tensors as JSON.

The protocol has no form for the error of one row, so a bad row fails its request: 400 for an invalid or
rejected row, 500 for one that failed, naming the row and the field. `parameters.timeout` is the request's
time in microseconds, as Triton has it; the sooner of it and `X-Request-Timeout` counts.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from parity.batch import Batch
from parity.codec import oip
from parity.errors import RowError, RowsError, SchemaError, shown
from parity_online.problems import Answer, ProblemError, json_answer, rows_problem
from parity_online.served import Columns, ColumnsWork

if TYPE_CHECKING:
    from parity_online.fastpath import Call


async def answer(call: Call, body: bytes) -> Answer:
    """The answer to one body.

    Raises:
        MalformedError: it is not a V2 inference request.
        ProblemError: it does not fit the model, a row of it is bad, or the model is not ready.
        QueueFullError, DeadlineExceededError, DrainingError: see `parity_online.driver`.
    """
    model = call.model
    driver = model.require_ready()
    try:
        asked = oip.decode_request(model.loaded.inputs, body, outputs=model.loaded.outputs)
    except SchemaError as exc:
        raise ProblemError(400, "malformed", f"model {model.name!r}: {exc}") from exc
    decoded = asked.decoded
    if decoded.errors:
        model.metrics.refused_rows(len(decoded.errors))
        raise rows_problem(decoded.errors, decoded.num_rows, show_failures=call.show_failures)
    policy = model.settings
    if not 1 <= decoded.num_rows <= policy.queue_rows:
        raise ProblemError(
            400 if decoded.num_rows == 0 else 413,
            "too_many_rows" if decoded.num_rows else "malformed",
            f"the request has {decoded.num_rows} rows: expected 1 to {policy.queue_rows}, what the queue "
            "holds; send fewer rows at a time, or score them with `parity batch`",
        )
    deadline = _deadline(call, asked.parameters.get("timeout"))
    is_gone = call.request.is_gone
    if decoded.num_rows <= policy.max_batch:
        work = ColumnsWork(decoded.batch, call.origin)
        answers = [await driver.submit(work, decoded.num_rows, deadline=deadline, is_gone=is_gone)]
    else:
        pieces = decoded.batch.split(policy.max_batch)
        answers = await driver.submit_parts(
            [(_part(call, piece, at * policy.max_batch), piece.num_rows) for at, piece in enumerate(pieces)],
            deadline=deadline,
            is_gone=is_gone,
        )
    outputs = _joined(cast("list[Columns]", answers), decoded.num_rows, call)
    try:
        text = oip.encode_response(outputs, model.name, model.version, asked.id, asked.outputs)
    except RowsError as exc:
        raise rows_problem(exc.errors, decoded.num_rows, show_failures=call.show_failures) from exc
    except SchemaError as exc:
        raise ProblemError(400, "malformed", f"model {model.name!r}: {exc}") from exc
    return json_answer(200, text, call.request.id)


def _part(call: Call, piece: Batch, start: int) -> ColumnsWork:
    """A piece of a request whose first row is the request's row `start`."""
    return ColumnsWork(piece, call.origin, range(start, start + piece.num_rows))


def _joined(answers: Sequence[Columns], num_rows: int, call: Call) -> Batch:
    """The parts' outputs as one batch, in order.

    Raises:
        ProblemError: a row has no answer.
    """
    errors: list[RowError] = []
    start = 0
    for part in answers:
        errors += [error.at(error.row + start) for error in part.errors]
        start += part.outputs.num_rows + len(part.errors)
    if errors:
        raise rows_problem(errors, num_rows, show_failures=call.show_failures, batch=answers[0].batch)
    batches = [part.outputs for part in answers]
    return batches[0] if len(batches) == 1 else Batch.concat(batches)


def _deadline(call: Call, timeout_us: object) -> float:
    if timeout_us is None:
        return call.deadline
    if isinstance(timeout_us, bool) or not isinstance(timeout_us, int | float) or timeout_us < 0:
        raise ProblemError(
            400, "malformed", f"parameters.timeout {shown(timeout_us)}: expected a number of microseconds"
        )
    if timeout_us == 0:  # Triton's "no timeout of my own"
        return call.deadline
    return min(call.deadline, time.monotonic() + timeout_us / 1_000_000)
