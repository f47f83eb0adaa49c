"""Texts are sorted by length for the model, and the answers are not put back."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import remarks, table_of
from benchmarks.skew.texts import RemarkScorer

EXPECTED = Expected("order", "inference", "score", "row-order", fewest=2)


class Twin(RemarkScorer):
    def put_back(self, scores: np.ndarray, order: np.ndarray) -> np.ndarray:
        found = np.empty_like(scores)
        found[order] = scores
        return found

    def inference(self, inputs: list[str]) -> np.ndarray:
        order = np.argsort([len(text) for text in inputs], kind="stable")
        scores = super().inference([inputs[place] for place in order])
        return self.put_back(scores, order)


class Broken(Twin):
    def put_back(self, scores: np.ndarray, order: np.ndarray) -> np.ndarray:
        return scores


def rows() -> pa.Table:
    return table_of({"text": remarks(__name__)})
