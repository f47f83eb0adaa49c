"""The inference protocols: their paths, how each answers, and the form of its errors."""

from __future__ import annotations

from parity_online import predictions, torchserve, v1, v2
from parity_online.call import Call, OneRow, Protocol
from parity_online.problems import render

__all__ = ["PROTOCOLS", "Call", "Protocol"]

PROTOCOLS: tuple[Protocol, ...] = (
    Protocol(
        name="predictions",
        wire="rows",
        path="/predictions/{name}",
        version_path="/predictions/{name}/{version}",
        answer=predictions.answer,
        render=torchserve.render,
        verbs=("POST", "PUT"),
        one_row=OneRow(predictions.read_row, predictions.tell_row),
    ),
    Protocol(
        name="v2",
        wire="oip",
        path="/v2/models/{name}/infer",
        version_path="/v2/models/{name}/versions/{version}/infer",
        answer=v2.answer,
        render=render,
    ),
    Protocol(
        name="v1",
        wire="v1",
        path="/v1/models/{name}:predict",
        version_path="/v1/models/{name}/versions/{version}:predict",
        answer=v1.answer,
        render=render,
    ),
)
