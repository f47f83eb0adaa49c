"""Everything but inference: health, metadata, metrics, documentation, and errors for wrong paths.

Inference requests reach this app only when something is wrong with their path or verb.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
from collections.abc import Mapping
from typing import Any, cast

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match, Route
from starlette.types import Scope

from parity.codec.json_text import is_blank, loads
from parity.codec.rejection import brief_json
from parity.errors import MalformedError
from parity_online import docs_page, metrics, openapi, refusal, status, torchserve, triton, v1
from parity_online.models import Models
from parity_online.problems import Answer, ProblemError, headers_of
from parity_online.protocols import PROTOCOLS
from parity_online.repository import Repository
from parity_online.request import left_early, slow_body
from parity_online.served import ServedModel

SERVER_NAME = "parity"
EXTENSIONS = ("binary_tensor_data", "model_configuration", "model_repository", "parameters", "statistics")

_VARY = {"vary": "Accept"}
_MANAGEMENT_BODY_BYTES = 65536
_MANAGEMENT_BODY_S = 5.0


def build_app(models: Models, families: metrics.Metrics, repository: Repository | None = None) -> FastAPI:
    """The app for these models; its routes are documented on /docs.

    Args:
        models: what is served.
        families: what /metrics shows.
        repository: loads and unloads models over HTTP; None where that is off.
    """
    version = importlib.metadata.version("parity")
    app = FastAPI(
        title="parity",
        version=version,
        summary="One handler, many runners, proven equal",
        docs_url=None,
        redoc_url=None,
    )
    _add_health(app, models)
    _add_metadata(app, models, version)
    _add_repository(app, models, repository)
    v1.add_routes(app, models)
    torchserve.add_routes(app, models)
    _add_wrong_turns(app, models)
    models.subscribe(lambda: setattr(app, "openapi_schema", None))
    app.openapi = lambda: openapi.document(app, models)

    @app.get("/docs", tags=["operations"], summary="These routes as a page")
    def docs() -> Response:
        return Response(docs_page.page(app.openapi()), media_type="text/html; charset=utf-8")

    @app.get("/", tags=["operations"], summary="The status page")
    def show_status() -> Response:
        headers = {"content-security-policy": status.policy(), "referrer-policy": "no-referrer"}
        return Response(status.page(), media_type="text/html; charset=utf-8", headers=headers)

    @app.get("/status.json", tags=["operations"], summary="What the status page shows")
    async def status_json() -> Response:
        return _json(status.snapshot(models, families))

    @app.get("/form.json", tags=["operations"], summary="The fields of a model's requests, with an example")
    async def form_json(name: str, version: str | None = None) -> Response:
        return _json(status.form(models.find(name, version)))

    @app.get("/metrics", tags=["operations"], summary="Prometheus metrics", response_class=Response)
    def show_metrics(request: Request) -> Response:
        if metrics.asks_for_open(request.headers.get("accept", "")):
            return Response(families.open_text(), media_type=metrics.OPEN_CONTENT_TYPE, headers=_VARY)
        return Response(families.text(), media_type=metrics.CONTENT_TYPE, headers=_VARY)

    _add_heads(app)

    @app.exception_handler(ProblemError)
    @app.exception_handler(HTTPException)
    @app.exception_handler(RequestValidationError)
    @app.exception_handler(Exception)
    async def refuse(request: Request, error: Exception) -> Response:
        answer = refusal.refuse(request.scope, _foreseen(request, error))
        if answer.status == 405:
            answer.headers.append((b"allow", ", ".join(_methods(app, request.scope)).encode()))
        if answer.status == 408:  # what still comes of the body would be taken for it, and no request be read
            answer.headers.append((b"connection", b"close"))
        return _response(answer)

    return app


def _add_heads(app: FastAPI) -> None:
    """What can be got can be asked for its head: RFC 9110, 9.1."""
    for route in [route for route in app.routes if isinstance(route, APIRoute)]:
        if "GET" in (route.methods or ()):
            app.add_api_route(route.path, route.endpoint, methods=["HEAD"], include_in_schema=False)


def _add_health(app: FastAPI, models: Models) -> None:
    @app.get("/v2/health/live", tags=["health"], summary="Whether the process serves at all")
    def live() -> Response:
        return _json({"live": True})

    @app.get("/v2/health/ready", tags=["health"], summary="Whether every model takes requests")
    def ready(request: Request) -> Response:
        waiting = models.waiting()
        if not waiting:
            return _json({"ready": True})
        if _is_anonymous(request):
            return _json({"ready": False, "error": "not ready"}, 503)
        reasons = "; ".join(f"model {name!r}: {reason}" for name, reason in waiting.items())
        return _json({"ready": False, "error": f"not ready: {reasons}", "models": waiting}, 503)

    @app.get("/ping", tags=["health"], summary="TorchServe's health check")
    def ping() -> Response:
        is_ready = not models.waiting()
        return _json({"status": "Healthy" if is_ready else "Unhealthy"}, 200 if is_ready else 503)

    @app.get("/v2/models/{name}/ready", tags=["health"], summary="Whether a model takes requests")
    @app.get("/v2/models/{name}/versions/{version}/ready", tags=["health"])
    def model_ready(request: Request, name: str, version: str | None = None) -> Response:
        try:
            model = models.find(name, version)
        except ProblemError:
            if _is_anonymous(request):
                raise ProblemError(404, "not_found", "no such model") from None
            raise
        if model.state == "ready":
            return _json({"name": model.name, "ready": True})
        reason = "" if _is_anonymous(request) else f": {model.reason}"
        message = f"model {model.name!r} is not ready{reason}"
        return _json({"name": model.name, "ready": False, "error": message}, 503)


def _is_anonymous(request: Request) -> bool:
    """Whether keys are asked for, and this request has none: it is told whether, and not why."""
    return request.scope.get("parity.anonymous", False)


def _add_metadata(app: FastAPI, models: Models, version: str) -> None:
    @app.get("/v2", tags=["metadata"], summary="The server's name, version and extensions")
    def server() -> Response:
        return _json({"name": SERVER_NAME, "version": version, "extensions": EXTENSIONS})

    @app.get("/v2/models", tags=["metadata"], summary="The models' names")
    def names() -> Response:
        return _json({"models": models.names})

    # Before the model of that name: Triton's statistics of all models.
    triton.add_statistics(app, models)

    @app.get("/v2/models/{name}", tags=["metadata"], summary="A model's tensors")
    @app.get("/v2/models/{name}/versions/{version}", tags=["metadata"])
    def metadata(name: str, version: str | None = None) -> Response:
        model = models.find(name, version)
        return _json(
            {
                "name": model.name,
                "versions": [other.version for other in models.versions(name).models],
                "platform": "parity_python",
                "inputs": model.input_tensors,
                "outputs": model.output_tensors,
            }
        )

    @app.get(
        "/v2/models/{name}/config", tags=["metadata"], summary="A model's configuration, as Triton writes it"
    )
    @app.get("/v2/models/{name}/versions/{version}/config", tags=["metadata"])
    def config(name: str, version: str | None = None) -> Response:
        return _json(model_config(models.find(name, version)))


def _add_repository(app: FastAPI, models: Models, repository: Repository | None) -> None:
    """Triton's model repository extension."""

    def managed() -> Repository:
        if repository is None:
            raise ProblemError(
                403,
                "management_off",
                "loading and unloading over HTTP is off; start the server with --management",
            )
        return repository

    @app.post(
        "/v2/repository/index", tags=["repository"], summary="Every version that is known, with its state"
    )
    async def index(request: Request) -> Response:
        asked = await _object(request)
        entries = triton.repository_index(models) if repository is None else repository.index()
        ready = asked.get("ready", False)
        if not isinstance(ready, bool):
            raise ProblemError(400, "malformed", f"ready is {brief_json(ready)}; expected true or false")
        if ready:
            entries = [entry for entry in entries if entry["state"] == "READY"]
        return Response(orjson.dumps(entries), media_type="application/json")

    @app.post("/v2/repository/models/{name}/load", tags=["repository"], summary="Take over what is there now")
    async def load(name: str, request: Request) -> Response:
        if (await _object(request)).get("parameters"):
            raise ProblemError(
                400, "malformed", "parameters of a load are not supported; change the files in the repository"
            )
        await managed().load(name)
        return _json({})

    @app.post("/v2/repository/models/{name}/unload", tags=["repository"], summary="Serve a model no more")
    async def unload(name: str, request: Request) -> Response:
        await _object(request)
        await managed().unload(name)
        return _json({})


