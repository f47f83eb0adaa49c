"""Counts in reports are followed by the number of their nouns and verbs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from parity.compare import compare
from parity.errors import counted
from parity.report import github, html, terminal
from parity.report.model import CheckReport
from parity.triage import RuledOut

from .reports import answers, diagnosis, entry, law, report

NOUNS = (
    "(?:case|cause|column|comparison|difference|element|field|law|pair|pixel|row|runner|value|near tie|"
    "failing row)"
)
WRONG = re.compile(
    rf"(?<![\d.,])(?:1 (?:more )?{NOUNS}s|1 (?:of \d+ )?{NOUNS}s?(?: of answers)? (?:differ|agree|are))\b"
)
MANY = re.compile(rf"(?<![\d.,])(?:0|[2-9]|\d\d+) (?:more )?{NOUNS}\b")

ONE_ROW = compare(answers(1), answers(1, noise=1e-3), inputs=answers(1))
BROKEN = replace(law("broken", diagnosis=None), pairs=1, differing=1)
FOUND = replace(diagnosis(), cause=None, also=(), ruled_out=(RuledOut("weights", "they are equal"),))


def single() -> CheckReport:
    """Give a report with one of everything: entry, row, column, law, pair, cause that was ruled out."""
    return report(entry(ONE_ROW, diagnosis=FOUND), laws=(replace(BROKEN, diagnosis=FOUND),))


def alike() -> CheckReport:
    """Give a report whose runners have one case each, and one more that fails than are listed."""
    entries = [entry(compare(answers(1), answers(1)), f"runner{place}") for place in range(9)]
    return report(*entries, laws=(replace(law(), pairs=1),) * 6)


def failing() -> CheckReport:
    return report(
        *(entry(ONE_ROW, f"runner{place}") for place in range(9)), entry(compare(answers(), answers()))
    )


def several() -> CheckReport:
    """Give a report with two of everything."""
    wrong = answers(2, noise=1e-3).append_column("more", [[0, 1]])
    found = replace(FOUND, ruled_out=FOUND.ruled_out * 2)
    entries = (entry(compare(answers(2), wrong), name, diagnosis=found) for name in ("batch", "online"))
    return report(*entries, laws=(replace(BROKEN, pairs=2, differing=2),) * 2)


@pytest.mark.parametrize("render", [terminal.render, html.render, github.summary])
@pytest.mark.parametrize("made", [single, alike, failing, several])
def test_one_is_singular_and_any_other_count_plural(
    made: Callable[[], CheckReport], render: Callable[..., Any]
) -> None:
    text = render(made())
    assert WRONG.findall(text) == []
    assert MANY.findall(text) == []


def test_one_of_each_is_told() -> None:
    text = terminal.render(single())
    assert "1 row in 1 comparison, " in text
    assert ", 1 of 1 law broken" in text
    assert "law order is broken, 1 of 1 pair differs: " in text
    assert "none of the 1 that was tried" in text
    assert "  1 case  " in terminal.render(alike())
    assert "6 laws: " in terminal.render(alike())
    assert "1 more fails, 1 agrees" in terminal.render(failing())
    assert "the comparison with a golden case fails" in html.render(single()).lower()
    assert "all 9 comparisons with golden cases agree" in html.render(alike()).lower()
    assert "1 law</a>" in html.render(single())


@pytest.mark.parametrize(
    ("count", "words", "told"),
    [
        (0, ("case",), "0 cases"),
        (1, ("case",), "1 case"),
        (2, ("case",), "2 cases"),
        (1, ("row differs", "rows differ"), "1 row differs"),
        (3, ("row differs", "rows differ"), "3 rows differ"),
        (1250, ("file",), "1,250 files"),
    ],
)
def test_a_count_takes_its_noun_and_verb(count: int, words: tuple[str, ...], told: str) -> None:
    assert counted(count, *words) == told
