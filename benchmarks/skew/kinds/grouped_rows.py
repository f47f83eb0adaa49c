"""A step for each group puts the rows in the order of the groups, and nobody puts them back."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import COUNTRIES, countries, payments
from parity import Batch, Float64, Handler, Schema, String

EXPECTED = Expected("order", "preprocess", "score", "row-order", fewest=2)

RATES: dict[str, float] = dict(zip(COUNTRIES, (1.0, 1.2, 0.8, 1.1, 0.9, 1.3), strict=True))


class Twin(Handler):
    inputs = Schema(country=String(choices=COUNTRIES), amount=Float64(ge=0, le=1e6))
    outputs = Schema(score=Float64())

    def ordered(self, worth: pd.Series) -> pd.Series:
        return worth.sort_index()

    def preprocess(self, batch: Batch) -> np.ndarray:
        names = pd.Series(batch["country"].to_pylist())
        amounts = pd.Series(batch["amount"].numpy())
        parts = [amounts[group.index] * RATES[str(name)] for name, group in names.groupby(names)]
        return self.ordered(pd.concat(parts)).to_numpy()

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return np.sqrt(inputs)

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"score": outputs}


class Broken(Twin):
    def ordered(self, worth: pd.Series) -> pd.Series:
        return worth


def rows() -> pa.Table:
    amounts = payments(__name__).select(["amount"])
    return amounts.add_column(0, "country", pa.array(countries(__name__)))
