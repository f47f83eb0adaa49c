"""Clean: entries of equal score swap their places in a ranking, under a rule that knows of ties."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.natural_rows import generator, table_of, vectors
from parity import Batch, Float64, Handler, Int64, List, Schema, Tensor

TOLERANCE = {"ranking": {"kind": "topk", "k": 4, "tie": 1e-9, "scores": "scores"}}


class Reference(Handler):
    inputs = Schema(given=Tensor("float64", (8,)))
    outputs = Schema(ranking=List(Int64()), scores=List(Float64(non_finite="string")))

    def order(self, scores: np.ndarray) -> np.ndarray:
        return np.argsort(-scores, kind="stable")

    def preprocess(self, batch: Batch) -> np.ndarray:
        return batch["given"].numpy()

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        rankings = [self.order(scores)[:4] for scores in outputs]
        return {
            "ranking": [ranking.tolist() for ranking in rankings],
            "scores": [scores[ranking].tolist() for scores, ranking in zip(outputs, rankings, strict=True)],
        }


class Twin(Reference):
    def order(self, scores: np.ndarray) -> np.ndarray:
        return len(scores) - 1 - np.argsort(-scores[::-1], kind="stable")


def rows() -> pa.Table:
    scores = generator(__name__).integers(0, 5, (64, 8)).astype(np.float64)
    # Four entries stand out, so that ties lie among the first four or behind them, and not across.
    scores[:, 2:6] += 10
    return table_of({"given": vectors(scores)})
