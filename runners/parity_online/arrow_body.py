"""Arrow IPC streams at `/predictions`: a table in, a table out, one row for each.

The answer has the output fields, null where a row has none, and `_error`, a struct of kind, stage, field and
message, null where a row has an answer: what `parity run` and the batch runner write.
"""

from __future__ import annotations

from dataclasses import replace

from parity.codec import arrow
from parity.codec.decoded import Decoded
from parity.errors import MalformedError, SchemaError
from parity_online.call import Call
from parity_online.columns import read_body, require_fitting, score
from parity_online.problems import Answer, ProblemError, json_answer, public_message

MEDIA_TYPE = "application/vnd.apache.arrow.stream"


async def answer(call: Call, body: bytes) -> Answer:
    """The answer to one stream.

    Raises:
        MalformedError: it is no stream.
        ProblemError: its columns do not fit the handler's inputs, or the model is not ready.
        QueueFullError, DeadlineExceededError, DrainingError: see `parity_online.driver`.
    """
    if not body:
        raise MalformedError("the body is empty: expected an Arrow IPC stream")
    inputs = call.model.loaded.inputs
    most_rows = call.model.settings.queue_rows

    def read() -> Decoded:
        table = arrow.decode_ipc(body, most_rows=most_rows, most_bytes=call.body_limit_bytes)
        return arrow.decode_table(inputs, table)

    try:
        decoded = await read_body(len(body), read)
    except SchemaError as exc:
        raise ProblemError(400, "malformed", f"model {call.model.name!r}: {exc}") from exc
    require_fitting(call, decoded, body)
    result = (await score(call, decoded)).result
    told = tuple(
        replace(error, message=public_message(error, show_failures=call.show_failures))
        for error in result.errors
    )
    more = [(b"x-row-errors", b"%d" % len(told))] if told else []
    found = json_answer(200, arrow.encode_ipc(replace(result, errors=told).to_table()), call.request.id, more)
    found.headers[0] = (b"content-type", MEDIA_TYPE.encode())
    return found
