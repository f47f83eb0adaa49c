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

from parity.capture import Origin
from parity_online import logs, predictions, v2
from parity_online.problems import CLIENT_LEFT, Answer, ProblemError, as_problem, new_id, render
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
        deadline: on `time.monotonic`.
        show_failures: see `ServerSettings`.
        origin: the request as a capture knows it; None where nothing is captured.
    """

    model: ServedModel
    request: Request
    deadline: float
    show_failures: bool
    origin: Origin | None = None


Protocol = Callable[[Call, bytes], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Route:
    """Where an inference request goes, and the wire form that it comes in."""

    model: ServedModel
    name: str
    protocol: Protocol
    wire: str


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
        self._routes: dict[str, Route] = {}
        self.is_draining = False
        self.body_limit_bytes = settings.body_limit_bytes
        for model in models:
            rows = Route(model, "predictions", predictions.answer, "rows")
            tensors = Route(model, "v2", v2.answer, "oip")
            self._routes.setdefault(f"/predictions/{model.name}", rows)
            self._routes[f"/predictions/{model.name}/{model.version}"] = rows
            self._routes.setdefault(f"/v2/models/{model.name}/infer", tensors)
            self._routes[f"/v2/models/{model.name}/versions/{model.version}/infer"] = tensors
        self._raw_routes = {path.encode(): route for path, route in self._routes.items()}

    def route(self, url: bytes) -> Route | None:
        """The route of a raw URL that is exactly an inference path."""
        return self._raw_routes.get(url)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] == "http" and scope["method"] == "POST":
            route = self._routes.get(scope["path"])
            if route is not None:
                await self._serve(route, scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def respond(self, route: Route, request: Request, body: bytes, started: float) -> Answer | None:
        """The answer to a request whose headers and body have been read; None when the client has left.

        Args:
            route: where it goes.
            request: what its headers told.
            body: all of it.
            started: when it began, on `time.perf_counter`.
        """
        model = route.model
        try:
            deadline = time.monotonic() + self._timeout_s(route, request)
            origin = _origin(route, request, started) if model.captures else None
            call = Call(model, request, deadline, self._settings.show_failures, origin)
            answer = await route.protocol(call, body)
        except asyncio.CancelledError:
            if request.is_gone is None or not request.is_gone():
                raise
            model.metrics.failed(route.name, time.perf_counter() - started, CLIENT_LEFT, "client_left")
            return None
        except Exception as exc:  # noqa: BLE001 - every request gets an answer
            return self._refuse(route, request, exc, time.perf_counter() - started)
        model.metrics.answered(route.name, time.perf_counter() - started)
        if self.is_draining:
            answer.headers.append((b"connection", b"close"))
        return answer

    async def _serve(self, route: Route, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        request = Request.of(receive)
        try:
            read_headers(request, scope["headers"])
            timeout_s = self._timeout_s(route, request)
            body = await read_body(request, receive, self.body_limit_bytes, timeout_s)
        except ProblemError as exc:
            if not request.is_read:
                await discard_body(receive, _DISCARD_FACTOR * self.body_limit_bytes)
            answer = self._refuse(route, request, exc, time.perf_counter() - started)
        else:
            answer = await self.respond(route, request, body, started)
        if answer is not None:
            await send_answer(answer, receive, send)

    def _timeout_s(self, route: Route, request: Request) -> float:
        most = route.model.settings.timeout_s
        return most if request.timeout_s is None else min(most, request.timeout_s)

    def _refuse(self, route: Route, request: Request, error: Exception, seconds: float) -> Answer:
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


def _origin(route: Route, request: Request, started: float) -> Origin:
    """The request as a capture knows it; one without an id gets one, which its answer tells."""
    if request.id is None:
        request.id = new_id()
    return Origin(request.id, route.wire, time.time_ns(), started)
