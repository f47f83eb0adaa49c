"""The hot routes as raw ASGI, around the app that serves everything else.

A route of FastAPI costs more than a small model. So inference requests to known models never reach it: one
dictionary lookup of the path, one future, one write. Unknown models, other verbs and other paths go on to the
app, which answers them at leisure.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

from parity_online.admission import Admission
from parity_online.compression import is_worth_encoding, read_encoded, write_encoded
from parity_online.gathering import Room
from parity_online.keys import (
    Keys,
    is_local,
    is_loopback,
    is_open,
    require_local_host,
    require_same_site,
    scope_of,
)
from parity_online.known_heads import KnownHeads
from parity_online.models import Models
from parity_online.problems import Answer, ProblemError
from parity_online.protocols import PROTOCOLS, Call
from parity_online.refusal import refuse
from parity_online.request import Receive, Request, Scope, Send, discard_body, read_body, read_headers
from parity_online.route import Route
from parity_online.served import ServedModel
from parity_online.settings import ServerSettings
from parity_online.spans import Spans
from parity_online.wire import send_answer, sending
from parity_online.works import Texts

logger = logging.getLogger(__name__)

_DISCARD_FACTOR = 4
"""A refused body is read to its end, so that the client sees the answer, up to this many times the limit."""

App = Callable[[Scope, Receive, Send], Awaitable[None]]
Tell = Callable[[Answer | None], None]


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
        self.admission = Admission(models, settings, keys, spans)
        self._encoding: set[asyncio.Task[None]] = set()
        self._app = app
        self._models = models
        self._settings = settings
        self._routes: dict[str, Route] = {}
        self._raw_routes: dict[bytes, Route] = {}
        self.known_heads = KnownHeads()
        self.room = Room()
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
        self.known_heads.clear()

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
            ProblemError: (401, 403) see `Keys.require`; (403) a page of another site, or one that gives its
            own name our address, asks to manage, or for the status page.
        """
        if scope_of(scope["path"]) == "manage":
            require_same_site(scope["headers"])
        if self._keys is None and is_loopback(self._settings.host) and is_local(scope["path"]):
            require_local_host(scope["headers"])
        if self._keys is None:
            return
        try:
            self._keys.require(scope["headers"], scope_of(scope["path"]))
        except ProblemError:
            if not is_open(scope["path"]):
                raise
            scope["parity.anonymous"] = True

    async def respond(self, route: Route, request: Request, body: bytes, started: float) -> Answer | None:
        """The answer to a request whose headers and body have been read; None when the client has left.

        Args:
            route: where it goes.
            request: what its headers told.
            body: all of it.
            started: when it began, on `time.perf_counter`.
        """
        entered = self.admission.enter(route, request, started)
        if isinstance(entered, Answer):
            return entered
        route, model = entered
        try:
            call = self.admission.call(route, model, request, started)
            if request.encoding is not None:
                body = await read_encoded(request, body, self.body_limit_bytes)
            answer = await route.protocol.answer(call, body)
            if request.accepts is not None:
                answer = await write_encoded(request, answer)
        except asyncio.CancelledError:
            if request.is_gone is None or not request.is_gone():
                raise
            self.admission.left(route, model, request, started)
            return None
        except Exception as exc:  # noqa: BLE001 - every request gets an answer
            return self.admission.refused(route, model, request, exc, time.perf_counter() - started)
        finally:
            self.admission.leave(model, request)
        return self.admission.answered(route, model, request, answer, started)

    def respond_soon(self, route: Route, request: Request, body: bytes, started: float, tell: Tell) -> bool:
        """As `respond`, without a coroutine and a future, for a request of one row that needs neither.

        Args:
            route: where it goes.
            request: what its headers told.
            body: all of it.
            started: when it began, on `time.perf_counter`.
            tell: given the answer, now or later; None when the client has left.

        Returns:
            False where the request needs `respond`; `tell` is then not called.
        """
        one_row = route.protocol.one_row
        if one_row is None or request.encoding is not None:
            return False
        entered = self.admission.enter(route, request, started)
        if isinstance(entered, Answer):
            tell(entered)
            return True
        route, model = entered
        asked = _Asked(self, route, model, request, started, tell)
        try:
            call = asked.call = self.admission.call(route, model, request, started)
            work = one_row.read(call, body)
            if work is None:
                self.admission.leave(model, request)
                return False
            model.driver.offer(
                asked,
                work,
                key=work.key,
                deadline=call.deadline,
                priority=request.priority,
                is_gone=request.is_gone,
            )
        except Exception as exc:  # noqa: BLE001 - every request gets an answer
            asked.told(None, exc)
        return True

    def end(self, asked: _Asked, texts: Texts | None, error: BaseException | None) -> None:
        """Answer a request that `respond_soon` took, now that its row has been run or has failed."""
        route, model, request = asked.route, asked.model, asked.request
        self.admission.leave(model, request)
        if isinstance(error, asyncio.CancelledError):
            self.admission.left(route, model, request, asked.started)
            asked.tell(None)
            return
        try:
            if error is not None:
                raise error
            assert texts is not None, "an item that did not fail has an answer"
            assert route.protocol.one_row is not None, "`respond_soon` has looked"
            answer = route.protocol.one_row.tell(asked.call, texts)
        except Exception as exc:  # noqa: BLE001 - every request gets an answer
            asked.tell(
                self.admission.refused(route, model, request, exc, time.perf_counter() - asked.started)
            )
            return
        if request.accepts is not None and is_worth_encoding(answer):
            task = asyncio.create_task(self._end_encoded(asked, answer))
            self._encoding.add(task)
            task.add_done_callback(self._encoding.discard)
            return
        asked.tell(self.admission.answered(route, model, request, answer, asked.started))

    async def _end_encoded(self, asked: _Asked, answer: Answer) -> None:
        told: Answer | None = None
        who = (asked.route, asked.model, asked.request)
        try:
            try:
                encoded = await write_encoded(asked.request, answer)
            except Exception as exc:  # noqa: BLE001 - every request gets an answer
                told = self.admission.refused(*who, exc, time.perf_counter() - asked.started)
            else:
                told = self.admission.answered(*who, encoded, asked.started)
        finally:
            asked.tell(told)

    async def _serve(self, route: Route, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        request = Request.of(receive)
        try:
            if scope.get("client"):
                request.client = scope["client"][0]
            read_headers(request, scope["headers"])
            self.admission.identify(request)
            timeout_s = self.admission.timeout_s(route.nominal, request)
            body = await read_body(request, receive, self.body_limit_bytes, timeout_s)
        except ProblemError as exc:
            if not request.is_read:
                await discard_body(receive, _DISCARD_FACTOR * self.body_limit_bytes)
            answer = self.admission.refused(route, route.nominal, request, exc, time.perf_counter() - started)
        else:
            answer = await self.respond(route, request, body, started)
        if answer is not None:
            await send_answer(answer, receive, send)


class _Asked:
    """A request on its way through `FastPath.respond_soon`, and the promise that its row's answer is told to.

    No future: that one's listener would wait for the loop's next turn.
    """

    __slots__ = ("_fast", "_is_told", "call", "model", "request", "route", "started", "tell")

    call: Call

    def __init__(
        self, fast: FastPath, route: Route, model: ServedModel, request: Request, started: float, tell: Tell
    ) -> None:
        self._fast = fast
        self._is_told = False
        self.route = route
        self.model = model
        self.request = request
        self.started = started
        self.tell = tell

    def done(self) -> bool:
        """See `parity_online.promise.Promise`."""
        return self._is_told

    def set_result(self, result: Any, /) -> None:
        """See `parity_online.promise.Promise`."""
        self._is_told = True
        self.told(result, None)

    def set_exception(self, exception: BaseException, /) -> None:
        """See `parity_online.promise.Promise`."""
        self._is_told = True
        self.told(None, exception)

    def cancel(self) -> None:
        """See `parity_online.promise.Promise`."""
        if not self._is_told:
            self.set_exception(asyncio.CancelledError())

    def told(self, texts: Any, error: BaseException | None) -> None:
        """Its batch has run, or it has none; never raises, since others of the batch come after it."""
        try:
            self._fast.end(self, texts, error)
        except Exception as exc:
            logger.error("event=respond_failed", exc_info=exc)
            self.tell(None)
