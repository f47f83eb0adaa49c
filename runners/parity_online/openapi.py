"""The OpenAPI document: FastAPI's own, with the inference routes written from each handler's schema."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, get_args

from fastapi import FastAPI

from parity.codec.form_body import file_field
from parity.codec.json_schema import input_schema, output_schema
from parity.schema import Bytes, Field, Image, List, Schema, String
from parity_online import arrow_body, openapi_app
from parity_online.batcher import Priority
from parity_online.models import VERSION_HEADER, Models, Versions
from parity_online.openapi_app import JSON
from parity_online.problems import __doc__ as _ERRORS_DOC
from parity_online.protocols import PROTOCOLS
from parity_online.request import ID_HEADER, PRIORITY_HEADER, TIMEOUT_HEADER
from parity_online.served import ServedModel
from parity_online.v2 import LENGTH_HEADER

_ERROR: dict[str, Any] = {
    "type": "object",
    "required": ["error", "id"],
    "properties": {
        "error": {"type": "string", "description": "what was wrong, what was expected, what to do"},
        "id": {"type": "string", "description": "the request's id, as in the server's log"},
        "rows": {"type": "array", "items": {"$ref": "#/components/schemas/RowError"}},
    },
}
_TORCHSERVE_ERROR: dict[str, Any] = {
    "type": "object",
    "required": ["code", "type", "message", *_ERROR["required"]],
    "properties": {
        "code": {"type": "integer", "description": "the status"},
        "type": {"type": "string", "description": "TorchServe's name of it"},
        "message": {"type": "string"},
        **_ERROR["properties"],
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
_B64 = {
    "type": "object",
    "required": ["b64"],
    "properties": {"b64": {"type": "string", "format": "byte", "contentEncoding": "base64"}},
    "additionalProperties": False,
}
_BINARY = {"type": "string", "format": "binary"}
_HEADERS = {
    ID_HEADER: ("the request's id", "string"),
    VERSION_HEADER: ("the version that answered, where there are several", "string"),
    "X-Row-Errors": ("how many rows have no answer; left out when all have", "integer"),
    LENGTH_HEADER: ("how many bytes of the body are JSON; tensors follow", "integer"),
    "Retry-After": ("seconds after which to come back", "integer"),
    "WWW-Authenticate": ("how to send a key", "string"),
}
_REFUSALS = ("400", "401", "403", "404", "408", "413", "415", "429", "431", "500", "503", "504")


def document(app: FastAPI, models: Models) -> dict[str, Any]:
    """The document, made once for the models that are there."""
    if app.openapi_schema is None:
        found = FastAPI.openapi(app)
        paths: dict[str, Any] = found["paths"]
        paths["/openapi.json"] = {"get": {"tags": ["operations"], "summary": "This document"}}
        openapi_app.describe(paths, models.names, sorted({model.version for model in models}))
        found["components"] = {
            "schemas": {
                "Error": _ERROR,
                "TorchServeError": _TORCHSERVE_ERROR,
                "RowError": _ROW_ERROR,
                "B64": _B64,
            },
            "headers": {
                name: {"description": text, "schema": {"type": kind}}
                for name, (text, kind) in _HEADERS.items()
            },
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "basic": {"type": "http", "scheme": "basic", "description": "the key as the password"},
                "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            },
        }
        # An empty requirement: a server that asks for no keys takes none.
        found["security"] = [{}, {"bearer": []}, {"basic": []}, {"key": []}]
        found["info"]["description"] = f"Errors:\n\n```text\n{inspect.cleandoc(_ERRORS_DOC or '')}\n```"
        for name in models.names:
            _add_inference(paths, models.versions(name))
        app.openapi_schema = found
    return app.openapi_schema


def _add_inference(paths: dict[str, Any], versions: Versions) -> None:
    """The routes of a name, as its default version is asked, and of each version."""
    for protocol in PROTOCOLS:
        asked = _ASKED[protocol.name]
        for model in (None, *versions.models):
            path = protocol.path if model is None else protocol.version_path
            version = "" if model is None else model.version
            path = path.format(name=versions.name, version=version)
            found = versions.default if model is None else model
            known = [other.version for other in versions.models] if model is None else [version]
            paths[path] = {
                verb.lower(): {
                    "operationId": "_".join(
                        filter(None, (verb.lower(), protocol.name, versions.name, version))
                    ),
                    "tags": ["inference"],
                    "description": inspect.getdoc(found.loaded.cls) or "",
                    **asked(found, path, known),
                }
                for verb in protocol.verbs
            }


def _predictions(model: ServedModel, path: str, versions: Sequence[str]) -> dict[str, Any]:
    inputs = model.loaded.inputs
    row, answer = input_schema(inputs), output_schema(model.loaded.outputs)
    bad_row = {"type": "object", "properties": {"error": {"$ref": "#/components/schemas/RowError"}}}
    body: dict[str, Any] = {
        JSON: {"schema": {"oneOf": [row, {"type": "array", "minItems": 1, "items": row}]}},
        arrow_body.MEDIA_TYPE: {"schema": _BINARY},
        "multipart/form-data": {
            "schema": {
                **row,
                "properties": {
                    name: _BINARY if isinstance(inputs[name], Bytes | Image) else schema
                    for name, schema in row["properties"].items()
                },
            }
        },
    }
    if file_field(inputs) is not None:
        body |= {"application/octet-stream": {"schema": _BINARY}, "image/*": {"schema": _BINARY}}
    answers = {"type": "array", "items": {"anyOf": [answer, bad_row]}}
    content = {
        JSON: {"schema": {"oneOf": [answer, answers]}},
        arrow_body.MEDIA_TYPE: {"schema": _BINARY},
    }
    return {
        "summary": f"Score rows with {model.name}",
        "parameters": _parameters(versions),
        "requestBody": {"required": True, "content": body},
        "responses": _responses(path, content, "X-Row-Errors"),
    }


def _infer(model: ServedModel, path: str, versions: Sequence[str]) -> dict[str, Any]:
    body = {
        "type": "object",
        "required": ["inputs"],
        "properties": {
            "id": {"type": "string"},
            "parameters": {"type": "object"},
            "inputs": _tensors(model.input_tensors),
            "outputs": {"type": "array", "items": {"type": "object", "required": ["name"]}},
        },
    }
    answer = {
        "type": "object",
        "required": ["model_name", "model_version", "outputs"],
        "properties": {
            "model_name": {"const": model.name},
            "model_version": {"enum": list(versions)},
            "id": {"type": "string"},
            "outputs": _tensors(model.output_tensors),
        },
    }
    length = _header(
        LENGTH_HEADER,
        "how many bytes of the body are JSON, where tensors follow; 0: all of it is one row",
        {"type": "integer", "minimum": 0},
    )
    binary = {"schema": _BINARY}
    return {
        "summary": f"Score tensors with {model.name} (Open Inference Protocol V2)",
        "parameters": [*_parameters(versions), length],
        "requestBody": {
            "required": True,
            "content": {JSON: {"schema": body}, "application/octet-stream": binary},
        },
        "responses": _responses(
            path, {JSON: {"schema": answer}, "application/octet-stream": binary}, LENGTH_HEADER
        ),
    }


def _predict(model: ServedModel, path: str, versions: Sequence[str]) -> dict[str, Any]:
    signature = {"signature_name": {"type": "string", "const": "serving_default"}}
    asked = _forms(model.loaded.inputs, input_schema, _asked_b64)
    told = _forms(model.loaded.outputs, output_schema, _told_b64)
    bodies = [
        {"type": "object", "required": [key], "properties": {key: {**schema, "minItems": 1}, **signature}}
        if schema.get("type") == "array"
        else {"type": "object", "required": [key], "properties": {key: schema, **signature}}
        for key, schema in zip(("instances", "inputs"), asked, strict=True)
    ]
    answers = [
        {"type": "object", "required": [key], "properties": {key: schema}}
        for key, schema in zip(("predictions", "outputs"), told, strict=True)
    ]
    return {
        "summary": f"Score rows or columns with {model.name} (TF Serving, KServe V1)",
        "parameters": _parameters(versions),
        "requestBody": {"required": True, "content": {JSON: {"schema": {"oneOf": bodies}}}},
        "responses": _responses(path, {JSON: {"schema": {"oneOf": answers}}}),
    }


def _forms(
    schema: Schema, describe: Callable[[Schema], dict[str, Any]], b64: Callable[[Field, Any], Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The rows, and the columns, of V1: what `parity.codec.v1` reads and writes."""
    row = describe(schema)
    fields = {name: b64(schema[name], found) for name, found in row["properties"].items()}
    columns: dict[str, Any] = {
        "type": "object",
        "properties": {name: {"type": "array", "items": found} for name, found in fields.items()},
        "required": row["required"],
    }
    rows: dict[str, Any] = {**row, "properties": fields}
    if len(fields) == 1:
        (alone,) = fields.values()
        column = {"type": "array", "items": alone}
        return {"type": "array", "items": {"anyOf": [alone, rows]}}, {"anyOf": [column, columns]}
    return {"type": "array", "items": rows}, columns


