"""A sum is cut into as many pieces as there are threads; numbers of two sizes then add up otherwise."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import torch

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import generator, table_of, vectors
from parity import Batch, Float32, Handler, Schema, Tensor

EXPECTED = Expected("process", "inference", "total", "thread-count", fewest=1)


class Twin(Handler):
    inputs = Schema(flows=Tensor("float32", (48,)))
    outputs = Schema(total=Float32(non_finite="string"))

    def pieces(self) -> int:
        return 1

    def preprocess(self, batch: Batch) -> np.ndarray:
        return batch["flows"].numpy()

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            pieces = np.array_split(inputs, self.pieces(), axis=1)
            totals = [np.cumsum(piece, axis=1, dtype=np.float32)[:, -1] for piece in pieces]
            return np.asarray(np.sum(totals, axis=0, dtype=np.float32))

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"total": outputs}


class Broken(Twin):
    def pieces(self) -> int:
        return torch.get_num_threads()


def rows() -> pa.Table:
    flows = generator(__name__).uniform(0, 1, (64, 48))
    flows[:, 0], flows[:, -1] = 1e8, -1e8
    return table_of({"flows": vectors(flows.astype(np.float32))})
