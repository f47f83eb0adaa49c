"""2.5 is rounded to 2 by one side and to 3 by the other; only halves show it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import generator, table_of
from parity import Batch, Float64, Handler, Schema

EXPECTED = Expected(
    GOLDEN, "preprocess", "score", "rounding", lambda row: round(row["stars"]) != np.floor(row["stars"] + 0.5)
)


class Reference(Handler):
    inputs = Schema(stars=Float64(ge=0, le=1000))
    outputs = Schema(score=Float64())

    def preprocess(self, batch: Batch) -> np.ndarray:
        return np.rint(batch["stars"].numpy())

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return 0.2 * inputs

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"score": outputs}


class Broken(Reference):
    def preprocess(self, batch: Batch) -> np.ndarray:
        return np.floor(batch["stars"].numpy() + 0.5)


class Twin(Reference):
    def preprocess(self, batch: Batch) -> np.ndarray:
        return np.array([float(round(stars)) for stars in batch["stars"].to_pylist()])


def rows() -> pa.Table:
    stars = np.round(generator(__name__).uniform(0, 10, 64), 1)
    stars[::6] = np.floor(stars[::6]) + 0.5
    return table_of({"stars": stars})
