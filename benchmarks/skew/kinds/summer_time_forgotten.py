"""One side adds a fixed hour, the other knows summer time; winter hides it."""

from __future__ import annotations

import datetime
import zoneinfo
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import moments, table_of
from parity import Batch, Float64, Handler, Schema, Timestamp

MADRID = zoneinfo.ZoneInfo("Europe/Madrid")

EXPECTED = Expected(
    GOLDEN,
    "preprocess",
    "demand",
    "timezone-shift",
    lambda row: row["time"].astimezone(MADRID).utcoffset() != datetime.timedelta(hours=1),
)


class Reference(Handler):
    inputs = Schema(time=Timestamp("s", tz="UTC"))
    outputs = Schema(demand=Float64())

    def hour(self, time: datetime.datetime) -> int:
        return time.astimezone(MADRID).hour

    def preprocess(self, batch: Batch) -> np.ndarray:
        return np.array([self.hour(time) for time in batch["time"].to_pylist()], np.int64)

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return 10.0 + 3.0 * np.sin((inputs + 0.3) * (2 * np.pi / 24.7))

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"demand": outputs}


class Broken(Reference):
    def hour(self, time: datetime.datetime) -> int:
        return (time + datetime.timedelta(hours=1)).hour


class Twin(Reference):
    def preprocess(self, batch: Batch) -> np.ndarray:
        local: Any = batch["time"].arrow.cast(pa.timestamp("s", tz="Europe/Madrid"))
        return np.asarray(pc.hour(local), np.int64)


def rows() -> pa.Table:
    return table_of({"time": pa.array(moments(__name__), pa.timestamp("s", tz="UTC"))})
