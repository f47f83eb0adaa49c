"""The handler that scores remarks; the kinds differ in how a text becomes words."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from parity import Batch, Float32, Handler, Schema, String

BUCKETS = 64


def buckets(words: Sequence[str]) -> np.ndarray:
    """How often each bucket of words occurs, (BUCKETS,) float32."""
    places = [zlib.crc32(word.encode("utf-8", "surrogatepass")) % BUCKETS for word in words]
    return np.bincount(np.asarray(places, np.int64), minlength=BUCKETS).astype(np.float32)


class RemarkScorer(Handler):
    """Scores a remark by its words. Subclasses say how it is cleaned, and how it is cut into words."""

    inputs = Schema(text=String())
    outputs = Schema(score=Float32())

    def clean(self, text: str) -> str:
        """The text as it is looked at."""
        return text

    def words(self, text: str) -> list[str]:
        """The words of a clean text."""
        return text.split()

    def preprocess(self, batch: Batch) -> Any:
        return [self.clean(text) for text in batch["text"].to_pylist()]

    def inference(self, inputs: Any) -> np.ndarray:
        weights = np.random.default_rng(11).normal(size=BUCKETS)
        counts = np.stack([buckets(self.words(text)) for text in inputs])
        return (counts * weights).sum(axis=1)

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"score": outputs.astype(np.float32)}
