"""A feature is the age of the account now; scored days later it is another one."""

from __future__ import annotations

import datetime
import time

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import moments, table_of
from parity import Batch, Float64, Handler, Int64, Schema

EXPECTED = Expected("clock", "preprocess", "trust", "wall-clock", fewest=1)

ASKED = datetime.date(2025, 6, 1)


class Twin(Handler):
    inputs = Schema(opened=Int64(ge=0, le=4_000_000_000))
    outputs = Schema(trust=Float64())

    def today(self) -> datetime.date:
        return ASKED

    def preprocess(self, batch: Batch) -> np.ndarray:
        days = (self.today() - datetime.date(1970, 1, 1)).days
        return days - batch["opened"].numpy() // 86400

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return 0.25 * inputs

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"trust": outputs}


class Broken(Twin):
    def today(self) -> datetime.date:
        return datetime.datetime.fromtimestamp(time.time(), datetime.UTC).date()


def rows() -> pa.Table:
    return table_of({"opened": [int(moment.timestamp()) for moment in moments(__name__)]})
