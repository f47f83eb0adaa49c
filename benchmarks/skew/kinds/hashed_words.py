"""Words are put into buckets by hash(), which is another function in every process."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import remarks, table_of
from benchmarks.skew.texts import BUCKETS, RemarkScorer, buckets
from parity import Batch

EXPECTED = Expected("process", "preprocess", "score", "hash-seed", fewest=1)


class Twin(RemarkScorer):
    def counted(self, words: list[str]) -> np.ndarray:
        return buckets(words)

    def preprocess(self, batch: Batch) -> np.ndarray:
        return np.stack([self.counted(text.split()) for text in batch["text"].to_pylist()])

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return (inputs * np.random.default_rng(11).normal(size=BUCKETS)).sum(axis=1)


class Broken(Twin):
    def counted(self, words: list[str]) -> np.ndarray:
        places = np.asarray([hash(word) % BUCKETS for word in words], np.int64)
        return np.bincount(places, minlength=BUCKETS).astype(np.float32)


def rows() -> pa.Table:
    return table_of({"text": remarks(__name__)})
