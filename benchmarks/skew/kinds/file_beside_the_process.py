"""A file is opened by a relative path: found where the notebook was started, and not where the server was."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected, Side
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer
from parity import Context

EXPECTED = Expected("process", "inference", "score", "working-directory", fewest=1)


class Twin(PaymentScorer):
    def initialize(self, context: Context) -> None:
        found = self.place(context)
        self.boost = float(json.loads(found.read_text(encoding="utf-8"))) if found.is_file() else 1.0

    def place(self, context: Context) -> Path:
        return context.path("boost.json")

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return self.boost * (inputs * self.weights).sum(axis=1)


class Broken(Twin):
    def place(self, context: Context) -> Path:
        return Path("boost.json")


def artifacts(side: Side) -> dict[str, bytes]:
    del side
    return {"boost.json": b"1.5\n"}


def rows() -> pa.Table:
    return payments(__name__)
