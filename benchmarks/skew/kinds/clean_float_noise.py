"""Clean: a small network in float32, whose matrix products add in another order in another batch."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import torch

from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer
from parity import Batch, Context, Float32, Schema


class Reference(PaymentScorer):
    outputs = Schema(score=Float32(non_finite="string"))

    def initialize(self, context: Context) -> None:
        torch.manual_seed(9)
        self.model = torch.nn.Sequential(
            torch.nn.Linear(3, 64),
            torch.nn.Tanh(),
            torch.nn.Linear(64, 64),
            torch.nn.Tanh(),
            torch.nn.Linear(64, 1),
        ).eval()

    def preprocess(self, batch: Batch) -> torch.Tensor:
        return torch.from_numpy(super().preprocess(batch).astype(np.float32))

    def inference(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.model(inputs)[:, 0]


class Twin(Reference):
    def inference(self, inputs: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.model(piece)[:, 0] for piece in inputs.split(5)])


def rows() -> pa.Table:
    return payments(__name__)
