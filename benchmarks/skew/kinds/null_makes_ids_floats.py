"""pandas makes a column of integers floats when a neighbour is null: "k_7" becomes "k_7.0"."""

from __future__ import annotations

import zlib

import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import generator, table_of
from parity import Batch, Float32, Handler, Int64, Schema

EXPECTED = Expected(
    "batch-size",
    "preprocess",
    "score",
    "null-promotes-dtype",
    lambda row: row["shop"] is not None,
    beside=lambda row: row["shop"] is None,
    fewest=2,
)


class Twin(Handler):
    inputs = Schema(shop=Int64(nullable=True))
    outputs = Schema(score=Float32())

    def keys(self, shops: list[int | None]) -> list[str]:
        return ["none" if shop is None else f"k_{shop}" for shop in shops]

    def preprocess(self, batch: Batch) -> list[str]:
        return self.keys(batch["shop"].to_pylist())

    def inference(self, inputs: list[str]) -> np.ndarray:
        return np.array([zlib.crc32(key.encode()) % 1000 / 1000 for key in inputs], np.float32)

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"score": outputs}


class Broken(Twin):
    def keys(self, shops: list[int | None]) -> list[str]:
        frame = pd.DataFrame({"shop": shops})
        keys = "k_" + frame["shop"].astype(str)
        return keys.where(frame["shop"].notna(), "none").tolist()


def rows() -> pa.Table:
    shops = generator(__name__).integers(1, 500, 64).tolist()
    return table_of({"shop": pa.array([None if row % 12 == 9 else shop for row, shop in enumerate(shops)])})
