"""Hints of near names, whatever the names are."""

from __future__ import annotations

import pytest

from parity.errors import DatasetError, RowError, StageError, did_you_mean
from parity.frame.errors import UnknownVerbError


def test_near_names_are_named_or_all_of_a_few() -> None:
    assert did_you_mean("scroe", ["score", "label"]) == "did you mean 'score'?"
    assert did_you_mean("zz", ["score", "label"]) == "known: 'label', 'score'"
    assert did_you_mean("zz", map(str, range(21))) == ""
    assert did_you_mean("zz", []) == ""


def test_a_callers_text_costs_little_and_is_cut() -> None:
    assert did_you_mean("ab" * 10_000_000, ["ab" * 200, "cd"]).startswith("did you mean 'abab")
    names = ["xy" * 10_000_000, "cd"]
    assert len(did_you_mean("ab", names)) < 300
    assert did_you_mean("inputs", (f"input{number}" for number in range(1_000_000_000))) == ""


@pytest.mark.parametrize("text", ["plain", "Grüße 🙂", "half \ud83d", "\udc00 and \ud800\ud83d"])
def test_what_errors_say_can_be_written(text: str) -> None:
    said = text.encode("utf-8", "backslashreplace").decode()
    assert RowError(0, "failed", text).message == RowError(1, "failed", text).at(2).message == said
    assert str(StageError(text, stage="inference")) == str(DatasetError(text)) == said
    with pytest.raises(UnknownVerbError) as caught:
        raise UnknownVerbError(text)
    assert str(caught.value) == said
