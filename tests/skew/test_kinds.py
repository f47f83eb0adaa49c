from __future__ import annotations

import functools

import pytest

from benchmarks.skew.kind import GOLDEN, Kind, Missing, every_row, find_kinds
from benchmarks.skew.natural_rows import ROWS
from benchmarks.skew.score import Score, score
from benchmarks.skew.trial import COSTLY
from parity.laws import LAWS

ALL = list(find_kinds())
KINDS = [item for item in ALL if isinstance(item, Kind)]
QUICK = [kind for kind in KINDS if kind.expected is None or kind.expected.law not in COSTLY]


def test_no_kind_lacks_its_library() -> None:
    assert [item for item in ALL if isinstance(item, Missing)] == []


def test_there_is_a_kind_for_every_law_and_many_more() -> None:
    shown = {kind.expected.law for kind in KINDS if kind.expected is not None}
    assert shown - {law.name for law in LAWS} == {GOLDEN}
    assert len(KINDS) > 100


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_kind_has_its_handlers_and_rows_that_hide_it(kind: Kind) -> None:
    rows = kind.rows()
    assert rows.num_rows == ROWS
    assert kind.sentence.endswith(".")
    assert ("Broken" in kind.sides) == (kind.expected is not None)
    assert ("Reference" in kind.sides) == (kind.mode == "reference")
    assert "Twin" in kind.sides
    if kind.expected is not None and kind.mode == "reference":
        touched = sum(kind.expected.rows(row) for row in rows.to_pylist())
        assert touched == ROWS if kind.expected.rows is every_row else 0 < touched < ROWS


@functools.cache
def scored(kind: Kind) -> Score:
    """The kind's score, of which each test looks at its own part."""
    return score(kind, "own")


@pytest.mark.slow
@pytest.mark.parametrize("kind", QUICK, ids=lambda kind: kind.name)
def test_parity_catches_the_broken_handler_and_leaves_its_twin_alone(kind: Kind) -> None:
    found = scored(kind)
    assert found.alarm == ""
    if kind.expected is not None:
        assert found.caught


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("aspect", "bar"), [("law", 0.9), ("stage", 0.9), ("column", 0.9), ("cause", 0.8)])
def test_what_is_caught_is_explained_as_often_as_the_bar_demands(aspect: str, bar: float) -> None:
    told = {kind.name: getattr(scored(kind), aspect) for kind in QUICK}
    judged = {name: right for name, right in told.items() if right is not None}
    wrong = [name for name, right in judged.items() if not right]
    assert len(wrong) <= (1 - bar) * len(judged), wrong
