"""The hot routes as raw ASGI, around the app that serves everything else.

A route of FastAPI costs more than a small model. So inference requests to known models never reach it: one
dictionary lookup of the path, one future, one write. Unknown models, other verbs and other paths go on to the
app, which answers them at leisure.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from urllib.parse import quote

from parity.capture import Origin
from parity_online import logs
from parity_online.compression import read_encoded, write_encoded
from parity_online.keys import CHALLENGE, Keys, is_open, require_same_site, scope_of
from parity_online.models import VERSION_HEADER, Models, Versions
from parity_online.problems import CLIENT_LEFT, Answer, ProblemError, as_problem, new_id
from parity_online.protocols import PROTOCOLS, Call, Protocol
from parity_online.refusal import refuse
from parity_online.request import Receive, Request, Scope, Send, discard_body, read_body, read_headers
from parity_online.served import ServedModel
from parity_online.settings import ServerSettings
from parity_online.spans import Spans
from parity_online.wire import send_answer, sending

logger = logging.getLogger(__name__)

_DISCARD_FACTOR = 4
"""A refused body is read to its end, so that the client sees the answer, up to this many times the limit."""

_LEVELS = {
    500: logging.ERROR,
    504: logging.WARNING,
    # Under overload there are many of these, and the metrics count them.
    429: logging.DEBUG,
    503: logging.DEBUG,
}
"""At which level requests with an error are logged; the others as information."""

App = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Route:
    """Where an inference request goes: a protocol, and a name's versions or one of them."""

    protocol: Protocol
    versions: Versions
    version: str | None = None

    @property
    def name(self) -> str:
        """The protocol's name."""
        return self.protocol.name

    @property
    def nominal(self) -> ServedModel:
        """The model whose settings hold, and whose metrics count, before one has been picked."""
        return self.versions.default if self.version is None else self.versions.version(self.version)

    def pick(self, request: Request) -> ServedModel:
        """The model that answers a request.

        Raises:
            ProblemError: (404) the version that a header asks for is not there; (400) the path asks for
            another.
        """
        version = self.version
        if request.version is not None:
            if version is not None and version != request.version:
                raise ProblemError(
                    400,
                    "header",
                    f"the path asks for version {version!r}, the header {VERSION_HEADER} for "
                    f"{request.version!r}; leave one out",
                )
            version = request.version
        return self.versions.pick(version, request.id)


