"""`/v1/models/{name}[/versions/{version}]:predict`, as TF Serving and KServe V1 have it, and GET routes.

Neither protocol has a form for the error of one row: a client that reads numbers by their place must never
find something else there. So a bad row fails its request, and `rows` in the error names all bad rows.
Whatever the content type says, the body is JSON; TF Serving's documents send it as curl does by default.
"""

from __future__ import annotations

from typing import Any

import orjson
from fastapi import FastAPI, Response

from parity.codec import v1
from parity.errors import RowsError
from parity_online.call import Call
from parity_online.columns import read_body, require_fitting, require_good, score
from parity_online.models import Models
from parity_online.problems import Answer, ProblemError, json_answer, rows_problem
from parity_online.served import ServedModel

_ANY_TYPE = ("", "application/octet-stream", "application/x-www-form-urlencoded", "text/plain")
_DTYPES = {
    "BOOL": "DT_BOOL",
    "FP16": "DT_HALF",
    "BF16": "DT_BFLOAT16",
    "FP32": "DT_FLOAT",
    "FP64": "DT_DOUBLE",
    "BYTES": "DT_STRING",
}
_STATES = {"ready": "AVAILABLE", "loading": "LOADING", "draining": "UNLOADING"}


async def answer(call: Call, body: bytes) -> Answer:
    """The answer to one body.

    Raises:
        MalformedError: it is not a request of this protocol.
        ProblemError: a row of it is bad, or the model is not ready.
        QueueFullError, DeadlineExceededError, DrainingError: see `parity_online.driver`.
    """
    model = call.model
    model.require_ready()
    media = call.request.media_type
    if media not in _ANY_TYPE and not media.endswith("json"):
        raise ProblemError(415, "content_type", f"Content-Type {media!r}: this route takes JSON")
    most = model.settings.queue_rows
    asked = await read_body(len(body), lambda: v1.decode_request(model.decoder, body, most_rows=most))
    require_fitting(call, asked.decoded, body)
    require_good(call, asked.decoded)
    answers = (await score(call, asked.decoded)).whole(call)
    try:
        text = v1.encode_response(answers, asked.form)
    except RowsError as exc:
        raise rows_problem(exc.errors, asked.decoded.num_rows, show_failures=call.show_failures) from exc
    return json_answer(200, text, call.request.id)


def add_routes(app: FastAPI, models: Models) -> None:
    """Status and metadata."""

    @app.get("/v1/models", tags=["v1"], summary="The models' names, as KServe lists them")
    def names() -> Response:
        return _json({"models": models.names})

    @app.get("/v1/models/{name}", tags=["v1"], summary="A model's versions and their states")
    @app.get("/v1/models/{name}/versions/{version}", tags=["v1"])
    def status(name: str, version: str | None = None) -> Response:
        default = models.find(name, version)
        found = [default] if version is not None else list(models.versions(name).models)
        ready = default.state == "ready"
        content: dict[str, Any] = {"name": default.name, "ready": ready}
        if not ready:
            content["error"] = f"model {default.name!r} is not ready: {default.reason}"
        content["model_version_status"] = [_version_status(model) for model in found]
        return _json(content, 200 if ready else 503)

    @app.get("/v1/models/{name}/metadata", tags=["v1"], summary="A model's signature, as TF Serving tells it")
    @app.get("/v1/models/{name}/versions/{version}/metadata", tags=["v1"])
    def metadata(name: str, version: str | None = None) -> Response:
        model = models.find(name, version)
        signature = {
            "inputs": {tensor["name"]: _tensor(tensor) for tensor in model.input_tensors},
            "outputs": {tensor["name"]: _tensor(tensor) for tensor in model.output_tensors},
            "method_name": "tensorflow/serving/predict",
        }
        spec = {"name": model.name, "signature_name": "", "version": model.version}
        return _json(
            {
                "model_spec": spec,
                "metadata": {"signature_def": {"signature_def": {v1.SIGNATURE: signature}}},
            }
        )


def _version_status(model: ServedModel) -> dict[str, Any]:
    ok = model.state == "ready"
    return {
        "version": model.version,
        "state": _STATES.get(model.state, "END"),
        "status": {"error_code": "OK" if ok else "UNAVAILABLE", "error_message": model.reason},
    }


def _tensor(tensor: dict[str, Any]) -> dict[str, Any]:
    kind = str(tensor["datatype"])
    dims = [{"size": str(size), "name": ""} for size in tensor["shape"]]
    return {
        "dtype": _DTYPES.get(kind, f"DT_{kind}"),
        "tensor_shape": {"dim": dims, "unknown_rank": False},
        "name": tensor["name"],
    }


def _json(content: dict[str, Any], status: int = 200) -> Response:
    return Response(orjson.dumps(content), status, media_type="application/json")
