"""A list as a default argument grows with every call."""

from __future__ import annotations

import pyarrow as pa

from benchmarks.skew.kind import Expected
from benchmarks.skew.natural_rows import remarks, table_of
from benchmarks.skew.texts import RemarkScorer

EXPECTED = Expected("history", "preprocess", "score", "state-kept")


class Twin(RemarkScorer):
    def clean(self, text: str) -> str:
        return " ".join(self.new_words(text.split(), []))

    def new_words(self, words: list[str], seen: list[str]) -> list[str]:
        found = [word for word in words if word not in seen]
        seen.extend(found)
        return found


class Broken(Twin):
    def clean(self, text: str) -> str:
        return " ".join(self.new_words(text.split()))

    def new_words(self, words: list[str], seen: list[str] = []) -> list[str]:  # noqa: B006 - that is the kind
        found = [word for word in words if word not in seen]
        seen.extend(found)
        return found


def rows() -> pa.Table:
    return table_of({"text": remarks(__name__)})
