"""Bytes are read as Latin-1 on one side and as UTF-8 on the other; ASCII hides it."""

from __future__ import annotations

import zlib

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import remarks, table_of
from parity import Batch, Bytes, Float32, Handler, Schema

EXPECTED = Expected(GOLDEN, "preprocess", "score", "text-encoding", lambda row: not row["document"].isascii())


class Reference(Handler):
    inputs = Schema(document=Bytes())
    outputs = Schema(score=Float32())

    def text(self, document: bytes) -> str:
        return document.decode("utf-8", "replace")

    def preprocess(self, batch: Batch) -> list[str]:
        return [self.text(document) for document in batch["document"].to_pylist()]

    def inference(self, inputs: list[str]) -> np.ndarray:
        return np.array([zlib.crc32(text.encode()) % 1000 / 1000 for text in inputs], np.float32)

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"score": outputs}


class Broken(Reference):
    def text(self, document: bytes) -> str:
        return document.decode("latin-1")


class Twin(Reference):
    def text(self, document: bytes) -> str:
        return str(document, "utf-8", errors="replace")


def rows() -> pa.Table:
    texts = [f"{text} très bien" if row % 8 == 1 else text for row, text in enumerate(remarks(__name__))]
    return table_of({"document": pa.array([text.encode() for text in texts], pa.binary())})