async def _object(request: Request) -> dict[str, Any]:
    """The body as a JSON object; an empty one stands for none.

    Raises:
        ProblemError: (400) it is something else; (408) it does not come; (413) it is far larger than such a
            request needs.
    """
    body = b""
    try:
        async with asyncio.timeout(_MANAGEMENT_BODY_S):
            async for part in request.stream():
                body += part
                if len(body) > _MANAGEMENT_BODY_BYTES:
                    told = f"the body is larger than {_MANAGEMENT_BODY_BYTES} bytes"
                    raise ProblemError(413, "too_large", told)
    except TimeoutError:
        raise slow_body(_MANAGEMENT_BODY_S, len(body)) from None
    except ClientDisconnect:
        raise left_early() from None
    if is_blank(body):
        return {}
    try:
        value = loads(body)
    except MalformedError as exc:
        raise ProblemError(400, "malformed", f"the body is {exc}") from exc
    if not isinstance(value, dict):
        raise ProblemError(400, "malformed", "the body is not a JSON object")
    return cast("dict[str, Any]", value)


def _add_wrong_turns(app: FastAPI, models: Models) -> None:
    """The inference routes for names and versions that no model has; known ones never come here."""

    def unknown(name: str, version: str | None = None) -> Response:
        model = models.find(name, version)
        raise ProblemError(
            404, "not_found", f"model {model.name!r} is served under its exact name only; see GET /v2/models"
        )

    for protocol in PROTOCOLS:
        for path in (protocol.path, protocol.version_path):
            app.add_api_route(path, unknown, methods=list(protocol.verbs), include_in_schema=False)


