"""Errors as HTTP answers: one shape, one table of statuses, no internals.

Every error answer is JSON of this shape, keys that do not apply left out:

    {"error": "what was wrong, what was expected, what to do",
     "id": "the request's id, as in the log",
     "rows": [{"row": 0, "kind": "invalid", "field": "age", "stage": null, "message": "..."}]}

Status     Cause
400        the caller's fault: malformed JSON, a value that does not fit the schema, a row the handler rejects
404, 405   no such route or model; wrong verb
408        the body did not arrive in time
413, 415   the body is too large, or of another content type
499        the client left (seen in metrics and logs only)
500        a stage failed; the log tells more under the id
503        not ready, draining, the queue is full, or what ran the batch hung or died; `Retry-After` says when
           to return
504        the deadline passed
"""

from __future__ import annotations

import itertools
import math
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from parity.codec.decoded import TooManyRowsError
from parity.errors import FingerprintError, MalformedError, ParityError, RowError, RunnerError
from parity_online import logs
from parity_online.batcher import QueueFullError
from parity_online.driver import DeadlineExceededError, DrainingError
from parity_online.remote import ReplicaDiedError
from parity_online.slots import SlotHungError

Headers = list[tuple[bytes, bytes]]

CLIENT_LEFT = 499

_BOOT = secrets.token_hex(4)
_COUNT = itertools.count(1)


class ProblemError(ParityError):
    """A request that is answered with an error.

    Attributes:
        status: the HTTP status.
        kind: a short name for metrics and logs.
        retry_after_s: for 503, when to come back.
        rows: the rows at fault.
        detail: what the log says in place of the message, where that keeps something from the client.
    """

    def __init__(
        self,
        status: int,
        kind: str,
        message: str,
        *,
        retry_after_s: float | None = None,
        rows: Sequence[RowError] = (),
        detail: str = "",
    ) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.retry_after_s = retry_after_s
        self.rows = tuple(rows)
        self.detail = detail


@dataclass(slots=True)
class Answer:
    """A finished response; not frozen, which would cost each request a microsecond."""

    status: int
    headers: Headers
    body: bytes


def new_id() -> str:
    """A request id that no other request of this server, or of its earlier lives, has."""
    return f"{_BOOT}-{next(_COUNT):x}"


def as_problem(error: BaseException) -> ProblemError:
    """The problem that an exception stands for; one that nobody foresaw is a 500 that tells nothing."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, TooManyRowsError):
        return ProblemError(413, "too_many_rows", str(error))
    if isinstance(error, MalformedError):
        return ProblemError(400, "malformed", str(error))
    if isinstance(error, QueueFullError):
        return ProblemError(503, "queue_full", str(error), retry_after_s=error.retry_after_s)
    if isinstance(error, DrainingError):
        return ProblemError(503, "draining", str(error), retry_after_s=1.0)
    if isinstance(error, SlotHungError):
        return ProblemError(503, "slot_hung", str(error), retry_after_s=1.0)
    if isinstance(error, ReplicaDiedError):
        return ProblemError(503, "replica_died", str(error), retry_after_s=1.0)
    if isinstance(error, RunnerError | FingerprintError):  # a process that preprocesses cannot be replaced
        told = "a process of the model ended; the server's log tells more under this id"
        ours, _, its = str(error).partition("\n")  # what the process said last may hold anything
        detail = f"{ours}\n{its}" if its and logs.tells_failures() else ours
        return ProblemError(503, "process_died", told, retry_after_s=1.0, detail=detail)
    if isinstance(error, DeadlineExceededError):
        return ProblemError(504, "deadline", str(error))
    return ProblemError(500, "internal", "the server failed; its log tells more under this id")


def rows_problem(
    errors: Sequence[RowError], num_rows: int = 1, *, show_failures: bool, batch: int | None = None
) -> ProblemError:
    """The problem of a request of `num_rows` rows that cannot be answered because of some of them.

    A row that failed in a stage makes it a 500; invalid and rejected rows are the caller's: 400. `batch` is
    the number of the batch that the log knows.
    """
    failed = [error for error in errors if error.kind == "failed"]
    first = failed[0] if failed else errors[0]
    place = f"row {first.row}: " if num_rows > 1 else ""
    message = place + public_message(first, show_failures=show_failures)
    if len(errors) > 1:
        message += f" (and {len(errors) - 1} more of this request's rows, see 'rows')"
    if failed:
        number = f"batch {batch}: " if batch is not None else ""
        return ProblemError(
            500, "failed", message, rows=errors, detail=f"{number}{place}{logs.failure(first)}"
        )
    return ProblemError(400, first.kind, message, rows=errors)


def public_message(error: RowError, *, show_failures: bool) -> str:
    """What a row's error says to the client: a failure's exception stays in the log unless shown."""
    if error.kind != "failed" or show_failures:
        return error.message
    where = f"stage {error.stage}" if error.stage else "the handler"
    field = f", field {error.field!r}" if error.field else ""
    return f"{where} failed on this row{field}; the server's log tells more under the id of this answer"


def row_entry(error: RowError, *, show_failures: bool) -> dict[str, Any]:
    """A row's error as JSON-ready data."""
    entry: dict[str, Any] = {
        "row": error.row,
        "kind": error.kind,
        "field": error.field,
        "stage": error.stage,
        "message": public_message(error, show_failures=show_failures),
    }
    if show_failures and error.type is not None:
        entry["type"] = error.type
    return entry


def render(
    problem: ProblemError, request_id: str, *, show_failures: bool = False, close: bool = False
) -> Answer:
    """The answer to a request with this problem."""
    content: dict[str, Any] = {"error": str(problem), "id": request_id}
    if problem.rows:
        content["rows"] = [row_entry(error, show_failures=show_failures) for error in problem.rows]
    headers: Headers = []
    if problem.retry_after_s is not None:
        headers.append((b"retry-after", b"%d" % max(1, math.ceil(problem.retry_after_s))))
    return json_answer(problem.status, orjson.dumps(content), request_id, headers, close=close)


def json_answer(
    status: int,
    body: bytes,
    request_id: str | None,
    more: Iterable[tuple[bytes, bytes]] = (),
    *,
    close: bool = False,
) -> Answer:
    """A JSON response, with the request's id and `Connection: close` where asked."""
    headers: Headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        *more,
    ]
    if request_id is not None:
        headers.append((b"x-request-id", request_id.encode("latin-1", "replace")))
    if close:
        headers.append((b"connection", b"close"))
    return Answer(status, headers, body)


def headers_of(answer: Answer) -> Mapping[str, str]:
    """The headers as text, for frameworks that want them so."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in answer.headers}