class FastPath:
    """The outermost ASGI callable.

    Args:
        app: serves whatever is not an inference request to a known model.
        models: the models.
        settings: body limit and the like.
        keys: the API keys that are asked for; None for none.
        spans: exports requests as spans; None does not.
    """

    def __init__(
        self,
        app: App,
        models: Models,
        settings: ServerSettings,
        keys: Keys | None = None,
        spans: Spans | None = None,
    ) -> None:
        self._keys = keys
        self._spans = spans
        self._in_flight: Counter[str] = Counter()
        self._app = app
        self._models = models
        self._settings = settings
        self._routes: dict[str, Route] = {}
        self._raw_routes: dict[bytes, Route] = {}
        self.is_draining = False
        self.body_limit_bytes = settings.body_limit_bytes
        models.subscribe(self._make_routes)

    def _make_routes(self) -> None:
        routes: dict[str, Route] = {}
        raw: dict[bytes, Route] = {}

        def add(path: str, route: Route, **parts: str) -> None:
            routes[path.format(**parts)] = route
            raw[path.format(**{key: quote(part, safe="") for key, part in parts.items()}).encode()] = route

        for name in self._models.names:
            versions = self._models.versions(name)
            for protocol in PROTOCOLS:
                add(protocol.path, Route(protocol, versions), name=name)
                for model in versions.models:
                    route = Route(protocol, versions, model.version)
                    add(protocol.version_path, route, name=name, version=model.version)
        self._routes, self._raw_routes = routes, raw

    def route(self, url: bytes) -> Route | None:
        """The route of a raw URL that is exactly an inference path."""
        return self._raw_routes.get(url)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] == "http" and (scope["method"] == "POST" or scope["method"] == "PUT"):
            route = self._routes.get(scope["path"])
            if route is not None and scope["method"] in route.protocol.verbs:
                await self._serve(route, scope, receive, send)
                return
        if scope["type"] == "http":
            try:
                self._admit(scope)
            except ProblemError as exc:
                await discard_body(receive, self.body_limit_bytes)
                await send_answer(refuse(scope, exc), receive, send)
                return
        await self._app(scope, receive, sending(receive, send))

    def _admit(self, scope: Scope) -> None:
        """Let in whoever may ask the app; `scope["parity.anonymous"]` says that only health may be told.

        Raises:
            ProblemError: (401, 403) see `Keys.require`; (403) a page of another site asks to manage.
        """
        if scope_of(scope["path"]) == "manage":
            require_same_site(scope["headers"])
        if self._keys is None:
            return
        try:
            self._keys.require(scope["headers"], scope_of(scope["path"]))
        except ProblemError:
            if not is_open(scope["path"]):
                raise
            scope["parity.anonymous"] = True

    def identify(self, request: Request) -> None:
        """Let in who has a key, where keys are asked for, and know the client by its name.

        Raises:
            ProblemError: (401, 403) see `Keys.require`.
        """
        if self._keys is not None and not request.is_known:
            request.client = self._keys.require(request.credentials, "infer")
            request.is_known = True

    async def respond(self, route: Route, request: Request, body: bytes, started: float) -> Answer | None:
        """The answer to a request whose headers and body have been read; None when the client has left.

        Args:
            route: where it goes.
            request: what its headers told.
            body: all of it.
            started: when it began, on `time.perf_counter`.
        """
        model = route.nominal
        try:
            self.identify(request)
            # Asked anew: a version may have been replaced while the body arrived.
            versions = self._models.versions(route.versions.name)
            if versions is not route.versions:
                route = replace(route, versions=versions)
            model = route.pick(request)
            self._enter(model, request)
        except ProblemError as exc:
            return self._refuse(route, model, request, exc, time.perf_counter() - started)
        try:
            deadline = time.monotonic() + self._timeout_s(model, request)
            origin = _origin(route, request, started) if model.captures else None
            call = Call(model, request, deadline, self._settings.show_failures, origin, self.body_limit_bytes)
            if request.encoding is not None:
                body = await read_encoded(request, body, self.body_limit_bytes)
            answer = await route.protocol.answer(call, body)
            if request.accepts is not None:
                answer = await write_encoded(request, answer)
        except asyncio.CancelledError:
            if request.is_gone is None or not request.is_gone():
                raise
            seconds = time.perf_counter() - started
            model.metrics.failed(route.name, seconds, CLIENT_LEFT, "client_left")
            if self._spans is not None:
                who = (model.name, model.version)
                self._spans.record(request, who, route.name, CLIENT_LEFT, seconds, "client_left")
            level = logging.INFO if self._settings.access_log else logging.DEBUG
            _log(level, "request_failed", route, model, request, CLIENT_LEFT, seconds, kind="client_left")
            return None
        except Exception as exc:  # noqa: BLE001 - every request gets an answer
            return self._refuse(route, model, request, exc, time.perf_counter() - started)
        finally:
            model.in_flight -= 1
            if model.settings.client_limit is not None:
                self._leave(request)
        seconds = time.perf_counter() - started
        model.metrics.answered(route.name, seconds)
        if self._spans is not None:
            self._spans.record(request, (model.name, model.version), route.name, 200, seconds)
        if self._settings.access_log:
            _log(logging.INFO, "request", route, model, request, 200, seconds)
        if request.trace is not None:
            answer.headers.append(request.trace.response)
        if len(route.versions.models) > 1:
            answer.headers.append((b"x-model-version", model.version.encode("latin-1", "replace")))
        if self.is_draining:
            answer.headers.append((b"connection", b"close"))
        return answer

    async def _serve(self, route: Route, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        request = Request.of(receive)
        try:
            if scope.get("client"):
                request.client = scope["client"][0]
            read_headers(request, scope["headers"])
            self.identify(request)
            timeout_s = self._timeout_s(route.nominal, request)
            body = await read_body(request, receive, self.body_limit_bytes, timeout_s)
        except ProblemError as exc:
            if not request.is_read:
                await discard_body(receive, _DISCARD_FACTOR * self.body_limit_bytes)
            answer = self._refuse(route, route.nominal, request, exc, time.perf_counter() - started)
        else:
            answer = await self.respond(route, request, body, started)
        if answer is not None:
            await send_answer(answer, receive, send)

    def _enter(self, model: ServedModel, request: Request) -> None:
        """Count a request in.

        Raises:
            ProblemError: (429) its client has as many in flight as it may.
        """
        most = model.settings.client_limit
        if most is not None:
            client = request.client or ""
            if self._in_flight[client] >= most:
                raise ProblemError(
                    429,
                    "client_limit",
                    f"client {client!r} has {most} requests in flight, as many as one may; wait for an "
                    "answer before sending more",
                    retry_after_s=1.0,
                )
            self._in_flight[client] += 1
        model.in_flight += 1

    def _leave(self, request: Request) -> None:
        client = request.client or ""
        self._in_flight[client] -= 1
        if not self._in_flight[client]:
            del self._in_flight[client]

    def _timeout_s(self, model: ServedModel, request: Request) -> float:
        most = model.settings.timeout_s
        return most if request.timeout_s is None else min(most, request.timeout_s)

    def _refuse(
        self, route: Route, model: ServedModel, request: Request, error: Exception, seconds: float
    ) -> Answer:
        problem = as_problem(error)
        request_id = request.id if request.id is not None else new_id()
        model.metrics.failed(route.name, seconds, problem.status, problem.kind)
        unforeseen = problem.kind == "internal"
        level = _LEVELS.get(problem.status, logging.INFO)
        if self._settings.access_log:
            level = max(level, logging.INFO)
        request.id = request_id
        if self._spans is not None:
            who = (model.name, model.version)
            self._spans.record(request, who, route.name, problem.status, seconds, problem.kind)
        _log(
            level,
            "request_failed",
            route,
            model,
            request,
            problem.status,
            seconds,
            kind=problem.kind,
            # What is wrong with a row is told to who sent it; a log holds no values.
            error=problem.detail or (problem.kind if problem.status == 400 else str(problem)),
            exc_info=error if unforeseen else None,
        )
        answer = route.protocol.render(
            problem, request_id, show_failures=self._settings.show_failures, close=self.is_draining
        )
        if request.trace is not None:
            answer.headers.append(request.trace.response)
        return _challenged(answer) if problem.status == 401 else answer


def _log(
    level: int,
    event: str,
    route: Route,
    model: ServedModel,
    request: Request,
    status: int,
    seconds: float,
    *,
    kind: str = "",
    error: str = "",
    exc_info: BaseException | None = None,
) -> None:
    """One line about one request."""
    if not logger.isEnabledFor(level):
        return
    form = f"event={event} id=%s model=%s version=%s protocol=%s status=%d seconds=%.6f"
    values: list[object] = [
        logs.text(request.id if request.id is not None else "-"),
        logs.text(model.name),
        logs.text(model.version),
        route.name,
        status,
        seconds,
    ]
    if request.ran is not None:
        form += " batch=%d"
        values.append(request.ran.batch)
        for stage, stage_s in request.ran.stages_s.items():
            form += f" {stage}_s=%.6f"
            values.append(stage_s)
    if request.client is not None:
        form += " client=%s"
        values.append(logs.text(request.client))
    if request.trace is not None:
        form += " trace=%s span=%s"
        values += [request.trace.id, request.trace.span]
        if request.trace.parent:
            form += " parent=%s"
            values.append(request.trace.parent)
    if kind:
        form += " kind=%s"
        values.append(kind)
    if error:
        form += " error=%s"
        values.append(logs.text(error))
    logger.log(level, form, *values, exc_info=exc_info)


def _challenged(answer: Answer) -> Answer:
    """The answer with the header that every 401 needs."""
    if answer.status == 401:
        answer.headers.append((b"www-authenticate", CHALLENGE))
    return answer


def _origin(route: Route, request: Request, started: float) -> Origin:
    """The request as a capture knows it; one without an id gets one, which its answer tells."""
    if request.id is None:
        request.id = new_id()
    return Origin(request.id, route.protocol.wire, time.time_ns(), started)
