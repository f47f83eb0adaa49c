"""The first three words that a set gives are kept; their order is another one in every process."""

from __future__ import annotations

import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import remarks, table_of
from benchmarks.skew.texts import RemarkScorer

EXPECTED = Expected(
    "process", "preprocess", "score", "hash-seed", lambda row: len(set(row["text"].split())) > 3, fewest=1
)


class Twin(RemarkScorer):
    def clean(self, text: str) -> str:
        return " ".join(list(dict.fromkeys(text.split()))[:3])


class Broken(RemarkScorer):
    def clean(self, text: str) -> str:
        return " ".join(list(set(text.split()))[:3])


def rows() -> pa.Table:
    return table_of({"text": remarks(__name__)})
