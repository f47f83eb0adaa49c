"""One side strips texts, the other keeps the blanks at their ends; a lookup by text then misses."""

from __future__ import annotations

import zlib

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import countries, table_of
from parity import Batch, Float32, Handler, Schema, String

EXPECTED = Expected(
    GOLDEN, "preprocess", "risk", "text-normalisation", lambda row: row["country"] != row["country"].strip()
)


class Reference(Handler):
    inputs = Schema(country=String())
    outputs = Schema(risk=Float32())

    def key(self, text: str) -> str:
        return text.strip()

    def preprocess(self, batch: Batch) -> list[str]:
        return [self.key(text) for text in batch["country"].to_pylist()]

    def inference(self, inputs: list[str]) -> np.ndarray:
        return np.array([zlib.crc32(key.encode()) % 1000 / 1000 for key in inputs], np.float32)

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"risk": outputs}


class Broken(Reference):
    def key(self, text: str) -> str:
        return text


class Twin(Reference):
    def key(self, text: str) -> str:
        return text.lstrip().rstrip()


def rows() -> pa.Table:
    names = countries(__name__)
    return table_of({"country": [f"{name} " if row % 13 == 2 else name for row, name in enumerate(names)]})
