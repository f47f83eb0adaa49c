"""One-hot columns are made for the categories that the batch happens to have."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import COUNTRIES, countries, table_of
from parity import Batch, Float64, Handler, Schema, String

EXPECTED = Expected("batch-size", "preprocess", "risk", "categories-per-batch", fewest=2)


class Twin(Handler):
    inputs = Schema(country=String(choices=COUNTRIES))
    outputs = Schema(risk=Float64())

    def known(self, names: np.ndarray) -> np.ndarray:
        return np.array(COUNTRIES)

    def preprocess(self, batch: Batch) -> np.ndarray:
        names = np.array(batch["country"].to_pylist())
        places = np.searchsorted(self.known(names), names)
        return np.eye(len(COUNTRIES))[places]

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return (inputs * (0.1, 0.35, 0.2, 0.6, 0.45, 0.8)).sum(axis=1)

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"risk": outputs}


class Broken(Twin):
    def known(self, names: np.ndarray) -> np.ndarray:
        return np.unique(names)


def rows() -> pa.Table:
    return table_of({"country": countries(__name__)})
