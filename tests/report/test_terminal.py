"""The terminal says little when all is well, and enough when not."""

from __future__ import annotations

import pytest

from parity.report.terminal import render, render_comparison

from .reports import agreeing, differing, divergent, entry, hostile, law, loose, report, same, within


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
