"""torch.from_numpy shares the memory of the rows, and an in-place operation writes into it."""

from __future__ import annotations

import warnings

import numpy as np
import pyarrow as pa
import torch

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import DEVIATIONS, MEANS, PaymentScorer
from parity import Batch

EXPECTED = Expected("inputs-untouched", "preprocess", "amount", "input-mutated")


class Twin(PaymentScorer):
    def tensor(self, batch: Batch, name: str) -> torch.Tensor:
        return batch[name].torch()

    def preprocess(self, batch: Batch) -> np.ndarray:
        scaled = [
            self.tensor(batch, name).sub_(mean).div_(deviation)
            for name, mean, deviation in zip(batch.schema, MEANS, DEVIATIONS, strict=True)
        ]
        return torch.stack(scaled, dim=1).numpy()


class Broken(Twin):
    def tensor(self, batch: Batch, name: str) -> torch.Tensor:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of a read-only array, once
            return torch.from_numpy(batch[name].numpy())


def rows() -> pa.Table:
    return payments(__name__)
