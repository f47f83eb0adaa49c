"""Real reports opened in Chromium: nothing is loaded, nothing overflows, everything is there and readable.

Skipped where there is no Chromium or no playwright, unless `PARITY_REQUIRE_BROWSER` is set: then they fail.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import pytest

from parity.replay.html import render as drift_page
from parity.report import CheckReport
from parity.report.html import render
from parity.report.matrix import matrix

from .photos import photo_report
from .prices import prices_report
from .reports import agreeing, drift, hostile

pytestmark = pytest.mark.slow

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
PHONE, DESK = 360, 1280
PAGES = ["agreeing", "photos", "prices", "hostile", "drift"]
REPORTS = {"agreeing": agreeing, "photos": photo_report, "prices": prices_report, "hostile": hostile}

LEAST_CONTRAST = """
() => {
  const channels = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (rgb) => rgb.slice(0, 3).map((c) => c / 255)
    .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const found = channels(getComputedStyle(at).backgroundColor);
      if (found.length < 4 || found[3] > 0.99) return found;
    }
    return [255, 255, 255];
  };
  let least = [99, ''];
  for (const element of document.querySelectorAll('body *')) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !element.checkVisibility() || element.closest('svg, .unseen')) continue;
    const [one, other] = [light(channels(getComputedStyle(element).color)), light(ground(element))];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    const where = `${element.tagName}.${element.className} ${element.textContent.slice(0, 40)}`;
    if (ratio < least[0]) least = [ratio, where];
  }
  return least;
}
"""


def skip(why: str) -> NoReturn:
    """Skip the test, or fail it where a browser is required."""
    if os.environ.get("PARITY_REQUIRE_BROWSER"):
        pytest.fail(f"{why}, and PARITY_REQUIRE_BROWSER is set")
    pytest.skip(f"NO PAGE WAS OPENED: {why}; set PARITY_REQUIRE_BROWSER=1 to fail instead")


@dataclass
class Opened:
    """A page, and what went on while it was open."""

    page: Any
    requests: list[str] = field(default_factory=list[str])
    messages: list[str] = field(default_factory=list[str])
    expected: str = "nothing"

    def unfold(self) -> None:
        """Open every fold."""
        self.page.evaluate("document.querySelectorAll('details').forEach((item) => { item.open = true; })")

    def count(self, selector: str) -> int:
        """Count the elements."""
        return self.page.locator(selector).count()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Give a headless Chromium."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        skip("playwright is not installed")
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        skip(f"none of {', '.join(BROWSERS)} is on PATH")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with every report in it."""
    folder = tmp_path_factory.mktemp("reports")
    for name, make in REPORTS.items():
        (folder / f"{name}.html").write_text(render(make()), encoding="utf-8")
    (folder / "drift.html").write_text(drift_page(drift()), encoding="utf-8")
    return folder


@pytest.fixture
def opened(browser: Any, folder: Path) -> Iterator[Any]:
    """Give a function that opens a report and checks at the end that it loaded and logged nothing."""
    contexts: list[Any] = []
    pages: list[Opened] = []

    def open_report(name: str, width: int = DESK, scheme: str = "light") -> Opened:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        found = Opened(context.new_page())
        pages.append(found)
        found.page.on("request", lambda request: found.requests.append(request.url))
        found.page.on("console", lambda message: found.messages.append(message.text))
        found.page.on("pageerror", lambda error: found.messages.append(str(error)))
        found.page.on("dialog", lambda dialog: found.messages.append(dialog.message) or dialog.dismiss())
        found.page.goto((folder / f"{name}.html").as_uri())
        return found

    yield open_report
    for found in pages:
        foreign = [url for url in found.requests if not url.startswith(("data:", folder.as_uri()))]
        assert foreign == []
        assert sum(not url.startswith("data:") for url in found.requests) == 1
        assert [message for message in found.messages if found.expected not in message] == []
    for context in contexts:
        context.close()


