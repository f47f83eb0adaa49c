"""lower() on one side, casefold() on the other; only ß, İ and their like show it."""

from __future__ import annotations

import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import remarks, table_of
from benchmarks.skew.texts import RemarkScorer

EXPECTED = Expected(
    GOLDEN,
    "preprocess",
    "score",
    "text-normalisation",
    lambda row: row["text"].lower() != row["text"].casefold(),
)


class Reference(RemarkScorer):
    def clean(self, text: str) -> str:
        return text.casefold()


class Broken(RemarkScorer):
    def clean(self, text: str) -> str:
        return text.lower()


class Twin(RemarkScorer):
    def clean(self, text: str) -> str:
        return "".join(letter.casefold() for letter in text)


def rows() -> pa.Table:
    texts = remarks(__name__)
    return table_of(
        {"text": [f"{text} Große Klasse" if row % 9 == 4 else text for row, text in enumerate(texts)]}
    )
