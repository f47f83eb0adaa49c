"""The HTML report: complete, self-contained, escaped, of bounded size; test_browser sees how it looks."""

# pyright: reportArgumentType=false, reportCallIssue=false
# The pyarrow stubs refuse dicts of numpy arrays, which pyarrow takes.

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pytest

from parity.compare import compare
from parity.report import CheckReport
from parity.report.html import render
from parity.report.samples import samples

from .photos import photo_report
from .reports import agreeing, diagnosed, differing, entry, hostile, law, report

VOID = {"meta", "br", "line", "img"}
NEVER = {"link", "iframe", "object", "embed", "form", "base", "audio", "video"}
POLICY = re.compile(r'http-equiv="Content-Security-Policy" content="([^"]+)"')


class Markup(HTMLParser):
    """Collects tags and attributes, and proves that every tag is closed and every id is there once."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        ids = [value for name, value in self.attributes if name == "id"]
        assert len(ids) == len(set(ids))
        inner = {value[1:] for name, value in self.attributes if name == "href"}
        assert inner <= set(ids)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("found", [agreeing(), differing(), diagnosed(), hostile(), report()])
def test_every_report_is_well_formed_and_loads_nothing(found: CheckReport):
    text = render(found)
    markup = Markup(text)
    assert markup.open == []
    assert NEVER.isdisjoint(markup.tags)
    assert markup.tags.count("script") == markup.tags.count("style") == 1
    names = {name for name, _ in markup.attributes}
    assert {name for name in names if name.startswith("on") or name == "style"} == set()
    assert all(value.startswith("#") for name, value in markup.attributes if name == "href")
    assert all(value.startswith("data:image/") for name, value in markup.attributes if name == "src")
    assert "http:" not in text
    assert "https:" not in text


def test_the_policy_allows_no_more_than_is_in_the_page():
    policy = POLICY.search(render(agreeing()))
    assert policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in policy[1].split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    assert re.fullmatch(r"'sha256-[\w+/]+='", rules["script-src"])
    assert re.fullmatch(r"'sha256-[\w+/]+='", rules["style-src"])


def test_hostile_strings_are_escaped_everywhere():
    text = render(hostile())
    body = text[text.index("<main>") : text.index("</main>")]
    assert "<script" not in body
    assert body.count("&lt;script&gt;") > 10
    assert "\u202e" not in text
    assert "\x1b" not in text


def test_a_command_to_copy_is_quoted_for_the_shell():
    found = report(entry(None, "online", case="a; rm -rf ~", error="crash"), reference="it's here")
    text = render(found)
    assert "--case &#x27;a; rm -rf ~&#x27;" in text
    assert "parity check &#x27;it&#x27;&quot;&#x27;&quot;&#x27;s here&#x27; --runner online" in text


def test_the_verdict_comes_first():
    text = render(differing())
    assert text.index("A runner failed to start or crashed") < text.index("Runners by golden cases and laws")
    assert "Every runner gives the recorded answers" in render(agreeing())
    assert "No law is broken" in render(report(laws=(law(),)))


def test_a_divergence_shows_numbers_rows_inputs_chart_and_fingerprint():
    text = render(differing())
    for words in ("99 %", "side by side", "<svg", "64 ulp allowed", "boot", "2.12.1", "2.13.0", "AVX2"):
        assert words in text
    assert "row 5" in text
    assert "status 1 before it was ready" in text


def test_a_diagnosis_shows_cause_evidence_stages_and_what_was_ruled_out():
    text = render(diagnosed())
    for words in (
        "Likely cause: <code>channel-order</code>",
        "The channels of an image come in another order",
        "the permutation [2, 1, 0]",
        "First difference in <b>preprocess</b>",
        "2 times",
        "3 causes ruled out",
        "the digests of the artifacts are equal",
    ):
        assert words in text
    assert [text.index(f'class="name">{stage}<') for stage in ("decode", "preprocess", "encode")] == sorted(
        text.index(f'class="name">{stage}<') for stage in ("decode", "preprocess", "encode")
    )


def test_a_broken_law_shows_its_counterexample_its_snippet_and_what_it_follows_from():
    text = render(diagnosed())
    for words in (
        "Smallest counterexample: 2 rows, asked alone, and in this batch of 2",
        "its answer differs",
        "Asked before, in a batch of their own: 2 rows",
        "Run this in a notebook to see it",
        "with parity.Engine(parity.load_handler(&quot;handlers/fashion&quot;)) as engine:\n    print(",
        "Law <b>neighbours</b> is broken, too, and may be all there is to this.",
        "parity check handlers/fashion --law order",
    ):
        assert words in text


def test_the_laws_tell_what_was_executed_and_the_noise_that_was_measured():
    text = render(diagnosed())
    assert "asked in 2 ways" in text
    assert "<li>in batches of 7</li>" in text
    assert "Float noise, measured" in text
    assert "12 of 128" in text


def test_runners_that_differ_alike_are_one_article():
    text = render(photo_report())
    assert text.count("<article") == 1
    assert "Case photos in online json, online v2" in text


def test_what_only_one_side_has_is_marked():
    expected, obtained = pa.table({"x": ["the blue boot"]}), pa.table({"x": ["the black boot"]})
    text = render(report(entry(compare(expected, obtained))))
    assert "&quot;the bl<mark>ue</mark> boot&quot;" in text
    assert "&quot;the bl<mark>ack</mark> boot&quot;" in text


@pytest.mark.parametrize(("word", "sentence"), [("unable", "A law could not be tried"), ("broken", "differ")])
def test_a_law_that_does_not_hold_is_an_article(word: str, sentence: str):
    text = render(report(laws=(law(word, "process"), law())))
    assert sentence in text
    assert "Law: process" in text
    assert text.count("<article") == 1


@pytest.mark.slow
def test_the_file_stays_small_whatever_the_report():
    random = np.random.default_rng(0)
    rows = 400
    columns = {f"column {place}": random.normal(size=rows) for place in range(8)}
    columns["text"] = np.array([f"{place} " + "x" * 5000 for place in range(rows)])
    expected = pa.table(columns)
    moved = {name: values[::-1] for name, values in columns.items()}
    obtained = pa.table(moved)
    found = compare(expected, obtained, inputs=expected)
    kept = samples(found, expected, obtained, [1, 2] * (rows // 2), inputs=expected)
    entries = [entry(found, f"runner {n}", case=f"case {n}", samples=kept) for n in range(100)]
    laws = [law("broken", f"law {place}", "y" * 100_000) for place in range(50)]
    whole = render(report(*entries, laws=tuple(laws)))
    assert len(whole.encode()) < 3_000_000
    assert 0 < whole.count("<figure") < 60 * 8
    assert "Left out to keep this file small" not in whole
    assert "more are in <code>parity check --json</code>" in whole
    small = render(report(*entries, laws=tuple(laws)), max_bytes=200_000)
    assert len(small.encode()) < len(whole.encode()) / 3
    assert "Left out to keep this file small" in small
    for text in (whole, small):
        assert Markup(text).open == []
