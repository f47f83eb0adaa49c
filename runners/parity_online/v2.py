"""`POST /v2/models/{name}[/versions/{version}]/infer`: Open Inference Protocol V2, in JSON or bytes.

The protocol has no form for the error of one row, so a bad row fails its request: 400 for an invalid or
rejected row, 500 for one that failed, naming the row and the field. `parameters.timeout` is the request's
time in microseconds, as Triton has it; the sooner of it and `X-Request-Timeout` counts.

With the header `Inference-Header-Content-Length` tensors follow the JSON as bytes (the binary tensor
extension); 0 says that the body is one row of a model's one input.
"""

from __future__ import annotations

import time

from parity.codec import oip
from parity.codec.rejection import brief_json
from parity.errors import RowsError, SchemaError
from parity_online.call import Call
from parity_online.columns import read_body, require_fitting, require_good, score
from parity_online.problems import Answer, ProblemError, json_answer, rows_problem
from parity_online.request import Request, require_json

LENGTH_HEADER = "Inference-Header-Content-Length"
_ANY_TYPE = ("application/octet-stream", "application/x-www-form-urlencoded")
"""What clients send without meaning it: raw requests, and `curl -d` as the protocol's documents write it."""


async def answer(call: Call, body: bytes) -> Answer:
    """The answer to one body.

    Raises:
        MalformedError: it is not a V2 inference request.
        ProblemError: it does not fit the model, a row of it is bad, or the model is not ready.
        QueueFullError, DeadlineExceededError, DrainingError: see `parity_online.driver`.
    """
    model = call.model
    model.require_ready()
    _require_type(call.request)
    length = call.request.json_length
    inputs, outputs = model.loaded.inputs, model.loaded.outputs
    most = model.settings.queue_rows
    try:
        asked = await read_body(
            len(body),
            lambda: oip.decode_request(inputs, body, outputs=outputs, json_length=length, most_rows=most),
        )
    except SchemaError as exc:
        raise ProblemError(400, "malformed", f"model {model.name!r}: {exc}") from exc
    require_fitting(call, asked.decoded, body)
    require_good(call, asked.decoded)
    scored = await score(call, asked.decoded, deadline_of(call, asked.parameters.get("timeout")))
    answers = scored.whole(call)
    try:
        text, length = oip.encode_binary_response(answers, asked, model.name, model.version)
    except RowsError as exc:
        raise rows_problem(exc.errors, asked.decoded.num_rows, show_failures=call.show_failures) from exc
    except SchemaError as exc:
        raise ProblemError(400, "malformed", f"model {model.name!r}: {exc}") from exc
    found = json_answer(200, text, call.request.id)
    if length is not None:
        found.headers[0] = (b"content-type", b"application/octet-stream")
        found.headers.append((LENGTH_HEADER.lower().encode(), b"%d" % length))
    return found


def deadline_of(call: Call, timeout_us: object) -> float:
    """The call's deadline, or a sooner one that its parameter `timeout` asks for.

    Raises:
        ProblemError: (400) the parameter is not a number of microseconds.
    """
    if timeout_us is None:
        return call.deadline
    if isinstance(timeout_us, bool) or not isinstance(timeout_us, int | float) or timeout_us < 0:
        raise ProblemError(
            400,
            "malformed",
            f"parameters.timeout {brief_json(timeout_us)}: expected a number of microseconds",
        )
    if timeout_us == 0:  # Triton's "no timeout of my own"
        return call.deadline
    return min(call.deadline, time.monotonic() + timeout_us / 1_000_000)


def _require_type(request: Request) -> None:
    if request.json_length is None and request.media_type not in _ANY_TYPE:
        require_json(request)
