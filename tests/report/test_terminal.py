"""The terminal says little when all is well, and enough when not."""

from __future__ import annotations

import pytest

from parity.report.terminal import render, render_comparison

from .reports import (
    agreeing,
    diagnosed,
    differing,
    divergent,
    entry,
    hostile,
    law,
    loose,
    report,
    same,
    within,
)


def test_agreement_fits_a_screen():
    text = render(agreeing())
    assert len(text.splitlines()) <= 20
    assert "AGREES: 192 rows in 3 comparisons" in text
    assert all(name in text for name in ("notebook", "batch", "online json", "identical", "within", "noise"))


def test_many_cases_are_summed_by_runner():
    entries = [entry(within(), runner, case=f"case {i}") for runner in ("batch", "online") for i in range(20)]
    text = render(report(*entries, laws=tuple(law(name=f"law {i}") for i in range(12))))
    assert len(text.splitlines()) <= 20
    assert "20 cases" in text
    assert "12 laws: 12 holds" in text


def test_a_divergence_shows_rows_inputs_and_what_to_do():
    text = render(differing())
    assert "DIVERGES" not in text
    assert "RUNNER CRASHED" in text
    assert "64 of 64 rows outside 64 ulp at column scale" in text
    assert "expected 0." in text
    assert 'input title="boot" pixels=[0, 0, 0,' in text
    assert "column 'extraboot' is in obtained only" in text
    assert "law neighbours is broken" in text
    counterexample = differing().laws[1].counterexample
    assert counterexample is not None
    assert counterexample.summary() in text
    assert "next: " in text


def test_a_diagnosis_is_told_with_stage_rows_figures_cause_and_evidence():
    text = render(diagnosed())
    assert (
        "first differs in preprocess at value['pixels']; column confidence; rows 1, 2, 3, 4, 5, 7 and" in text
    )
    assert "max abs 1.42" in text
    assert "cause: channel-order: the channels of an image come in another order (the permutation" in text
    assert "law neighbours is broken, too, and may be all there is to this" in text
    assert "snippet to see it in a notebook: in the HTML report" in text


def test_a_divergence_of_one_runner_fits_a_screen():
    text = render(
        report(entry(same()), entry(divergent(), "online", diagnosis=diagnosed().entries[0].diagnosis))
    )
    assert len(text.splitlines()) <= 22


def test_no_more_than_a_few_differences_are_told_in_detail():
    entries = [entry(divergent(f"boot {place}"), f"runner {place}") for place in range(30)]
    laws = tuple(law("broken", f"law {place}") for place in range(18))
    text = render(report(*entries, laws=laws))
    assert "... and 22 more fail" in text
    assert "... and 44 more; the HTML report (--html FILE) has them all" in text
    assert "18 laws: 18 broken (law 0, law 1," in text
    assert len(text.splitlines()) < 60


def test_runners_that_differ_alike_are_told_once():
    wrong = divergent()
    text = render(report(*(entry(wrong, f"runner {place}") for place in range(6))))
    assert "runner 0, runner 1, runner 2, runner 3 and 2 more, case sample" in text
    assert text.count("rows outside 64 ulp") == 1


@pytest.mark.parametrize("verdict", ["unable", "skipped", "nothing"])
def test_a_law_without_an_answer_is_never_a_silent_pass(verdict: str):
    text = render(report(entry(same()), laws=(law(), law(verdict, "process"), *[law()] * 6)))
    assert f"1 {verdict} (process)" in text


def test_lines_stay_short_whatever_the_values():
    for line in render(differing()).splitlines():
        assert len(line) < 260


def test_hostile_text_cannot_move_the_cursor():
    text = render(hostile())
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "<script>" in text


def test_colour_is_asked_for():
    assert "\x1b[32m" in render(agreeing(), colour=True)
    assert "\x1b[31m" in render(differing(), colour=True)
    assert "\x1b" not in render(differing())


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (same(), "64 rows bit-identical"),
        (within(), "rows within tolerance"),
        (divergent(), "64 of 64 rows outside"),
        (loose(), "rows changed, all within atol 0.01"),
    ],
)
def test_a_comparison_shows_what_moved_and_by_how_much(found: object, words: str):
    text = render_comparison(found, "case sample")  # pyright: ignore[reportArgumentType]
    assert text.startswith("case sample: ")
    assert words in text


def test_no_entries_is_said():
    text = render(report())
    assert "no golden case was run" in text
    assert "NOTHING COMPARED" in text
