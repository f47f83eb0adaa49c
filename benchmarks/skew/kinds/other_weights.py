"""The model online has other weights: every row differs, and none of it is numerics."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected, Side
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer
from parity import Context

EXPECTED = Expected(GOLDEN, "inference", "score", "weights")


class Reference(PaymentScorer):
    def initialize(self, context: Context) -> None:
        model = context.load_json("model.json")
        self.hidden, self.out = np.array(model["hidden"]), np.array(model["out"])

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        hidden = np.tanh((inputs[:, None, :] * self.hidden).sum(axis=2))
        return (hidden * self.out).sum(axis=1)


class Broken(Reference):
    pass


class Twin(Reference):
    def inference(self, inputs: np.ndarray) -> np.ndarray:
        layer = [(inputs * unit).sum(axis=1) for unit in self.hidden]
        return np.sum([np.tanh(unit) * weight for unit, weight in zip(layer, self.out, strict=True)], axis=0)


def artifacts(side: Side) -> dict[str, bytes]:
    rng = np.random.default_rng(4 if side == "Broken" else 3)
    model = {"hidden": rng.normal(size=(6, 3)).tolist(), "out": rng.normal(size=6).tolist()}
    return {"model.json": json.dumps(model).encode()}


def rows() -> pa.Table:
    return payments(__name__)
