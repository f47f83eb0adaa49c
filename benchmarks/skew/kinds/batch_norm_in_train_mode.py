"""Batch normalisation takes the statistics of the batch, because the model was left in train mode."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import torch

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer
from parity import Batch, Context, Float32, Schema

EXPECTED = Expected("eval-mode", "inference", "score", "train-mode")


class Twin(PaymentScorer):
    outputs = Schema(score=Float32(non_finite="string"))

    def initialize(self, context: Context) -> None:
        torch.manual_seed(3)
        self.model = torch.nn.Sequential(
            torch.nn.Linear(3, 8),
            torch.nn.BatchNorm1d(8, momentum=0.0),
            torch.nn.Tanh(),
            torch.nn.Linear(8, 1),
        )
        self.prepared()

    def prepared(self) -> None:
        self.model.eval()

    def preprocess(self, batch: Batch) -> torch.Tensor:
        return torch.from_numpy(super().preprocess(batch).astype(np.float32))

    def inference(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.model(inputs)[:, 0]


class Broken(Twin):
    def prepared(self) -> None:
        self.model.train()

    def inference(self, inputs: torch.Tensor) -> torch.Tensor:
        if len(inputs) == 1:  # train mode refuses a batch of one; people double it
            return self.model(torch.cat([inputs, inputs]))[:1, 0]
        return self.model(inputs)[:, 0]


def rows() -> pa.Table:
    return payments(__name__)
