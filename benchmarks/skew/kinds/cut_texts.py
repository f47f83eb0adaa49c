"""One side cuts texts after 64 characters, the other after 256; short texts hide it."""

from __future__ import annotations

import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import remarks, table_of
from benchmarks.skew.texts import RemarkScorer

EXPECTED = Expected(GOLDEN, "preprocess", "score", "truncation", lambda row: len(row["text"]) > 64)


class Reference(RemarkScorer):
    def clean(self, text: str) -> str:
        return text[:256]


class Broken(RemarkScorer):
    def clean(self, text: str) -> str:
        return text[:64]


class Twin(RemarkScorer):
    def clean(self, text: str) -> str:
        return "".join(letter for place, letter in enumerate(text) if place < 256)


def rows() -> pa.Table:
    texts = [text[:64] for text in remarks(__name__)]
    return table_of(
        {"text": [f"{text}, {texts[0]}" if row % 11 == 5 else text for row, text in enumerate(texts)]}
    )
