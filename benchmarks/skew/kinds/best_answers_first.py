"""postprocess sorts the answers, best first."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer
from parity import Batch

EXPECTED = Expected("order", "postprocess", "score", "row-order", fewest=2)


class Twin(PaymentScorer):
    pass


class Broken(PaymentScorer):
    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"score": np.sort(outputs)[::-1]}


def rows() -> pa.Table:
    return payments(__name__)
