"""Scores pictures of a few pixels: what the soak asks by raw bodies, forms and tensors of bytes."""

from __future__ import annotations

from typing import Any, cast

import cv2
import numpy as np

from parity import Batch, Context, Float32, Handler, Image, Schema

__all__ = ["Thumb"]

_SIDE = 16


class Thumb(Handler):
    """Score a picture by a weighted sum of its 16x16 pixels."""

    inputs = Schema(image=Image())
    outputs = Schema(score=Float32())

    def initialize(self, context: Context) -> None:  # noqa: ARG002
        self.weights = np.random.default_rng(7).normal(size=_SIDE * _SIDE * 3).astype(np.float32)

    def preprocess(self, batch: Batch) -> np.ndarray[Any, Any]:
        small = np.zeros((batch.num_rows, _SIDE * _SIDE * 3), np.float32)
        for row, data in enumerate(batch["image"].to_pylist()):
            picture = cast("Any", cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR))
            if picture is None:
                batch.reject(row, "the picture cannot be decoded")
                continue
            small[row] = cv2.resize(picture, (_SIDE, _SIDE), interpolation=cv2.INTER_AREA).reshape(-1)
        return small

    def inference(self, inputs: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return (inputs * self.weights).sum(axis=1, dtype=np.float32)

    def postprocess(self, outputs: np.ndarray[Any, Any], batch: Batch) -> dict[str, object]:  # noqa: ARG002
        return {"score": outputs}
