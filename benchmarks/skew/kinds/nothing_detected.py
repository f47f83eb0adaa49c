"""Boxes of a batch are put together; where no row has any, there is nothing to put together and it fails."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import generator, table_of
from parity import Batch, Float64, Handler, List, Schema

EXPECTED = Expected(
    "batch-size",
    "postprocess",
    "_error",
    "raises",
    lambda row: not any(value > 0.5 for value in row["scores"]),
)


class Twin(Handler):
    inputs = Schema(scores=List(Float64(ge=0, le=1)))
    outputs = Schema(boxes=List(Float64()))

    def preprocess(self, batch: Batch) -> list[list[float]]:
        return batch["scores"].to_pylist()

    def inference(self, inputs: list[list[float]]) -> list[np.ndarray]:
        return [np.array([score for score in row if score > 0.5]) for row in inputs]

    def together(self, boxes: list[np.ndarray]) -> np.ndarray:
        return np.concatenate([np.empty(0), *boxes])

    def postprocess(self, outputs: list[np.ndarray], batch: Batch) -> dict[str, object]:
        together = self.together(outputs)
        ends = np.cumsum([len(boxes) for boxes in outputs])
        return {"boxes": [piece.tolist() for piece in np.split(together, ends[:-1])]}


class Broken(Twin):
    def together(self, boxes: list[np.ndarray]) -> np.ndarray:
        return np.concatenate([found for found in boxes if len(found)])


def rows() -> pa.Table:
    rng = generator(__name__)
    scores = [np.round(rng.uniform(0, 1, rng.integers(1, 6)), 2).tolist() for _ in range(64)]
    scores[9::20] = [[0.25, 0.1]] * len(scores[9::20])
    return table_of({"scores": pa.array(scores, pa.list_(pa.float64()))})
