"""split(" ") keeps a non-breaking space inside a word, split() cuts there."""

from __future__ import annotations

import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import remarks, table_of
from benchmarks.skew.texts import RemarkScorer

EXPECTED = Expected(GOLDEN, "preprocess", "score", "text-normalisation", lambda row: "\u00a0" in row["text"])


class Reference(RemarkScorer):
    def clean(self, text: str) -> str:
        return " ".join(text.split())


class Broken(RemarkScorer):
    def clean(self, text: str) -> str:
        return " ".join(word for word in text.split(" ") if word)

    def words(self, text: str) -> list[str]:
        return text.split(" ")


class Twin(RemarkScorer):
    def clean(self, text: str) -> str:
        return " ".join(text.replace("\u00a0", " ").split())


def rows() -> pa.Table:
    texts = remarks(__name__)
    return table_of(
        {
            "text": [
                text.replace(" ", "\u00a0", 1) if row % 10 == 6 else text for row, text in enumerate(texts)
            ]
        }
    )
