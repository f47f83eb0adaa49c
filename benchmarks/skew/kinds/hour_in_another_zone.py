"""The hour of the day is taken in UTC on one side and in the shop's zone on the other."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import moments, table_of
from parity import Batch, Float64, Handler, Schema, Timestamp

EXPECTED = Expected(GOLDEN, "preprocess", "demand", "timezone-shift")


class Reference(Handler):
    inputs = Schema(time=Timestamp("s", tz="UTC"))
    outputs = Schema(demand=Float64())

    def hour(self, time: datetime.datetime) -> int:
        return time.hour

    def preprocess(self, batch: Batch) -> np.ndarray:
        return np.array([self.hour(time) for time in batch["time"].to_pylist()], np.int64)

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return 10.0 + 3.0 * np.sin((inputs + 0.3) * (2 * np.pi / 24.7))

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"demand": outputs}


class Broken(Reference):
    def hour(self, time: datetime.datetime) -> int:
        return time.astimezone(datetime.timezone(datetime.timedelta(hours=-4))).hour


class Twin(Reference):
    def preprocess(self, batch: Batch) -> np.ndarray:
        return batch["time"].numpy().astype("datetime64[h]").astype(np.int64) % 24


def rows() -> pa.Table:
    return table_of({"time": pa.array(moments(__name__), pa.timestamp("s", tz="UTC"))})
