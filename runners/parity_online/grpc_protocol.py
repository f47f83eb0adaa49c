"""V2 inference by gRPC as one more protocol of the path that HTTP requests take.

The service around it is `parity_online.grpc_service`. Errors are the same table of statuses; an `Answer` that
is not 200 holds the error's text, and the rows at fault in a header, and the service makes a gRPC code of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from parity.codec import oip_grpc
from parity.errors import RowError, RowsError, SchemaError
from parity_online.call import Call, Protocol
from parity_online.columns import read_body, require_fitting, require_good, score
from parity_online.problems import Answer, ProblemError, row_entry, rows_problem
from parity_online.v2 import deadline_of

ROWS_KEY = b"parity-rows-bin"
"""The trailing metadata with the first rows at fault, as the JSON that HTTP's errors have under "rows"."""
COUNT_KEY = b"x-row-errors"
"""The trailing metadata with the number of all rows at fault."""

_ROWS_BYTES = 3000
"""Clients take 8 KiB of metadata: 4000 bytes are for these as base64, 2000 for the message."""
_ROW_MESSAGE_CHARS = 300
_DETAILS_BYTES = 2000


async def answer(call: Call, body: bytes) -> Answer:
    """The answer to a `ModelInferRequest`, which the service has put into `call.request.message`.

    Raises:
        MalformedError: it does not fit the model.
        ProblemError: a row of it is bad, or the model is not ready.
        QueueFullError, DeadlineExceededError, DrainingError: see `parity_online.driver`.
    """
    model, message = call.model, call.request.message
    model.require_ready()
    inputs, outputs = model.loaded.inputs, model.loaded.outputs
    most = model.settings.queue_rows
    try:
        asked = await read_body(
            len(body), lambda: oip_grpc.decode_request(inputs, message, outputs=outputs, most_rows=most)
        )
    except SchemaError as exc:
        raise ProblemError(400, "malformed", f"model {model.name!r}: {exc}") from exc
    require_fitting(call, asked.decoded, body)
    require_good(call, asked.decoded)
    scored = await score(call, asked.decoded, deadline_of(call, asked.parameters.get("timeout")))
    answers = scored.whole(call)
    try:
        response = oip_grpc.encode_response(answers, asked, model.name, model.version)
    except RowsError as exc:
        raise rows_problem(exc.errors, asked.decoded.num_rows, show_failures=call.show_failures) from exc
    except SchemaError as exc:
        raise ProblemError(400, "malformed", f"model {model.name!r}: {exc}") from exc
    return Answer(200, [], response.SerializeToString())


def render(
    problem: ProblemError, request_id: str, *, show_failures: bool = False, close: bool = False
) -> Answer:
    """The error's text, with what becomes trailing metadata as headers."""
    del close  # a gRPC connection outlives its calls
    headers = [(b"x-request-id", request_id.encode("latin-1", "replace"))]
    if problem.retry_after_s is not None:
        headers.append((b"retry-after", b"%d" % max(1, round(problem.retry_after_s))))
    if problem.rows:
        headers.append((ROWS_KEY, _rows_that_fit(problem.rows, show_failures=show_failures)))
        headers.append((COUNT_KEY, b"%d" % len(problem.rows)))
    return Answer(problem.status, headers, str(problem).encode())


def details(text: str) -> str:
    """An error's text, cut to what metadata has room for: gRPC sends it there, percent-encoded."""
    size = 0
    for place, character in enumerate(text):
        size += 1 if " " <= character <= "~" and character != "%" else 3 * len(character.encode())
        if size > _DETAILS_BYTES:
            return f"{text[:place]}\N{HORIZONTAL ELLIPSIS}"
    return text


def _rows_that_fit(errors: Sequence[RowError], *, show_failures: bool) -> bytes:
    found: list[bytes] = []
    left = _ROWS_BYTES
    for error in errors:
        entry = row_entry(error, show_failures=show_failures)
        text = orjson.dumps(entry)
        if len(text) > _ROWS_BYTES and not found:
            entry["message"] = f"{entry['message'][:_ROW_MESSAGE_CHARS]}\N{HORIZONTAL ELLIPSIS}"
            text = orjson.dumps(entry)
        left -= len(text) + 1
        if left < 0:
            break
        found.append(text)
    return b"[%s]" % b",".join(found)


PROTOCOL = Protocol(name="grpc", wire="grpc", path="", version_path="", answer=answer, render=render)
