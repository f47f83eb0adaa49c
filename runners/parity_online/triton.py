"""Triton's extensions of V2 beside inference: statistics and the repository's index."""

from __future__ import annotations

from typing import Any

import orjson
from fastapi import FastAPI, Response

from parity_online.models import Models
from parity_online.served import ServedModel

_STATES = {"ready": "READY", "loading": "LOADING", "draining": "UNLOADING"}


def add_statistics(app: FastAPI, models: Models) -> None:
    """The routes of statistics; before the models', since "stats" would else be the name of one."""

    @app.get("/v2/models/stats", tags=["metadata"], summary="What all models have done, as Triton counts it")
    def all_statistics() -> Response:
        return _told([model for name in models.names for model in models.versions(name).models])

    @app.get("/v2/models/{name}/stats", tags=["metadata"], summary="What a model has done")
    @app.get("/v2/models/{name}/versions/{version}/stats", tags=["metadata"])
    def model_statistics(name: str, version: str | None = None) -> Response:
        return _told([models.find(name, version)])


def statistics(model: ServedModel) -> dict[str, Any]:
    """A model's entry of `model_stats`."""
    return model.metrics.statistics.told(model.name, model.version)


def repository_index(models: Models) -> list[dict[str, str]]:
    """The versions that are served, where nothing more is known of a repository."""
    return [
        {
            "name": model.name,
            "version": model.version,
            "state": _STATES.get(model.state, "UNAVAILABLE"),
            "reason": model.reason,
        }
        for name in models.names
        for model in models.versions(name).models
    ]


def _told(models: list[ServedModel]) -> Response:
    told = {"model_stats": [statistics(model) for model in models]}
    return Response(orjson.dumps(told), media_type="application/json")