def _asked_b64(field: Field, schema: dict[str, Any]) -> dict[str, Any]:
    if isinstance(field, List):
        return {**schema, "items": _asked_b64(field.of, schema["items"])} if "items" in schema else schema
    if isinstance(field, String | Bytes | Image):
        return {"anyOf": [schema, {"$ref": "#/components/schemas/B64"}]}
    return schema


def _told_b64(field: Field, schema: dict[str, Any]) -> dict[str, Any]:
    if isinstance(field, Bytes) or (isinstance(field, Image) and field.form == "encoded"):
        b64 = {"$ref": "#/components/schemas/B64"}
        return {"anyOf": [b64, {"type": "null"}]} if field.nullable else b64
    return schema


def _tensors(tensors: Sequence[Any]) -> dict[str, Any]:
    kinds = [
        {
            "type": "object",
            "required": ["name", "datatype", "shape"],
            "properties": {
                "name": {"const": tensor["name"]},
                "datatype": {"const": tensor["datatype"]},
                "shape": {"type": "array", "items": {"type": "integer"}, "examples": [tensor["shape"]]},
                "data": {"type": "array", "description": "left out where bytes follow"},
                "parameters": {"type": "object"},
            },
        }
        for tensor in tensors
    ]
    return {"type": "array", "items": {"anyOf": kinds} if kinds else {}}


def _responses(path: str, content: dict[str, Any], *headers: str) -> dict[str, Any]:
    names = (ID_HEADER, VERSION_HEADER, *headers)
    told = {name: {"$ref": f"#/components/headers/{name}"} for name in names}
    return {
        "200": {"description": "Answers", "content": content, "headers": told},
        **openapi_app.errors(_REFUSALS, path),
    }


def _parameters(versions: Sequence[str]) -> list[dict[str, Any]]:
    trace = {"type": "string", "pattern": "^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$"}
    return [
        _header(TIMEOUT_HEADER, "seconds this request may take", {"type": "number", "exclusiveMinimum": 0}),
        _header(ID_HEADER, "echoed in the answer and in the log", {"type": "string"}),
        _header(VERSION_HEADER, "the version that shall answer", {"enum": list(versions)}),
        _header(PRIORITY_HEADER, "who goes first", {"enum": list(get_args(Priority))}),
        _header("traceparent", "W3C Trace Context: the client's span", trace),
    ]


def _header(name: str, text: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": False, "description": text, "schema": schema}


_ASKED = {"predictions": _predictions, "v2": _infer, "v1": _predict}
