"""The names of the classes stand in another order than the model's: the right class, the wrong name."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected, Side
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer
from parity import Batch, Context, Schema, String

EXPECTED = Expected(GOLDEN, "postprocess", "segment", "label-map")

SEGMENTS = ["regular", "new", "lapsed", "loyal"]


class Reference(PaymentScorer):
    outputs = Schema(segment=String(choices=tuple(SEGMENTS)))

    def initialize(self, context: Context) -> None:
        self.names: list[str] = context.load_json("labels.json")

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return np.digitize((inputs * self.weights).sum(axis=1), [-0.6, 0.0, 0.6])

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"segment": [self.names[place] for place in outputs.tolist()]}


class Broken(Reference):
    pass


class Twin(Reference):
    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"segment": np.array(self.names)[outputs].tolist()}


def artifacts(side: Side) -> dict[str, bytes]:
    names = sorted(SEGMENTS) if side == "Broken" else SEGMENTS
    return {"labels.json": json.dumps(names).encode()}


def rows() -> pa.Table:
    return payments(__name__)
