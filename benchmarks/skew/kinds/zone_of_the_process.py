"""datetime.fromtimestamp takes the zone of the process."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import moments, table_of
from parity import Batch, Float64, Handler, Int64, Schema

EXPECTED = Expected("process", "preprocess", "demand", "timezone-of-process", fewest=1)


class Twin(Handler):
    inputs = Schema(seconds=Int64(ge=0, le=4_000_000_000))
    outputs = Schema(demand=Float64())

    def hour(self, seconds: int) -> int:
        return datetime.datetime.fromtimestamp(seconds, datetime.UTC).hour

    def preprocess(self, batch: Batch) -> np.ndarray:
        return np.array([self.hour(seconds) for seconds in batch["seconds"].to_pylist()], np.int64)

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return 10.0 + 3.0 * np.sin((inputs + 0.3) * (2 * np.pi / 24.7))

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"demand": outputs}


class Broken(Twin):
    def hour(self, seconds: int) -> int:
        return datetime.datetime.fromtimestamp(seconds).hour


def rows() -> pa.Table:
    return table_of({"seconds": [int(moment.timestamp()) for moment in moments(__name__)]})
