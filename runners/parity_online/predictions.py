"""`POST /predictions/{name}[/{version}]`: rows as JSON objects, each answered for itself.

Body                Answer
one object          200 and one object; 400 when the row is invalid or rejected, 500 when a stage failed on it
a list of objects   200 and a list of the same length and order, the answer of a bad row being
                    {"error": {"row", "kind", "field", "stage", "message"}}; `X-Row-Errors` counts them.
                    This holds even when every row is bad: the request as such was answered. 400 when empty.
Arrow IPC stream    see `parity_online.arrow_body`
raw bytes, a form   one row, as an object is; see `parity.codec.form_body`
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, cast

from parity.codec.decoded import RowInvalidError
from parity.codec.form_body import expected_body, file_field, form_row, raw_row
from parity.codec.json_text import loads_body
from parity.codec.rejection import brief_json
from parity.codec.rows import RowDecoder, dumps, loads
from parity.codec.values import has_image_signature
from parity.errors import MalformedError, RowError
from parity_online import arrow_body, logs
from parity_online.call import Call
from parity_online.columns import LARGE_BODY_BYTES, no_rows, read_body
from parity_online.problems import Answer, ProblemError, json_answer, new_id, row_entry, rows_problem
from parity_online.request import require_json
from parity_online.works import RowsWork, Texts

logger = logging.getLogger(__name__)

_JSON_TYPES = (b"application/json", b"")
"""How a request says that its body is JSON, or says nothing; `require_json` knows more spellings."""


async def answer(call: Call, body: bytes) -> Answer:
    """The answer to one body.

    Raises:
        MalformedError: it is not JSON.
        ProblemError: it is neither an object nor a list of objects, or its one row is bad, or the model is
            not ready.
        QueueFullError, DeadlineExceededError, DrainingError: see `parity_online.driver`.
    """
    model = call.model
    model.require_ready()
    media = call.request.media_type
    if media == arrow_body.MEDIA_TYPE:
        return await arrow_body.answer(call, body)
    if _is_file(call, media, body):
        inputs = model.loaded.inputs
        if media == "multipart/form-data":
            content_type = call.request.content_type.decode("latin-1")
            return await _answer_row(call, body, lambda: form_row(inputs, body, content_type))
        return await _answer_row(call, body, lambda: raw_row(inputs, body))
    require_json(call.request)
    value: Any = await read_body(len(body), lambda: _json(call, media, body))
    if isinstance(value, dict):
        return await _answer_row(call, body, lambda: cast("dict[str, Any]", value))
    if isinstance(value, list):
        return await _answer_list(call, cast("list[Any]", value), body)
    raise ProblemError(
        400,
        "malformed",
        f"the body is {brief_json(value)}: expected {expected_body(call.model.loaded.inputs)}",
    )


def read_row(call: Call, body: bytes) -> RowsWork | None:
    """The row of a small JSON body that is one object; None where it may be anything else.

    Raises:
        MalformedError, ProblemError: see `answer`.
    """
    if body[:1] != b"{" or len(body) > LARGE_BODY_BYTES:
        return None
    if call.request.content_type not in _JSON_TYPES or call.request.json_length is not None:
        return None
    call.model.require_ready()
    return _row_work(call, loads(body), body)


def tell_row(call: Call, texts: Texts) -> Answer:
    """The answer to a request of one row.

    Raises:
        ProblemError: the row has none.
    """
    call.request.ran = texts.ran
    text = texts.rows[0]
    if isinstance(text, RowError):
        raise rows_problem([text], show_failures=call.show_failures, batch=texts.batch)
    return json_answer(200, text, call.request.id)


def _row_work(call: Call, value: dict[str, Any], body: bytes) -> RowsWork:
    try:
        row = call.model.decoder.decode_one(value)
    except RowInvalidError as exc:
        errors = [exc.at(0)]
        call.refuse(errors, body)
        raise rows_problem(errors, show_failures=call.show_failures) from None
    return RowsWork((row,), call.origin, key=call.model.shapes.of_row(row))


async def _answer_row(call: Call, body: bytes, value: Callable[[], dict[str, Any]]) -> Answer:
    driver = call.model.require_ready()
    work = await read_body(len(body), lambda: _row_work(call, value(), body))
    texts = await driver.submit(
        work,
        key=work.key,
        deadline=call.deadline,
        priority=call.request.priority,
        is_gone=call.request.is_gone,
    )
    return tell_row(call, cast("Texts", texts))


def _is_file(call: Call, media: str, body: bytes) -> bool:
    """Whether the body is a file, or a form of them, and not JSON; `curl -T` says nothing of the type."""
    if media == "":
        return has_image_signature(body[:12]) and file_field(call.model.loaded.inputs) is not None
    return media in ("multipart/form-data", "application/octet-stream") or media.startswith("image/")


def _json(call: Call, media: str, body: bytes) -> Any:
    try:
        return loads_body(body, expected_body(call.model.loaded.inputs))
    except MalformedError as exc:
        if media or not body.strip() or file_field(call.model.loaded.inputs) is None:
            raise
        hint = "a file of no known image kind needs Content-Type: application/octet-stream"
        raise MalformedError(f"{exc}; {hint}") from None


async def _answer_list(call: Call, objects: list[Any], body: bytes) -> Answer:
    model = call.model
    policy = model.settings
    if not objects:
        raise no_rows(policy.queue_rows)
    if len(objects) > policy.queue_rows:
        raise ProblemError(
            413,
            "too_many_rows",
            f"the body has {len(objects)} rows, the queue holds {policy.queue_rows}; send "
            "fewer rows at a time, or score them with `parity batch`",
        )
    entries: list[bytes | RowError] = [b""] * len(objects)
    good, places = await read_body(len(body), lambda: _decoded(model.decoder, objects, entries))
    if len(good) < len(objects):
        call.refuse([entry for entry in entries if isinstance(entry, RowError)], body)
    works = [
        RowsWork(tuple(good[at] for at in rows), call.origin, [places[at] for at in rows], key)
        for rows, key in model.shapes.cut_rows(good, policy.most_rows)
    ]
    answers = await model.driver.submit_parts(
        [(work, len(work.rows)) for work in works],
        keys=[work.key for work in works],
        deadline=call.deadline,
        priority=call.request.priority,
        is_gone=call.request.is_gone,
    )
    failed: list[tuple[RowError, int]] = []
    for work, texts in zip(works, cast("list[Texts]", answers), strict=True):
        call.request.ran = texts.ran
        for place, text in zip(work.places or (), texts.rows, strict=True):
            if isinstance(text, RowError):
                text = text.at(place)
                if text.kind == "failed":
                    failed.append((text, texts.batch))
            entries[place] = text
    return _list_answer(call, entries, failed)


def _decoded(
    decoder: RowDecoder, objects: list[Any], entries: list[bytes | RowError]
) -> tuple[list[Any], list[int]]:
    """The rows that fit, and their places; the errors of the others go into `entries`."""
    good: list[Any] = []
    places: list[int] = []
    for place, value in enumerate(objects):
        try:
            good.append(decoder.decode_one(value))
            places.append(place)
        except RowInvalidError as exc:
            entries[place] = exc.at(place)
    return good, places


def _list_answer(call: Call, entries: list[bytes | RowError], failed: list[tuple[RowError, int]]) -> Answer:
    request_id = call.request.id
    errors = 0
    texts: list[bytes] = []
    for entry in entries:
        if isinstance(entry, RowError):
            errors += 1
            texts.append(dumps({"error": row_entry(entry, show_failures=call.show_failures)}))
        else:
            texts.append(entry)
    if failed:
        request_id = request_id or new_id()
        for error, batch in failed:
            logger.error(
                "event=row_failed id=%s model=%s row=%d batch=%d error=%s",
                logs.text(request_id),
                logs.text(call.model.name),
                error.row,
                batch,
                logs.text(logs.failure(error)),
            )
    more = [(b"x-row-errors", b"%d" % errors)] if errors else []
    return json_answer(200, b"[" + b",".join(texts) + b"]", request_id, more)
