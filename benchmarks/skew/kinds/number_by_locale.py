"""A price is written with the comma or the point of the process's locale."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from parity import Batch, Float64, Handler, Schema, String

EXPECTED = Expected("process", "postprocess", "price", "locale", fewest=1)


class Twin(Handler):
    inputs = Schema(amount=Float64())
    outputs = Schema(price=String())

    def separator(self) -> str:
        return "."

    def preprocess(self, batch: Batch) -> np.ndarray:
        return batch["amount"].numpy()

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return inputs * 1.21

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"price": [f"{price:.2f}".replace(".", self.separator()) for price in outputs.tolist()]}


class Broken(Twin):
    def separator(self) -> str:
        # What formatting libraries do: the first of these that is set names the locale.
        named = next(
            (
                os.environ[name]
                for name in ("LANGUAGE", "LC_ALL", "LC_NUMERIC", "LANG")
                if os.environ.get(name)
            ),
            "",
        )
        return "," if named.partition("_")[0] in ("de", "es", "fr", "it", "tr") else "."


def rows() -> pa.Table:
    return payments(__name__).select(["amount"])
