"""`value or default` takes 0 for missing; null is what was meant."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import generator, table_of
from parity import Batch, Float64, Handler, Int64, Schema

EXPECTED = Expected(GOLDEN, "preprocess", "score", "null-nan-missing", lambda row: row["visits"] == 0)

DEFAULT = 3


class Reference(Handler):
    inputs = Schema(visits=Int64(nullable=True))
    outputs = Schema(score=Float64())

    def known(self, visits: int | None) -> int:
        return DEFAULT if visits is None else visits

    def preprocess(self, batch: Batch) -> np.ndarray:
        return np.array([self.known(visits) for visits in batch["visits"].to_pylist()], np.int64)

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return 0.5 + 0.25 * inputs

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"score": outputs}


class Broken(Reference):
    def known(self, visits: int | None) -> int:
        return visits or DEFAULT


class Twin(Reference):
    def preprocess(self, batch: Batch) -> np.ndarray:
        return batch["visits"].fill_null(DEFAULT).numpy()


def rows() -> pa.Table:
    visits: list[int | None] = generator(__name__).integers(1, 40, 64).tolist()
    visits[2::10] = [None] * len(visits[2::10])
    visits[5::12] = [0] * len(visits[5::12])
    return table_of({"visits": pa.array(visits, pa.int64())})
