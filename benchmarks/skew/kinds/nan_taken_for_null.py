"""A frame library takes NaN for null and fills it too."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import payments, table_of
from parity import Batch, Float64, Handler, Schema

EXPECTED = Expected(
    GOLDEN,
    "preprocess",
    "score",
    "null-nan-missing",
    lambda row: row["amount"] is not None and row["amount"] != row["amount"],
)


class Reference(Handler):
    inputs = Schema(amount=Float64(nullable=True))
    outputs = Schema(score=Float64(non_finite="string"))

    def filled(self, amounts: list[float | None]) -> np.ndarray:
        return np.array([0.0 if amount is None else amount for amount in amounts])

    def preprocess(self, batch: Batch) -> np.ndarray:
        return self.filled(batch["amount"].to_pylist())

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return 1.5 + 0.25 * inputs

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"score": outputs}


class Broken(Reference):
    def filled(self, amounts: list[float | None]) -> np.ndarray:
        return pd.Series(amounts, dtype="float64").fillna(0.0).to_numpy()


class Twin(Reference):
    def preprocess(self, batch: Batch) -> np.ndarray:
        return batch["amount"].fill_null(0.0).numpy()


def rows() -> pa.Table:
    amounts: list[float | None] = payments(__name__).column("amount").to_pylist()
    amounts[3::8] = [None] * len(amounts[3::8])
    amounts[6::16] = [float("nan")] * len(amounts[6::16])
    return table_of({"amount": pa.array(amounts, pa.float64(), from_pandas=False)})
