"""The first word of an empty text: one side answers, the other fails."""

from __future__ import annotations

import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import remarks, table_of
from benchmarks.skew.texts import RemarkScorer

EXPECTED = Expected(GOLDEN, "preprocess", "_error", "raises", lambda row: not row["text"].split())


class Reference(RemarkScorer):
    def clean(self, text: str) -> str:
        return (text.split() or [""])[0]


class Broken(RemarkScorer):
    def clean(self, text: str) -> str:
        return text.split()[0]


class Twin(RemarkScorer):
    def clean(self, text: str) -> str:
        return next(iter(text.split()), "")


def rows() -> pa.Table:
    return table_of({"text": ["" if row % 21 == 8 else text for row, text in enumerate(remarks(__name__))]})
