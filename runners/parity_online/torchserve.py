"""What TorchServe's clients meet beside `/predictions`: its form of errors, its models, `/explanations`.

An error is {"code", "type", "message"}, as TorchServe writes it, with the keys of all our errors beside.
"""

from __future__ import annotations

import os
from typing import Any

import orjson
from fastapi import FastAPI, Response

from parity_online.models import Models
from parity_online.problems import Answer, ProblemError
from parity_online.problems import render as render_plain
from parity_online.served import ServedModel

PREFIXES = ("/predictions/", "/explanations/", "/models")
"""Paths whose errors have TorchServe's form."""

_TYPES = {
    400: "BadRequestException",
    401: "InvalidKeyException",
    403: "BadRequestException",
    404: "ResourceNotFoundException",
    405: "MethodNotAllowedException",
    413: "TooLongFrameException",
    415: "BadRequestException",
    500: "InternalServerException",
    501: "NotImplementedException",
    503: "ServiceUnavailableException",
}


def render(
    problem: ProblemError, request_id: str, *, show_failures: bool = False, close: bool = False
) -> Answer:
    """The answer to a request with this problem."""
    plain = render_plain(problem, request_id, show_failures=show_failures, close=close)
    kind = _TYPES.get(problem.status, "ServiceUnavailableException")
    content = {"code": problem.status, "type": kind, "message": str(problem), **orjson.loads(plain.body)}
    body = orjson.dumps(content)
    headers = [
        (name, b"%d" % len(body) if name == b"content-length" else value) for name, value in plain.headers
    ]
    return Answer(plain.status, headers, body)


def add_routes(app: FastAPI, models: Models) -> None:
    """The routes of TorchServe's management that only tell, and its explanations."""

    @app.get("/models", tags=["torchserve"], summary="The models, as TorchServe lists them")
    def listed(limit: int = 100, next_page_token: int = 0) -> Response:
        if limit < 1 or next_page_token < 0:
            raise ProblemError(400, "malformed", "limit must be at least 1, next_page_token at least 0")
        names = models.names
        page = names[next_page_token : next_page_token + limit]
        content: dict[str, Any] = {"models": [{"modelName": name, "modelUrl": name} for name in page]}
        if next_page_token + limit < len(names):
            content["nextPageToken"] = str(next_page_token + limit)
        return _json(content)

    @app.get("/models/{name}", tags=["torchserve"], summary="A model, as TorchServe describes it")
    @app.get("/models/{name}/{version}", tags=["torchserve"])
    def described(name: str, version: str | None = None) -> Response:
        if version == "all":
            return _json([_described(model) for model in models.versions(name).models])
        return _json([_described(models.find(name, version))])

    @app.put("/explanations/{name}", include_in_schema=False)
    @app.put("/explanations/{name}/{version}", include_in_schema=False)
    @app.post("/explanations/{name}", tags=["torchserve"], summary="501: no handler explains its answers")
    @app.post("/explanations/{name}/{version}", tags=["torchserve"])
    def explain(name: str, version: str | None = None) -> Response:
        model = models.find(name, version)
        raise ProblemError(501, "not_offered", f"model {model.name!r} has no explanations, only predictions")


def _described(model: ServedModel) -> dict[str, Any]:
    settings = model.settings
    waiting = int(model.driver.queued_rows) if model.state == "ready" else 0
    return {
        "modelName": model.name,
        "modelVersion": model.version,
        "modelUrl": model.name,
        "runtime": "python",
        "minWorkers": 1,
        "maxWorkers": 1,
        "batchSize": settings.most_rows,
        "maxBatchDelay": round(settings.max_delay_ms),
        "responseTimeout": round(settings.timeout_s),
        "loadedAtStartup": True,
        "workers": [
            {
                "id": "0",
                "status": "READY" if model.state == "ready" else "UNLOADING",
                "pid": os.getpid(),
                "gpu": model.profile.device != "cpu",
            }
        ],
        "jobQueueStatus": {
            "remainingCapacity": max(0, settings.queue_rows - waiting),
            "pendingRequests": waiting,
        },
    }


def _json(content: Any) -> Response:
    return Response(orjson.dumps(content), media_type="application/json")
