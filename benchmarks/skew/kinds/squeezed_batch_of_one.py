"""squeeze() takes away the batch axis of a batch of one, and the mean then runs over the wrong one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import generator, table_of, vectors
from parity import Batch, Float64, Handler, Schema, Tensor

EXPECTED = Expected("batch-size", "inference", "score", "squeezed-axis", fewest=2)


class Twin(Handler):
    inputs = Schema(image=Tensor("float64", (1, 4, 6)))
    outputs = Schema(score=Float64(non_finite="string"))

    def flat(self, inputs: np.ndarray) -> np.ndarray:
        return inputs.reshape(-1, 4, 6)

    def preprocess(self, batch: Batch) -> np.ndarray:
        return batch["image"].numpy()

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            lines = self.flat(inputs).max(axis=1)
            return (lines * np.arange(1, lines.shape[-1] + 1)).sum(axis=-1).reshape(len(inputs))

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"score": outputs}


class Broken(Twin):
    def flat(self, inputs: np.ndarray) -> np.ndarray:
        return inputs.squeeze()  # a batch of one becomes a picture, whose lines are then taken for pictures


def rows() -> pa.Table:
    images = generator(__name__).uniform(0, 1, (64, 24))
    return table_of({"image": vectors(images)})
