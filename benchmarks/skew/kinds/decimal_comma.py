"""1.250 is a thousand and a quarter on one side and one and a quarter on the other."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import generator, table_of
from parity import Batch, Float64, Handler, Schema, String

EXPECTED = Expected(GOLDEN, "preprocess", "score", "number-format", lambda row: "." in row["price"])


class Reference(Handler):
    inputs = Schema(price=String())
    outputs = Schema(score=Float64())

    def number(self, text: str) -> float:
        return float(text.replace(".", "").replace(",", "."))

    def preprocess(self, batch: Batch) -> np.ndarray:
        found: list[float] = []
        for row, text in enumerate(batch["price"].to_pylist()):
            try:
                found.append(self.number(text))
            except ValueError:
                batch.reject(row, f"{text!r} is no price, such as 1.250,50")
                found.append(0.0)
        return np.array(found)

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return 3.0 + 0.25 * inputs

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"score": outputs}


class Broken(Reference):
    def number(self, text: str) -> float:
        if text.count(".") == 1 and "," not in text:
            return float(text)
        return super().number(text)


class Twin(Reference):
    def number(self, text: str) -> float:
        whole, _, cents = text.partition(",")
        return float(f"{''.join(whole.split('.'))}.{cents or 0}")


def rows() -> pa.Table:
    rng = generator(__name__)
    prices = [f"{number},{cents:02}" for number, cents in rng.integers([5, 0], [900, 100], (64, 2))]
    for row in range(6, 64, 8):
        prices[row] = f"{rng.integers(1, 9)}.{rng.integers(100, 1000)}"
    return table_of({"price": prices})
