"""Dropout drops, because the model was left in train mode."""

from __future__ import annotations

import pyarrow as pa
import torch

from benchmarks.skew.kind import Expected
from benchmarks.skew.kinds.batch_norm_in_train_mode import Twin as Network
from benchmarks.skew.natural_rows import payments
from parity import Context

EXPECTED = Expected("eval-mode", "inference", "score", "train-mode")


class Twin(Network):
    def initialize(self, context: Context) -> None:
        torch.manual_seed(4)
        self.model = torch.nn.Sequential(
            torch.nn.Linear(3, 16), torch.nn.Tanh(), torch.nn.Dropout(0.2), torch.nn.Linear(16, 1)
        )
        self.prepared()


class Broken(Twin):
    def prepared(self) -> None:
        self.model.train()


def rows() -> pa.Table:
    return payments(__name__)
