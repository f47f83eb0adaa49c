"""Sequences are cut to the shortest of the batch, so that they can be stacked."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import generator, table_of
from parity import Batch, Float64, Handler, List, Schema

EXPECTED = Expected(
    "batch-size", "preprocess", "score", "truncation", lambda row: len(row["visits"]) > 1, fewest=2
)


class Twin(Handler):
    inputs = Schema(visits=List(Float64(ge=-1e6, le=1e6)))
    outputs = Schema(score=Float64())

    def kept(self, visits: list[list[float]]) -> list[list[float]]:
        return visits

    def preprocess(self, batch: Batch) -> list[list[float]]:
        return self.kept(batch["visits"].to_pylist())

    def inference(self, inputs: list[list[float]]) -> np.ndarray:
        return np.array([float(sum(row)) for row in inputs])

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"score": outputs}


class Broken(Twin):
    def kept(self, visits: list[list[float]]) -> list[list[float]]:
        shortest = max(1, min(len(row) for row in visits))
        return [row[:shortest] for row in visits]


def rows() -> pa.Table:
    rng = generator(__name__)
    visits = [np.round(rng.uniform(1, 60, rng.integers(2, 9)), 1).tolist() for _ in range(64)]
    return table_of({"visits": pa.array(visits, pa.list_(pa.float64()))})
