"""Nulls are sorted to the front by one library and to the end by the other: another value stands first."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import generator, table_of
from parity import Batch, Float64, Handler, List, Schema

EXPECTED = Expected(
    GOLDEN,
    "preprocess",
    "cheapest",
    "null-order",
    lambda row: None in row["prices"] and len(set(row["prices"])) > 1,
)

KEPT = 4


class Reference(Handler):
    inputs = Schema(prices=List(Float64(ge=0, le=1e6, nullable=True)))
    outputs = Schema(cheapest=Float64(non_finite="string"))

    def ordered(self, prices: list[float | None]) -> list[float | None]:
        return sorted(prices, key=lambda price: (price is None, price or 0.0))

    def preprocess(self, batch: Batch) -> np.ndarray:
        kept = [(self.ordered(prices) + [None] * KEPT)[:KEPT] for prices in batch["prices"].to_pylist()]
        return np.array([[np.nan if price is None else price for price in prices] for prices in kept])

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return inputs[:, 0]

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"cheapest": outputs}


class Broken(Reference):
    def ordered(self, prices: list[float | None]) -> list[float | None]:
        return sorted(prices, key=lambda price: (price is not None, price or 0.0))


class Twin(Reference):
    def ordered(self, prices: list[float | None]) -> list[float | None]:
        known = sorted(price for price in prices if price is not None)
        return [*known, *[None] * (len(prices) - len(known))]


def rows() -> pa.Table:
    rng = generator(__name__)
    prices: list[list[float | None]] = [np.round(rng.uniform(5, 80, 4), 2).tolist() for _ in range(64)]
    for row in range(1, 64, 7):
        prices[row][row % 4] = None
    return table_of({"prices": pa.array(prices, pa.list_(pa.float64()))})