@pytest.mark.parametrize("name", PAGES)
def test_a_report_fits_a_phone_and_can_be_read_in_light_and_dark(opened: Any, name: str) -> None:
    found = opened(name, PHONE)
    for _ in range(2):
        measured = found.page.evaluate(
            "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        )
        assert measured == [PHONE, PHONE]
        found.unfold()
    for scheme in ("light", "dark"):
        found.page.emulate_media(color_scheme=scheme)
        ratio, where = found.page.evaluate(LEAST_CONTRAST)
        assert ratio >= 4.5, f"{scheme}: {where}"


@pytest.mark.parametrize("name", ["agreeing", "photos", "prices"])
def test_the_matrix_has_a_cell_for_each_runner_and_check(opened: Any, name: str) -> None:
    report: CheckReport = REPORTS[name]()
    expected = matrix(report)
    found = opened(name)
    rows = found.page.locator("table.matrix tbody tr")
    assert rows.count() == len(expected.runners)
    for place, runner in enumerate(expected.runners):
        row = rows.nth(place)
        assert row.locator("th").inner_text() == runner
        texts = row.locator("td:not(.gap)").all_text_contents()
        for text, cell in zip(texts, expected.row(runner), strict=True):
            assert (cell.verdict in text) if cell is not None else (text == "not run")
    assert found.count("table.matrix td a") == sum(
        cell.verdict in ("divergent", "broken") for cell in expected.cells.values()
    )


def test_a_cell_leads_to_the_divergence(opened: Any) -> None:
    found = opened("prices")
    found.page.locator("table.matrix td.bad a").last.click()
    target = found.page.evaluate("document.querySelector(location.hash)?.textContent ?? ''")
    assert "Case january in online" in target


def test_plots_show_a_point_for_each_row(opened: Any) -> None:
    report = prices_report()
    kept = report.entries[1].samples
    assert kept is not None
    found = opened("prices")
    sample = kept.column("score")
    assert sample is not None
    assert found.count("figure.scatter .point") == len(sample.rows) == 64
    assert found.count("figure.scatter .point.outside") == int(sample.outside.sum())
    assert found.count("figure.position") == 2
    assert found.count("figure.position .point") == 2 * 64
    assert found.count("figure.buckets rect.bar.outside") == 3
    column = report.entries[1].comparison.column("score")  # pyright: ignore[reportOptionalMemberAccess]
    assert column.distances is not None
    assert found.count("figure.histogram rect.bar") == len(column.distances.histogram)
    for place in range(found.count("figure.chart svg")):
        assert found.page.locator("figure.chart svg").nth(place).bounding_box()["height"] > 100


def test_plots_are_told_to_those_who_do_not_see_them(opened: Any) -> None:
    found = opened("prices")
    assert found.count("figure.chart svg") == found.count("figure.chart svg[role=img] > title + desc") > 3


def test_images_are_shown_with_a_map_of_their_difference(opened: Any) -> None:
    found = opened("photos")
    found.unfold()
    sizes = found.page.evaluate(
        "Promise.all([...document.images].map(async (i) => { await i.decode(); return i.naturalWidth; }))"
    )
    assert len(sizes) > 20
    assert set(sizes) == {40}
    captions = found.page.locator("#difference-1 .compared figcaption").all_text_contents()
    assert captions[:3] == ["expected", "obtained", "difference"]
    told = found.page.locator("#difference-1 .pictured p").all_text_contents()
    assert any("value['pixels'] preprocess" in text for text in told)


def test_a_snippet_is_copied_by_its_button(opened: Any) -> None:
    found = opened("prices")
    found.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    block = found.page.locator(".snippet").first
    block.locator("button.copy").click()
    found.page.wait_for_function("document.getElementById('told').textContent === 'copied'")
    copied = found.page.evaluate("navigator.clipboard.readText()")
    assert copied == block.locator("code").text_content()
    assert copied.startswith("parity check handlers/prices")


def test_the_reader_chooses_light_or_dark_and_folds(opened: Any) -> None:
    found = opened("photos", DESK, "dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = found.page.evaluate(ground)
    found.page.locator("#theme").click()
    assert found.page.evaluate(ground) != dark
    assert found.page.locator("#theme").inner_text() == "Dark"
    folds = found.count("main details")
    assert found.count("main details[open]") < folds
    found.page.locator("#fold").click()
    assert found.count("main details[open]") == folds


def test_hostile_names_and_values_run_nothing(opened: Any) -> None:
    found = opened("hostile")
    found.unfold()
    assert found.count("main script") == found.count("main iframe") == 0
    assert "<script>alert('x')</script>" in found.page.locator("h1").evaluate(
        "e => e.parentElement.textContent"
    )
    assert found.page.evaluate("[...document.images].length") == 0


def test_even_markup_that_slipped_through_could_not_run(opened: Any) -> None:
    found = opened("agreeing")
    found.expected = "Content Security Policy"
    ran = found.page.evaluate(
        """async () => {
          const image = '<img src="data:image/png,broken" onerror="window.ran = 1">';
          document.body.insertAdjacentHTML('beforeend', image);
          const script = document.createElement('script');
          script.textContent = 'window.ran = 1';
          document.body.append(script);
          await document.images[0].decode().catch(() => 0);
          return window.ran ?? 0;
        }"""
    )
    assert ran == 0