def model_config(model: ServedModel) -> dict[str, Any]:
    """A model's configuration in the words of Triton's model configuration extension."""
    settings = model.settings
    return {
        "name": model.name,
        "platform": "parity_python",
        "backend": "python",
        "version_policy": {"specific": {"versions": [model.version]}},
        "max_batch_size": settings.most_rows,
        "input": [_triton_tensor(tensor) for tensor in model.input_tensors],
        "output": [_triton_tensor(tensor) for tensor in model.output_tensors],
        "instance_group": [{"kind": _instance_kind(model.profile.device), "count": 1}],
        "dynamic_batching": {
            "preferred_batch_size": [settings.most_rows],
            "max_queue_delay_microseconds": round(settings.max_delay_ms * 1000),
            "default_queue_policy": {
                "timeout_action": "REJECT",
                "default_timeout_microseconds": round(settings.timeout_s * 1_000_000),
                "allow_timeout_override": True,
                "max_queue_size": settings.queue_rows,
            },
        },
        "parameters": {
            "profile": {"string_value": model.profile.name},
            "slot": {"string_value": model.slot_kind},
            **({} if model.sizing is None else {"max_batch": {"string_value": str(model.sizing)}}),
        },
    }


def _triton_tensor(tensor: Mapping[str, Any]) -> dict[str, Any]:
    datatype = str(tensor["datatype"])
    name = "STRING" if datatype == "BYTES" else datatype
    # Metadata has the batch as first dimension, Triton's configuration does not. A scalar's dims are [1].
    dims = list(tensor["shape"])[1:]
    return {"name": tensor["name"], "data_type": f"TYPE_{name}", "dims": dims or [1]}


def _instance_kind(device: str) -> str:
    return "KIND_CPU" if device == "cpu" else "KIND_GPU"


def _methods(app: FastAPI, scope: Scope) -> list[str]:
    """The verbs that a path takes, on whichever routes."""
    found = [
        route for route in app.routes if isinstance(route, Route) and route.matches(scope)[0] != Match.NONE
    ]
    return sorted({method for route in found for method in route.methods or ()})


def _foreseen(request: Request, error: Exception) -> Exception:
    """The framework's errors as problems; others as they are."""
    if isinstance(error, RequestValidationError):
        found = [f"{'.'.join(str(part) for part in item['loc'])}: {item['msg']}" for item in error.errors()]
        return ProblemError(400, "malformed", "; ".join(found))
    if isinstance(error, HTTPException):
        route = f"{request.method} {request.url.path}"
        if error.status_code == 404:
            return ProblemError(404, "not_found", f"no route {route}; GET /docs lists the routes")
        if error.status_code == 405:
            return ProblemError(
                405, "method", f"{route}: this route does not take {request.method}; see GET /docs"
            )
        return ProblemError(error.status_code, "http", str(error.detail))
    return error


def _json(content: Mapping[str, Any], status: int = 200) -> Response:
    return Response(orjson.dumps(content), status, media_type="application/json")


def _response(answer: Answer) -> Response:
    return Response(answer.body, answer.status, headers=dict(headers_of(answer)))
