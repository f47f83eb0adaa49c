"""A positional encoding is added along the batch and not along the sequence."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import generator, table_of, vectors
from parity import Batch, Float32, Handler, Schema, Tensor

EXPECTED = Expected("order", "inference", "score", "position", fewest=2)

ENCODING = np.sin(np.arange(4096)[:, None] / 10.0 ** np.arange(4)).astype(np.float32)


class Twin(Handler):
    inputs = Schema(steps=Tensor("float32", (6, 4)))
    outputs = Schema(score=Float32(non_finite="string"))

    def encoded(self, steps: np.ndarray) -> np.ndarray:
        return steps + ENCODING[: steps.shape[1]][None, :, :]

    def preprocess(self, batch: Batch) -> np.ndarray:
        return batch["steps"].numpy()

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.tanh(self.encoded(inputs)).reshape(len(inputs), -1).mean(axis=1)

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"score": outputs.astype(np.float32)}


class Broken(Twin):
    def encoded(self, steps: np.ndarray) -> np.ndarray:
        return steps + ENCODING[: steps.shape[0]][:, None, :]


def rows() -> pa.Table:
    steps = generator(__name__).normal(size=(64, 24)).astype(np.float32)
    return table_of({"steps": vectors(steps)})
