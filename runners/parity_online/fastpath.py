"""The hot routes as raw ASGI, around the app that serves everything else.

A route of FastAPI costs more than a small model. So inference requests to known models never reach it: one
dictionary lookup of the path, one future, one write. Unknown models, other verbs and other paths go on to the
app, which answers them at leisure.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from parity_online import logs, predictions, v2
from parity_online.problems import CLIENT_LEFT, Answer, as_problem, new_id, render
from parity_online.request import Receive, Request, Scope, Send, discard_body, read_body, read_headers
from parity_online.served import ServedModel
from parity_online.settings import ServerSettings
from parity_online.wire import send_answer

logger = logging.getLogger(__name__)

_DISCARD_FACTOR = 4
"""A refused body is read to its end, so that the client sees the answer, up to this many times the limit."""

App = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Call:
    """What a protocol needs beside the body.

    Attributes:
        model: the model asked for.
        request: what the headers told.
        deadline: on the loop's clock.
        show_failures: see `ServerSettings`.
    """

    model: ServedModel
    request: Request
    deadline: float
    show_failures: bool


Protocol = Callable[[Call, bytes], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class _Route:
    model: ServedModel
    name: str
    protocol: Protocol


class FastPath:
    """The outermost ASGI callable.

    Args:
        app: serves whatever is not an inference request to a known model.
        models: the models; of several versions of a name the first answers when none is named.
        settings: body limit and the like.
    """

    def __init__(self, app: App, models: Iterable[ServedModel], settings: ServerSettings) -> None:
        self._app = app
        self._settings = settings
        self._routes: dict[str, _Route] = {}
        self.is_draining = False
        for model in models:
            rows = _Route(model, "predictions", predictions.answer)
            tensors = _Route(model, "v2", v2.answer)
            self._routes.setdefault(f"/predictions/{model.name}", rows)
            self._routes[f"/predictions/{model.name}/{model.version}"] = rows
            self._routes.setdefault(f"/v2/models/{model.name}/infer", tensors)
            self._routes[f"/v2/models/{model.name}/versions/{model.version}/infer"] = tensors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] == "http" and scope["method"] == "POST":
            route = self._routes.get(scope["path"])
            if route is not None:
                await self._serve(route, scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _serve(self, route: _Route, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        model = route.model
        request = Request.of(receive)
        try:
            read_headers(request, scope)
            timeout_s = model.settings.timeout_s
            if request.timeout_s is not None and request.timeout_s < timeout_s:
                timeout_s = request.timeout_s
            deadline = asyncio.get_running_loop().time() + timeout_s
            body = await read_body(request, receive, self._settings.body_limit_bytes, timeout_s)
            answer = await route.protocol(Call(model, request, deadline, self._settings.show_failures), body)
            model.metrics.answered(route.name, time.perf_counter() - started)
            if self.is_draining:
                answer.headers.append((b"connection", b"close"))
        except asyncio.CancelledError:
            if request.is_gone is None or not request.is_gone():
                raise
            model.metrics.failed(route.name, time.perf_counter() - started, CLIENT_LEFT, "client_left")
            return
        except Exception as exc:  # noqa: BLE001 - every request gets an answer
            if not request.is_read:
                await discard_body(receive, _DISCARD_FACTOR * self._settings.body_limit_bytes)
            answer = self._refuse(route, request, exc, time.perf_counter() - started)
        await send_answer(answer, receive, send)

    def _refuse(self, route: _Route, request: Request, error: Exception, seconds: float) -> Answer:
        problem = as_problem(error)
        request_id = request.id if request.id is not None else new_id()
        route.model.metrics.failed(route.name, seconds, problem.status, problem.kind)
        unforeseen = problem.kind == "internal"
        level = {500: logging.ERROR, 504: logging.WARNING}.get(problem.status, logging.DEBUG)
        logger.log(
            level,
            "event=request_failed id=%s model=%s protocol=%s status=%d kind=%s seconds=%.4f error=%s",
            logs.text(request_id),
            logs.text(route.model.name),
            route.name,
            problem.status,
            problem.kind,
            seconds,
            logs.text(problem.detail or problem),
            exc_info=error if unforeseen else None,
        )
        return render(problem, request_id, show_failures=self._settings.show_failures, close=self.is_draining)
