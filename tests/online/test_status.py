"""The status page: what it says, and that it works in a real browser."""

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from parity_online.process import ServerProcess
from parity_online.status import advice
from tests.online.serving import HANDLERS, LINEAR, PROBE, ask, until

TRAY = str(HANDLERS / "tray")
FASHION = str(Path(__file__).parents[2] / "handlers" / "fashion")


def of(count: float, total: float) -> dict[str, float]:
    return {"count": count, "sum": total}


@pytest.mark.parametrize(
    ("stages", "queue", "batches", "said"),
    [
        ({"inference": 1.0}, of(3, 0), of(3, 9), "Too few batches"),
        (
            {"preprocess": 7.1, "inference": 2.0, "postprocess": 0.9},
            of(100, 0.1),
            of(100, 100),
            "preprocess takes 71% of a batch's 100 ms, and the model idles for 80% of it: add --preprocess",
        ),
        ({"preprocess": 1.0, "inference": 2.0}, of(100, 10), of(100, 3200), "add --preprocess-workers 1"),
        ({"preprocess": 1.0, "inference": 9.0}, of(100, 0.1), of(100, 100), "there is room for more traffic"),
        ({"inference": 1.0}, of(100, 10), of(100, 3200), "batches are full, so add --replicas"),
        ({"inference": 1.0}, of(100, 10), of(100, 100), "times as long for their turn: add --replicas"),
    ],
)
def test_a_sentence_says_what_takes_the_time(stages: Any, queue: Any, batches: Any, said: str):
    assert said in advice(stages, queue, batches, 32)


def test_where_the_size_was_measured_it_says_why_it_is_no_larger_and_not_to_raise_it():
    full = {"inference": 1.0}, of(100, 10), of(100, 3200), 32
    why = "a batch of 64 takes 26 ms, and may take 20 ms"
    said = advice(*full, sized=why)
    assert said.endswith(f": batches are full at what --max-batch auto took ({why}), so add --replicas.")
    assert "raise" not in said
    assert "or raise --max-batch where that is faster (auto measures it)" in advice(*full)


@pytest.mark.parametrize(
    ("stages", "waited_s", "said"),
    [
        ({"preprocess": 7.0, "inference": 3.0}, 10, "raise --preprocess-workers"),
        ({"preprocess": 3.0, "inference": 7.0}, 100, "add --replicas"),
        ({"preprocess": 3.0, "inference": 7.0}, 0.1, "there is room for more traffic"),
    ],
)
def test_where_stages_overlap_it_says_what_else_would_help(stages: Any, waited_s: float, said: str):
    assert said in advice(stages, of(100, waited_s), of(100, 3200), 64, preprocess_workers=1)


@pytest.mark.slow
def test_the_numbers_are_those_of_the_metrics(probe: Any):
    before = snapshot_of(probe.server.url, "probe")
    for number in range(3):
        assert probe.ask("/predictions/probe", {"id": number})[0] == 200
    assert probe.ask("/predictions/probe", {"id": "no"})[0] == 400
    after = snapshot_of(probe.server.url, "probe")
    assert after["requests"]["count"] == before["requests"]["count"] + 4
    assert after["rows"] == before["rows"] + 3
    assert after["answers"]["400"] == before["answers"].get("400", 0) + 1
    assert after["state"] == "ready"
    assert "schema" not in json.dumps(after), "a form is not sent with each poll"
    assert (after["load"], len(after["load"])) == (before["load"], 16)
    status, _, form = ask(probe.server.url, "GET", "/form.json?name=probe&version=3")
    assert status == 200
    assert form["schema"]["properties"]["id"]
    assert probe.ask("/predictions/probe", {**form["example"], "act": "", "wait": ""})[0] == 200
    assert ask(probe.server.url, "GET", "/form.json?name=prob")[0] == 404
    assert ask(probe.server.url, "GET", "/form.json")[0] == 400
    status, headers, _ = ask(probe.server.url, "GET", "/")
    assert status == 200
    assert "default-src 'none'" in headers["content-security-policy"]


def snapshot_of(url: str, name: str) -> dict[str, Any]:
    models = ask(url, "GET", "/status.json")[2]["models"]
    return next(model for model in models if model["name"] == name)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    def skip(reason: str) -> None:
        if os.environ.get("PARITY_REQUIRE_BROWSER"):
            pytest.fail(reason)
        pytest.skip(reason)

    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        skip("playwright is not installed")
        raise
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next((found for name in names if (found := shutil.which(name))), None)
    if path is None:
        skip("no Chromium is on PATH")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.mark.slow
def test_the_page_shows_how_a_batch_size_was_measured(browser: Any):
    with ServerProcess([TRAY, "--max-batch", "auto"]) as server:
        page = browser.new_page()
        page.goto(server.url + "/")
        page.wait_for_selector("#model-tray-1 .number")
        text = page.locator("#model-tray-1").inner_text()
        page.close()
    assert "8 rows: beyond which a batch brings less than 5% more rows a second" in text
    assert "32 rows" in text, "what was measured beyond it"


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_the_page_shows_models_and_sends_a_request(browser: Any, tmp_path: Path, width: int, scheme: str):
    said: list[str] = []
    asked: list[str] = []
    with ServerProcess([FASHION, LINEAR, PROBE]) as server:
        for number in range(30):
            assert ask(server.url, "POST", "/predictions/probe", {"id": number})[0] == 200
        ask(server.url, "POST", "/predictions/probe", {"id": 1, "act": "reject"})
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(server.url + "/")
        page.wait_for_selector("#model-probe-3 .number")
        assert page.text_content("#ready") == "ready"
        card = page.locator("#model-probe-3")
        text = card.inner_text()
        assert "31 requests" in text
        assert "takes" in text
        assert "rejected" in text
        goldens = page.locator("article", has_text="fashion").inner_text()
        assert re.search(r"edge: (identical|within), 6 rows", goldens), "another processor's last bits differ"
        card.locator("summary").click()
        card.locator("input[name=x]").fill("4.5")
        card.locator("input[name=wait]").fill("")
        card.locator("select[name=act]").select_option('""')
        card.locator("button").click()
        card.locator("pre", has_text="200 in ").wait_for()
        assert '"y": 10' in card.locator("pre").inner_text()
        card.locator("input[name=x]").fill('"no"')
        card.locator("button").click()
        card.locator("pre", has_text="400 in ").wait_for()
        until(lambda: card.locator(".number").first.inner_text() != "–")
        assert page.text_content("#ready") == "ready"
        assert asked.count(f"{server.url}/form.json?name=probe&version=3") == 1
        assert sum(url.endswith("/status.json") for url in asked) > 1
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        if folder := os.environ.get("PARITY_SCREENSHOTS"):
            page.screenshot(path=f"{folder}/status-{width}-{scheme}.png", full_page=True)
        context.close()
    assert all(url.startswith(server.url) for url in asked)
    assert [text for text in said if "400" not in text and "favicon" not in text] == []
