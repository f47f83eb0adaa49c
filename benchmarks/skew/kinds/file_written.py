"""Every batch leaves a file behind that nobody declared."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import payments
from benchmarks.skew.tables import PaymentScorer
from parity import Batch

EXPECTED = Expected("declared-access", "postprocess", "", "undeclared-write")


class Twin(PaymentScorer):
    def note(self, rows: int) -> None:
        pass

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        self.note(len(outputs))
        return {"score": outputs}


class Broken(Twin):
    def note(self, rows: int) -> None:
        last = Path(tempfile.gettempdir()) / f"payments-{os.getpid()}.txt"
        last.write_text(f"{rows} rows\n", encoding="utf-8")
        last.unlink()


def rows() -> pa.Table:
    return payments(__name__)
