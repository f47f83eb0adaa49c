"""Category codes are made from the batch: "Spain" is 5 in training, 3 in a batch, 0 alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import COUNTRIES, countries, table_of
from parity import Batch, Float64, Handler, Schema, String

EXPECTED = Expected(
    "batch-size",
    "preprocess",
    "risk",
    "categories-per-batch",
    fewest=2,
)


class Twin(Handler):
    inputs = Schema(country=String(choices=COUNTRIES))
    outputs = Schema(risk=Float64())

    def codes(self, names: list[str]) -> np.ndarray:
        return pd.Categorical(names, categories=list(COUNTRIES)).codes.astype(np.int64)

    def preprocess(self, batch: Batch) -> np.ndarray:
        return self.codes(batch["country"].to_pylist())

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return np.array([0.1, 0.35, 0.2, 0.6, 0.45, 0.8])[inputs]

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"risk": outputs}


class Broken(Twin):
    def codes(self, names: list[str]) -> np.ndarray:
        return pd.Series(names).astype("category").cat.codes.to_numpy().astype(np.int64)


def rows() -> pa.Table:
    return table_of({"country": countries(__name__)})
