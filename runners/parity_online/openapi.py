"""The OpenAPI document: FastAPI's own, with the inference routes written from each handler's schema."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI

from parity.codec.json_schema import input_schema, output_schema
from parity_online.models import VERSION_HEADER, Models
from parity_online.problems import __doc__ as _ERRORS_DOC
from parity_online.request import ID_HEADER, TIMEOUT_HEADER
from parity_online.served import ServedModel

_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {"type": "string", "description": "what was wrong, what was expected, what to do"},
        "id": {"type": "string", "description": "the request's id, as in the server's log"},
        "rows": {"type": "array", "items": {"$ref": "#/components/schemas/RowError"}},
    },
}
_ROW_ERROR = {
    "type": "object",
    "required": ["row", "kind", "message"],
    "properties": {
        "row": {"type": "integer"},
        "kind": {"enum": ["invalid", "rejected", "failed"]},
        "field": {"type": ["string", "null"]},
        "stage": {"type": ["string", "null"]},
        "message": {"type": "string"},
    },
}
_STATUSES = {
    "400": "The caller's fault: malformed, or a row that does not fit the schema or is rejected",
    "413": "The body is too large",
    "415": "Not JSON",
    "500": "A stage failed; the log tells more under the id",
    "503": "Not ready, draining, or the queue is full; see Retry-After",
    "504": "The deadline passed",
}


def document(app: FastAPI, models: Models) -> dict[str, Any]:
    """The document, made once for the models that are there; of a name's versions the default is shown."""
    if app.openapi_schema is None:
        found = FastAPI.openapi(app)
        schemas = found.setdefault("components", {}).setdefault("schemas", {})
        schemas["Error"], schemas["RowError"] = _ERROR, _ROW_ERROR
        found["info"]["description"] = f"Errors:\n\n```text\n{inspect.cleandoc(_ERRORS_DOC or '')}\n```"
        for name in models.names:
            model = models.find(name)
            found["paths"][f"/predictions/{model.name}"] = {"post": _predictions(model)}
            found["paths"][f"/v2/models/{model.name}/infer"] = {"post": _infer(model)}
        app.openapi_schema = found
    return app.openapi_schema


def _predictions(model: ServedModel) -> dict[str, Any]:
    row, answer = input_schema(model.loaded.inputs), output_schema(model.loaded.outputs)
    bad_row = {"type": "object", "properties": {"error": {"$ref": "#/components/schemas/RowError"}}}
    answers = {"type": "array", "items": {"anyOf": [answer, bad_row]}}
    return _operation(
        model,
        operation=f"predict_{model.name}",
        summary=f"Score rows with {model.name}",
        body={"oneOf": [row, {"type": "array", "items": row}]},
        answer={"oneOf": [answer, answers]},
    )


def _infer(model: ServedModel) -> dict[str, Any]:
    return _operation(
        model,
        operation=f"infer_{model.name}",
        summary=f"Score tensors with {model.name} (Open Inference Protocol V2)",
        body={
            "type": "object",
            "required": ["inputs"],
            "properties": {
                "id": {"type": "string"},
                "parameters": {"type": "object"},
                "inputs": _tensors(model.input_tensors),
                "outputs": {"type": "array", "items": {"type": "object", "required": ["name"]}},
            },
        },
        answer={
            "type": "object",
            "properties": {
                "model_name": {"const": model.name},
                "model_version": {"const": model.version},
                "id": {"type": "string"},
                "outputs": _tensors(model.output_tensors),
            },
        },
    )


def _tensors(tensors: Sequence[Any]) -> dict[str, Any]:
    kinds = [
        {
            "type": "object",
            "required": ["name", "datatype", "shape", "data"],
            "properties": {
                "name": {"const": tensor["name"]},
                "datatype": {"const": tensor["datatype"]},
                "shape": {"type": "array", "items": {"type": "integer"}, "examples": [tensor["shape"]]},
                "data": {"type": "array"},
            },
        }
        for tensor in tensors
    ]
    return {"type": "array", "items": {"anyOf": kinds} if kinds else {}}


def _operation(
    model: ServedModel, *, operation: str, summary: str, body: dict[str, Any], answer: dict[str, Any]
) -> dict[str, Any]:
    content = "application/json"
    return {
        "tags": ["inference"],
        "operationId": operation,
        "summary": summary,
        "description": inspect.getdoc(model.loaded.cls) or "",
        "parameters": [
            _header(
                TIMEOUT_HEADER, "seconds this request may take", {"type": "number", "exclusiveMinimum": 0}
            ),
            _header(ID_HEADER, "echoed in the answer and in the log", {"type": "string"}),
            _header(VERSION_HEADER, "the version that shall answer", {"type": "string"}),
        ],
        "requestBody": {"required": True, "content": {content: {"schema": body}}},
        "responses": {
            "200": {"description": "Answers", "content": {content: {"schema": answer}}},
            **{
                status: {
                    "description": text,
                    "content": {content: {"schema": {"$ref": "#/components/schemas/Error"}}},
                }
                for status, text in _STATUSES.items()
            },
        },
    }


def _header(name: str, text: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": False, "description": text, "schema": schema}
