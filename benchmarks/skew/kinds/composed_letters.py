"""One side composes letters and accents (NFC), the other takes texts as they come."""

from __future__ import annotations

import unicodedata

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import remarks, table_of
from benchmarks.skew.texts import RemarkScorer, buckets
from parity import Batch

EXPECTED = Expected(
    GOLDEN,
    "preprocess",
    "score",
    "text-normalisation",
    lambda row: not unicodedata.is_normalized("NFC", row["text"]),
)


class Counting(RemarkScorer):
    """The words are counted in preprocess already, so that no stage's value shows the text."""

    def preprocess(self, batch: Batch) -> np.ndarray:
        return np.stack([buckets(self.words(self.clean(text))) for text in batch["text"].to_pylist()])

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return (inputs * np.random.default_rng(11).normal(size=inputs.shape[1])).sum(axis=1)


class Reference(Counting):
    def clean(self, text: str) -> str:
        return unicodedata.normalize("NFC", text)


class Broken(Counting):
    pass


class Twin(Counting):
    def clean(self, text: str) -> str:
        return text if text.isascii() else unicodedata.normalize("NFC", unicodedata.normalize("NFD", text))


def rows() -> pa.Table:
    texts = remarks(__name__)
    for row in range(0, len(texts), 3):
        texts[row] += " Café René"
    for row in range(0, len(texts), 12):
        texts[row] = unicodedata.normalize("NFD", texts[row])
    return table_of({"text": texts})
