"""Hints of near names, whatever the names are."""

from __future__ import annotations

from parity.errors import did_you_mean


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
