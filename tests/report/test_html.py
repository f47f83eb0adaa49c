"""The HTML report: complete, self-contained, escaped, and readable on a phone."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from parity.report import CheckReport
from parity.report.html import render

from .reports import agreeing, differing, hostile, report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
VOID = {"meta", "br", "rect", "line"}


class Markup(HTMLParser):
    """Collects tags and attributes, and proves that every tag is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in VOID or tag == "rect":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("found", [agreeing(), differing(), hostile(), report()])
def test_every_report_is_well_formed_and_loads_nothing(found: CheckReport):
    text = render(found)
    markup = Markup(text)
    assert markup.open == []
    assert markup.tags.isdisjoint({"script", "link", "img", "iframe"})
    assert markup.attributes.isdisjoint({"src", "href", "onload", "onclick"})
    assert "http:" not in text
    assert "https:" not in text


def test_hostile_strings_are_escaped_everywhere():
    text = render(hostile())
    assert "<script" not in text
    assert text.count("&lt;script&gt;") > 10
    assert "\u202e" not in text
    assert "\x1b" not in text


def test_the_verdict_comes_first():
    text = render(differing())
    assert text.index("A runner failed to start or crashed") < text.index("Runners and cases")
    assert "Every runner gives the recorded answers" in render(agreeing())


def test_a_divergence_shows_numbers_rows_inputs_chart_and_fingerprint():
    text = render(differing())
    for words in ("99 %", "Worst rows", "<svg", "64 ulp allowed", "boot", "more", "2.12.1", "2.13.0", "AVX2"):
        assert words in text
    assert "row 5" in text
    assert "status 1 before it was ready" in text


def test_it_adapts_to_small_screens_and_dark_ones():
    text = render(agreeing())
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in text
    assert "prefers-color-scheme: dark" in text


@pytest.mark.slow
@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("name", ["agreeing", "differing", "hostile"])
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine: the page's width goes unchecked")
def test_no_page_is_wider_than_its_screen(name: str, width: int, tmp_path: Path):
    found = {"agreeing": agreeing, "differing": differing, "hostile": hostile}[name]()
    page, frame = tmp_path / "report.html", tmp_path / "frame.html"
    page.write_text(render(found).replace("<details>", "<details open>"), encoding="utf-8")
    # Chromium refuses windows narrower than 500 pixels; a frame is as narrow as asked.
    frame.write_text(
        f'<iframe id="f" src="report.html" style="width:{width}px;height:900px;border:0"></iframe>'
        "<script>f.onload = () => { const d = f.contentDocument.documentElement;"
        " document.title = 'width ' + d.scrollWidth + ' of ' + d.clientWidth }</script>",
        encoding="utf-8",
    )
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"]
    command += [
        f"--user-data-dir={tmp_path / 'profile'}",
        "--window-size=1600,1200",
        "--dump-dom",
        frame.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    measured = re.search(r"width (\d+) of (\d+)", done.stdout)
    assert measured is not None, done.stdout[:500]
    assert int(measured[1]) <= int(measured[2])
