"""What the OpenAPI document says of the routes that do not infer: their answers, statuses and errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from parity_online import torchserve

Schema = dict[str, Any]

JSON, HTML, TEXT = "application/json", "text/html", "text/plain"
BODY_STATUSES = ("400", "408", "413")

STATUSES = {
    "400": "The caller's fault: malformed, or a row that does not fit the schema or is rejected",
    "401": "No API key, or an unknown one, where the server asks for keys",
    "403": "A key of another scope; management that is off, or asked for by a page of another site",
    "404": "No such model or version",
    "408": "The body did not arrive in time",
    "413": "The body is too large, or has more rows than the queue holds",
    "415": "A content type or encoding that is not read here",
    "429": "The client has as many requests in flight as it may; see Retry-After",
    "431": "The head of the request is too large",
    "500": "A stage failed; the log tells more under the id",
    "501": "No handler explains its answers",
    "503": "Not ready, draining, or the queue is full; see Retry-After",
    "504": "The deadline passed",
}


def answer(text: str, content: str, schema: Schema, headers: Sequence[str] = ()) -> Schema:
    """A response object."""
    found: Schema = {"description": text, "content": {content: {"schema": schema}}}
    if headers:
        found["headers"] = {name: {"$ref": f"#/components/headers/{name}"} for name in headers}
    return found


def errors(statuses: Sequence[str], path: str) -> Schema:
    """The error responses of a route, in the form of the protocol that its path belongs to."""
    kind = "TorchServeError" if path.startswith(torchserve.PREFIXES) else "Error"
    found: Schema = {}
    for status in sorted(statuses):
        headers = ["X-Request-Id"]
        headers += ["Retry-After"] if status in ("429", "503") else []
        headers += ["WWW-Authenticate"] if status == "401" else []
        found[status] = answer(STATUSES[status], JSON, {"$ref": f"#/components/schemas/{kind}"}, headers)
    return found


def describe(paths: dict[str, Any], names: Sequence[str], versions: Sequence[str]) -> None:
    """Complete the framework's paths: what each answers, with which status, and the names that there are.

    Args:
        paths: the document's, changed in place.
        names: of the models.
        versions: of all of them.
    """
    for path, verbs in paths.items():
        for verb, operation in verbs.items():
            told = _ANSWERS.get(_plain(path), {"200": {}})
            content = _CONTENTS.get(path, JSON)
            found = {
                status: answer(_TEXTS.get(status, "Answer"), content, schema)
                for status, schema in told.items()
            }
            refusals = {"401", "403", "431"} - found.keys()
            if operation.get("parameters"):
                refusals |= {"400", "404"}
            if path.startswith("/v2/repository/"):
                refusals |= {*BODY_STATUSES, "500"}
                operation["requestBody"] = {"required": False, "content": {JSON: {"schema": _BODIES[path]}}}
            if path.startswith("/explanations/"):
                refusals |= {"501"}
            operation["responses"] = found | errors(sorted(refusals), path)
            for parameter in operation.get("parameters", ()):
                _complete(parameter, names, [*versions, "all"] if path in _ALL else versions)
            if path != _plain(path):
                operation["summary"] = paths[_plain(path)][verb]["summary"] + ", one version"


def _plain(path: str) -> str:
    """The path that asks for no version."""
    return path.replace("/versions/{version}", "").replace("/{version}", "")


def _complete(parameter: Schema, names: Sequence[str], versions: Sequence[str]) -> None:
    if parameter["name"] == "name":
        parameter["description"] = "the model"
        parameter["schema"] = {"type": "string", "enum": list(names)} if names else _STR
    elif parameter["name"] == "version":
        parameter["description"] = "the version"
        parameter["schema"] = {"type": "string", "enum": list(versions)} if versions else _STR


def _object(required: Mapping[str, Any], **optional: Any) -> Schema:
    return {"type": "object", "required": list(required), "properties": {**required, **optional}}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


_BOOL: Schema = {"type": "boolean"}
_INT: Schema = {"type": "integer"}
_STR: Schema = {"type": "string"}
_ANY: Schema = {"type": "object"}

_TENSOR = _object({"name": _STR, "datatype": _STR, "shape": _list(_INT)})
_DURATIONS = _object({"count": _INT, "ns": _INT})
_STATISTICS = _object(
    {
        "name": _STR,
        "version": _STR,
        "last_inference": _INT,
        "inference_count": _INT,
        "execution_count": _INT,
        "inference_stats": {"type": "object", "additionalProperties": _DURATIONS},
        "batch_stats": _list(_object({"batch_size": _INT})),
    }
)
_TORCHSERVE_MODEL = _object(
    {
        "modelName": _STR,
        "modelVersion": _STR,
        "batchSize": _INT,
        "maxBatchDelay": _INT,
        "responseTimeout": _INT,
        "workers": _list(_ANY),
        "jobQueueStatus": _object({"remainingCapacity": _INT, "pendingRequests": _INT}),
    }
)
_V1_STATUS = _object(
    {
        "name": _STR,
        "ready": _BOOL,
        "model_version_status": _list(_object({"version": _STR, "state": _STR, "status": _ANY})),
    },
    error=_STR,
)
_HEALTH = _object({"ready": _BOOL}, error=_STR, models=_ANY)
_MODEL_HEALTH = _object({"name": _STR, "ready": _BOOL}, error=_STR)
_PING = _object({"status": {"enum": ["Healthy", "Unhealthy"]}})
_STATS = _object({"model_stats": _list(_STATISTICS)})

_ANSWERS: dict[str, dict[str, Schema]] = {
    "/": {"200": _STR},
    "/docs": {"200": _STR},
    "/openapi.json": {"200": _object({"openapi": _STR, "info": _ANY, "paths": _ANY})},
    "/status.json": {"200": _object({"ready": _BOOL, "waiting": _ANY, "models": _list(_ANY)})},
    "/form.json": {"200": _object({"schema": _ANY, "example": _ANY})},
    "/metrics": {"200": _STR},
    "/ping": {"200": _PING, "503": _PING},
    "/v2/health/live": {"200": _object({"live": _BOOL})},
    "/v2/health/ready": {"200": _HEALTH, "503": _HEALTH},
    "/v2/models/{name}/ready": {"200": _MODEL_HEALTH, "503": _MODEL_HEALTH},
    "/v2": {"200": _object({"name": _STR, "version": _STR, "extensions": _list(_STR)})},
    "/v2/models": {"200": _object({"models": _list(_STR)})},
    "/v2/models/stats": {"200": _STATS},
    "/v2/models/{name}/stats": {"200": _STATS},
    "/v2/models/{name}": {
        "200": _object(
            {
                "name": _STR,
                "versions": _list(_STR),
                "platform": _STR,
                "inputs": _list(_TENSOR),
                "outputs": _list(_TENSOR),
            }
        )
    },
    "/v2/models/{name}/config": {
        "200": _object(
            {
                "name": _STR,
                "platform": _STR,
                "max_batch_size": _INT,
                "input": _list(_object({"name": _STR, "data_type": _STR, "dims": _list(_INT)})),
                "output": _list(_object({"name": _STR, "data_type": _STR, "dims": _list(_INT)})),
                "dynamic_batching": _ANY,
            }
        )
    },
    "/v2/repository/index": {
        "200": _list(_object({"name": _STR, "state": _STR}, version=_STR, reason=_STR)),
    },
    "/v2/repository/models/{name}/load": {"200": _ANY},
    "/v2/repository/models/{name}/unload": {"200": _ANY},
    "/v1/models": {"200": _object({"models": _list(_STR)})},
    "/v1/models/{name}": {"200": _V1_STATUS, "503": _V1_STATUS},
    "/v1/models/{name}/metadata": {"200": _object({"model_spec": _ANY, "metadata": _ANY})},
    "/models": {
        "200": _object({"models": _list(_object({"modelName": _STR, "modelUrl": _STR}))}, nextPageToken=_STR)
    },
    "/models/{name}": {"200": _list(_TORCHSERVE_MODEL)},
    "/explanations/{name}": {},
}
_ALL = ("/models/{name}", "/models/{name}/{version}")
"""Where all versions may be asked for."""
_CONTENTS = {"/": HTML, "/docs": HTML, "/metrics": TEXT}
_TEXTS = {"503": "Not ready, with the reason"}
_BODIES = {
    "/v2/repository/index": _object({}, ready={**_BOOL, "description": "only those that are ready"}),
    "/v2/repository/models/{name}/load": _ANY,
    "/v2/repository/models/{name}/unload": _ANY,
}
