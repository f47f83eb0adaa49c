"""Scores are cached under a key that other rows share: who comes first decides."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import remarks, table_of
from benchmarks.skew.texts import RemarkScorer, buckets
from parity import Context

EXPECTED = Expected("order", "inference", "score", "state-kept", fewest=2)


class Twin(RemarkScorer):
    def initialize(self, context: Context) -> None:
        self.cache: dict[str, np.ndarray] = {}

    def key(self, text: str) -> str:
        return text

    def counted(self, text: str) -> np.ndarray:
        key = self.key(text)
        if key not in self.cache:
            self.cache[key] = buckets(text.split())
        return self.cache[key]

    def inference(self, inputs: list[str]) -> np.ndarray:
        self.cache.clear()
        counts = np.stack([self.counted(text) for text in inputs])
        return (counts * np.random.default_rng(11).normal(size=counts.shape[1])).sum(axis=1)


class Broken(Twin):
    def key(self, text: str) -> str:
        return text[:12]


def rows() -> pa.Table:
    return table_of({"text": remarks(__name__)})
