from __future__ import annotations

import unicodedata
import zlib
from typing import Any

import numpy as np
import pytest

from parity import Batch, Bytes, Float64, Handler, Schema, String
from tests.triage.divergences import against, by_hand, claims, denies, table_of

TEXTS = ["Große Straße", "Café", "plain", "Ünïcode  two", "x²"]


class Hashed(Handler):
    """The text only shows as a bucket."""

    inputs = Schema(text=String())
    outputs = Schema(bucket=Float64())

    def clean(self, text: str) -> str:
        return text

    def preprocess(self, batch: Batch) -> Any:
        texts = [self.clean(text) for text in batch["text"].to_pylist()]
        return np.array([zlib.crc32(text.encode()) % 99991 for text in texts], np.int64)

    def inference(self, inputs: Any) -> Any:
        return inputs / 7.0

    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"bucket": outputs}


class Lowered(Hashed):
    def clean(self, text: str) -> str:
        return text.lower()


class Folded(Hashed):
    def clean(self, text: str) -> str:
        return text.casefold()


class Composed(Hashed):
    def clean(self, text: str) -> str:
        return unicodedata.normalize("NFC", text)


class Stripped(Hashed):
    def clean(self, text: str) -> str:
        return text.strip()


class Reversed(Hashed):
    def clean(self, text: str) -> str:
        return text[::-1]


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (str.strip, "strip()"),
        (str.lower, "lower()"),
        (lambda text: unicodedata.normalize("NFD", text), "NFC"),
        (lambda text: unicodedata.normalize("NFKC", text), "NFKC"),
        (lambda text: text.replace(" ", "\u00a0"), "non-breaking spaces"),
        (lambda text: text.replace(" ", "  "), "white space as single blanks"),
        (lambda text: text.replace("a", "a\u200b"), "invisible"),
        (lambda text: text.upper() + " ", "all of these together"),
    ],
)
def test_texts_in_another_normal_form(change: Any, name: str) -> None:
    texts = [f" {text}" for text in TEXTS] if name == "strip()" else TEXTS
    found = claims("text-normalisation", by_hand(texts, [change(text) for text in texts]))
    assert found.cause is not None
    assert name in found.cause.evidence


def test_lists_of_words_cut_at_other_spaces() -> None:
    one = ['["new york", "is"]', '["a", "b"]']
    found = claims("text-normalisation", by_hand(one, ['["new", "york", "is"]', '["a", "b"]']))
    assert found.rows == (0,)


@pytest.mark.parametrize(
    ("reference", "handler", "text", "name"),
    [
        (Composed, Hashed, "Cafe\u0301", "NFC"),
        (Folded, Lowered, "Straße", "casefold()"),
        (Stripped, Hashed, "Spain ", "strip()"),
        (Lowered, Hashed, "Spain", "lower()"),
    ],
)
def test_a_normal_form_that_no_stage_shows_is_asked_again(
    reference: type[Handler], handler: type[Handler], text: str, name: str
) -> None:
    rows = table_of(Hashed, [{"text": "one"}, {"text": text}, {"text": "two"}])
    with against(reference, handler, rows) as (divergence, engine):
        found = claims("text-normalisation", divergence, engine)
    assert found.rows == (1,)
    assert found.cause is not None
    assert name in found.cause.evidence
    assert "gives the other side's values" in found.cause.evidence


def test_the_other_way_round_the_handler_does_not_tell_the_forms_apart() -> None:
    rows = table_of(Hashed, [{"text": text} for text in ("one", "two", "ONE", "six", "ten", "Two")])
    with against(Hashed, Lowered, rows) as (divergence, engine):
        found = claims("text-normalisation", divergence, engine)
    assert found.cause is not None
    assert "exactly the 2 rows differ" in found.cause.evidence


def test_texts_that_say_something_else_are_no_matter_of_form() -> None:
    rows = table_of(Hashed, [{"text": text} for text in ("level", "abc", "noon", "Xyz")])
    with against(Hashed, Reversed, rows) as (divergence, engine):
        assert denies("text-normalisation", divergence, engine)
    assert denies("text-normalisation", by_hand(["a", "b"], ["a", "c"]))


@pytest.mark.parametrize(
    ("one", "other", "length"),
    [
        (["abcdefgh", "abcdefghij"], ["abcd", "abcd"], "4 characters"),
        (["a b c d e", "f gg h i"], ["a b c", "f gg h"], "3 words"),
        ([np.arange(5), np.arange(7)], [np.arange(3), np.arange(3)], "3 items"),
        ([np.arange(1, 7)] * 2, [np.array([1, 2, 3, 4, 0, 0])] * 2, "4 items"),
    ],
)
def test_sequences_cut_at_one_length(one: Any, other: Any, length: str) -> None:
    for sides in ((one, other), (other, one)):
        found = claims("truncation", by_hand(*sides))
        assert found.cause is not None
        assert length in found.cause.evidence


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["abcdefgh", "abcdefghij"], ["abcd", "xbcd"]),
        (["abcdefgh", "abcdefghij"], ["ab", "abcdefg"]),
        ([np.arange(4)], [np.arange(4) + 1]),
        (["foxes jump", "the dog"], ["foxes", "th"]),
    ],
)
def test_sequences_that_are_not_cut(one: Any, other: Any) -> None:
    assert denies("truncation", by_hand(one, other))


class Documents(Handler):
    inputs = Schema(data=Bytes())
    outputs = Schema(text=String())
    encoding = "utf-8"

    def preprocess(self, batch: Batch) -> Any:
        return [data.decode(self.encoding) for data in batch["data"].to_pylist()]

    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"text": outputs}


class Latin(Documents):
    encoding = "latin-1"


def test_bytes_read_in_another_encoding() -> None:
    rows = table_of(Documents, [{"data": text.encode()} for text in ("plain", "très bien", "Ω")])
    with against(Documents, Latin, rows) as (divergence, engine):
        found = claims("text-encoding", divergence, engine)
    assert found.rows == (1, 2)
    assert found.cause is not None
    assert "latin-1" in found.cause.sentence
    assert denies("text-encoding", by_hand(["très", "a"], ["tres", "a"]))
