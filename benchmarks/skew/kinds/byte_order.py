"""A packed record is read with the other byte order."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import generator, table_of
from parity import Batch, Bytes, Float64, Handler, Schema

EXPECTED = Expected(GOLDEN, "preprocess", "energy", "byte-order")


class Reference(Handler):
    inputs = Schema(record=Bytes())
    outputs = Schema(energy=Float64())
    order = "<"

    def preprocess(self, batch: Batch) -> np.ndarray:
        records = batch["record"].to_pylist()
        for row, record in enumerate(records):
            if len(record) != 8:
                batch.reject(row, "a record is 8 bytes")
        return np.stack([np.frombuffer(record.ljust(8, b"\0")[:8], f"{self.order}u2") for record in records])

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return (inputs.astype(np.float64) * (1.0, 2.0, 3.0, 4.0)).sum(axis=1)

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"energy": outputs}


class Broken(Reference):
    order = ">"


class Twin(Reference):
    def preprocess(self, batch: Batch) -> np.ndarray:
        records = batch["record"].to_pylist()
        for row, record in enumerate(records):
            if len(record) != 8:
                batch.reject(row, "a record is 8 bytes")
        return np.array([struct.unpack("<4H", record.ljust(8, b"\0")[:8]) for record in records], np.uint16)


def rows() -> pa.Table:
    samples = generator(__name__).integers(0, 4000, (64, 4)).astype("<u2")
    return table_of({"record": pa.array([sample.tobytes() for sample in samples], pa.binary())})
