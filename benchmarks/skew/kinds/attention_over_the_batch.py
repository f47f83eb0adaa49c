"""Attention without batch_first: it takes the rows for the sequence and looks at the neighbours."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import torch

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import generator, table_of, vectors
from parity import Batch, Context, Float32, Handler, Schema, Tensor

EXPECTED = Expected("batch-size", "inference", "score", "batch-statistics", fewest=2)


class Twin(Handler):
    inputs = Schema(steps=Tensor("float32", (5, 8)))
    outputs = Schema(score=Float32(non_finite="string"))
    batch_first = True

    def initialize(self, context: Context) -> None:
        torch.manual_seed(5)
        self.model = torch.nn.MultiheadAttention(8, 2, batch_first=self.batch_first).eval()

    def preprocess(self, batch: Batch) -> torch.Tensor:
        return batch["steps"].torch()

    def inference(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.model(inputs, inputs, inputs, need_weights=False)[0].mean(dim=(1, 2))

    def postprocess(self, outputs: torch.Tensor, batch: Batch) -> dict[str, object]:
        return {"score": outputs}


class Broken(Twin):
    batch_first = False


def rows() -> pa.Table:
    steps = generator(__name__).normal(size=(64, 40)).astype(np.float32)
    inner = vectors(steps)
    return table_of({"steps": inner})
