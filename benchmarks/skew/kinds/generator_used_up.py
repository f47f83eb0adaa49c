"""Names come from a generator that the first batch uses up; later ones get the stand-in."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer
from parity import Batch, Context, Schema, String

EXPECTED = Expected("repeatable", "postprocess", "segment", "generator-consumed", fewest=1)


def names() -> Iterator[str]:
    """The segments' names."""
    yield from ("lapsed", "new", "regular", "loyal")


class Twin(PaymentScorer):
    outputs = Schema(segment=String())

    def initialize(self, context: Context) -> None:
        self.names: Iterator[str] | list[str] = list(names())

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return np.digitize((inputs * self.weights).sum(axis=1), [-0.6, 0.0, 0.6])

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        known = dict(enumerate(self.names))
        return {"segment": [known.get(place, "other") for place in outputs.tolist()]}


class Broken(Twin):
    def initialize(self, context: Context) -> None:
        self.names = names()


def rows() -> pa.Table:
    return payments(__name__)
