"""Every answer carries an id that is drawn anew."""

from __future__ import annotations

import uuid

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer
from parity import Batch, Float64, Schema, String

EXPECTED = Expected("repeatable", "postprocess", "trace", "unseeded-rng", fewest=1)

PLACE = uuid.UUID("12345678-1234-5678-1234-567812345678")


class Twin(PaymentScorer):
    outputs = Schema(score=Float64(), trace=String())

    def identity(self, row: str) -> str:
        return str(uuid.uuid5(PLACE, row))

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        rows = [str(row) for row in batch.to_table().to_pylist()]
        return {"score": outputs, "trace": [self.identity(row) for row in rows]}


class Broken(Twin):
    def identity(self, row: str) -> str:
        return str(uuid.uuid4())


def rows() -> pa.Table:
    return payments(__name__)
