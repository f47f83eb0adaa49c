"""Answers to requests that reach no model: wrong paths and verbs, missing keys, what the app refuses."""

from __future__ import annotations

import logging

from parity_online import logs, torchserve
from parity_online.keys import CHALLENGE
from parity_online.problems import Answer, as_problem, new_id, render
from parity_online.request import Scope, id_of

logger = logging.getLogger(__name__)

_LEVELS = {429: logging.DEBUG, 503: logging.DEBUG}
"""Under overload there are many of these; the others are information, and what nobody foresaw an error."""


def refuse(scope: Scope, error: Exception) -> Answer:
    """The answer to a request with this error, in the form of the protocol that its path belongs to.

    Logs one line, `event=request_failed`, with the id that the answer tells.

    Args:
        scope: the request, as ASGI has it.
        error: what is wrong with it.
    """
    problem = as_problem(error)
    request_id = next((id_of(value) for name, value in scope["headers"] if name == b"x-request-id"), None)
    request_id = request_id if request_id is not None else new_id()
    path = str(scope["path"])
    unforeseen = problem.kind == "internal"
    logger.log(
        logging.ERROR if unforeseen else _LEVELS.get(problem.status, logging.INFO),
        "event=request_failed id=%s method=%s path=%s status=%d client=%s kind=%s",
        logs.text(request_id),
        logs.text(scope["method"]),
        logs.text(path),
        problem.status,
        logs.text(scope["client"][0] if scope.get("client") else "-"),
        problem.kind,
        exc_info=error if unforeseen else None,
    )
    as_torchserve = path.startswith(torchserve.PREFIXES)
    answer = (torchserve.render if as_torchserve else render)(problem, request_id)
    if problem.status == 401:
        answer.headers.append((b"www-authenticate", CHALLENGE))
    return answer
