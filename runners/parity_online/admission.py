"""Lets requests in and keeps account of them: who asks, how many at once, how each ended and what it took."""

from __future__ import annotations

import logging
import time
from collections import Counter
from dataclasses import replace

from parity.capture import Origin
from parity_online.call import Call
from parity_online.keys import CHALLENGE, Keys
from parity_online.models import Models
from parity_online.problems import CLIENT_LEFT, Answer, ProblemError, as_problem, new_id
from parity_online.request import Request
from parity_online.request_log import log_request
from parity_online.route import Route
from parity_online.served import ServedModel
from parity_online.settings import ServerSettings
from parity_online.spans import Spans

_LEVELS = {
    500: logging.ERROR,
    504: logging.WARNING,
    # Under overload there are many of these, and the metrics count them.
    429: logging.DEBUG,
    503: logging.DEBUG,
}
"""At which level requests with an error are logged; the others as information."""


class Admission:
    """The requests of one server, from their heads to their answers; on the event loop.

    Args:
        models: the models.
        settings: the access log and what failures tell.
        keys: the API keys that are asked for; None for none.
        spans: exports requests as spans; None does not.

    Attributes:
        is_draining: whether answers ask clients to close their connections.
    """

    def __init__(
        self, models: Models, settings: ServerSettings, keys: Keys | None, spans: Spans | None
    ) -> None:
        self._models = models
        self._settings = settings
        self._keys = keys
        self._spans = spans
        self._in_flight: Counter[str] = Counter()
        self.is_draining = False

    def identify(self, request: Request) -> None:
        """Let in who has a key, where keys are asked for, and know the client by its name.

        Raises:
            ProblemError: (401, 403) see `Keys.require`.
        """
        if self._keys is not None and not request.is_known:
            request.client = self._keys.require(request.credentials, "infer")
            request.is_known = True

    def enter(self, route: Route, request: Request, started: float) -> tuple[Route, ServedModel] | Answer:
        """Let a request in and count it; where it goes and who answers it, or why it is refused."""
        model = route.nominal
        try:
            if self._keys is not None:
                self.identify(request)
            # Asked anew: a version may have been replaced while the body arrived.
            versions = self._models.versions(route.versions.name)
            if versions is not route.versions:
                route = replace(route, versions=versions)
            model = route.pick(request)
            if model.settings.client_limit is not None:
                self._enter_client(model.settings.client_limit, request)
        except ProblemError as exc:
            return self.refused(route, model, request, exc, time.perf_counter() - started)
        model.in_flight += 1
        return route, model

    def call(self, route: Route, model: ServedModel, request: Request, started: float) -> Call:
        """What the protocol needs beside the body."""
        deadline = time.monotonic() + self.timeout_s(model, request)
        origin = _origin(route, request, started) if model.captures else None
        return Call(
            model, request, deadline, self._settings.show_failures, origin, self._settings.body_limit_bytes
        )

    def answered(
        self, route: Route, model: ServedModel, request: Request, answer: Answer, started: float
    ) -> Answer:
        """Count an answer, and give it the headers that every one has."""
        seconds = time.perf_counter() - started
        if self._spans is not None:
            self._spans.record(request, (model.name, model.version), route.name, 200, seconds)
        model.metrics.answered(route.name, seconds, request.trace)
        if self._settings.access_log:
            log_request(logging.INFO, "request", route.name, model, request, 200, seconds)
        if request.trace is not None:
            answer.headers.append(request.trace.response)
        if len(route.versions.models) > 1:
            answer.headers.append((b"x-model-version", model.version.encode("latin-1", "replace")))
        if self.is_draining:
            answer.headers.append((b"connection", b"close"))
        return answer

    def left(self, route: Route, model: ServedModel, request: Request, started: float) -> None:
        """Count a request whose client did not wait."""
        seconds = time.perf_counter() - started
        if self._spans is not None:
            who = (model.name, model.version)
            self._spans.record(request, who, route.name, CLIENT_LEFT, seconds, "client_left")
        model.metrics.failed(route.name, seconds, CLIENT_LEFT, "client_left", request.trace)
        level = logging.INFO if self._settings.access_log else logging.DEBUG
        log_request(
            level, "request_failed", route.name, model, request, CLIENT_LEFT, seconds, kind="client_left"
        )

    def refused(
        self, route: Route, model: ServedModel, request: Request, error: Exception, seconds: float
    ) -> Answer:
        """The answer to a request with this error, logged and counted."""
        problem = as_problem(error)
        request_id = request.id if request.id is not None else new_id()
        unforeseen = problem.kind == "internal"
        level = _LEVELS.get(problem.status, logging.INFO)
        if self._settings.access_log:
            level = max(level, logging.INFO)
        request.id = request_id
        if self._spans is not None:
            who = (model.name, model.version)
            self._spans.record(request, who, route.name, problem.status, seconds, problem.kind)
        model.metrics.failed(route.name, seconds, problem.status, problem.kind, request.trace)
        log_request(
            level,
            "request_failed",
            route.name,
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

    def leave(self, model: ServedModel, request: Request) -> None:
        """Count a request out that `enter` let in."""
        model.in_flight -= 1
        if model.settings.client_limit is None:
            return
        client = request.client or ""
        self._in_flight[client] -= 1
        if not self._in_flight[client]:
            del self._in_flight[client]

    def timeout_s(self, model: ServedModel, request: Request) -> float:
        """The time that a request has from now on, in seconds."""
        most = model.settings.timeout_s
        return most if request.timeout_s is None else min(most, request.timeout_s)

    def _enter_client(self, most: int, request: Request) -> None:
        """Count a request of its client.

        Raises:
            ProblemError: (429) the client has as many in flight as it may.
        """
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
