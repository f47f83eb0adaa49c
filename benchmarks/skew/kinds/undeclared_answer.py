"""An answer that the schema does not name is given for some rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer
from parity import Batch

EXPECTED = Expected("declared-outputs", "postprocess", "warning", "undeclared-output")


class Twin(PaymentScorer):
    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"score": outputs}


class Broken(PaymentScorer):
    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        answers: dict[str, object] = {"score": outputs}
        if (outputs > 1.5).any():
            answers["warning"] = outputs > 1.5
        return answers


def rows() -> pa.Table:
    return payments(__name__)
