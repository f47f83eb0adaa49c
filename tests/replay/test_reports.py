"""A drift report as text, page and JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from parity.replay import DriftReport, html, replay_capture, terminal
from tests.replay.traffic import Here, incomes, record, write_handler


@pytest.fixture(scope="module")
def drifted(tmp_path_factory: pytest.TempPathFactory) -> DriftReport:
    folder = tmp_path_factory.mktemp("traffic")
    old = write_handler(folder / "old" / "credit", rejects="n3")
    rows = [{**row, "name": "<b>\u202e"} if row["name"] == "n0" else row for row in incomes(90)]
    record(folder / "captured", old, rows, lost=2)
    new = write_handler(
        folder / "new" / "credit",
        version="2",
        weight=2.0,
        rejects="n5",
        changes={"score >= 0.5": "score >= 0.6", '"yes", "no"': '"yes", "<no>"'},
    )
    return replay_capture(folder / "captured", runner=Here(), handler=new)


def test_the_text_tells_what_drifted_when_and_for_whom(drifted: DriftReport):
    text = terminal.render(drifted)
    assert "credit 2 through here (arrow)" in text
    assert re.search(r"score +64 ulp at column scale +88 .* divergent", text)
    assert re.search(r"2026-\d\d-\d\d \d\d:00 +60 ", text), "by hour"
    assert "label: the label flips" in text
    assert "no -> <no>: " in text
    assert re.search(r"score: \d+ rows up, \d+ down; mean [+-]\d", text)
    assert "Spearman" in text
    assert "failures: 1 row now only, 1 row when recorded only, 0 rows in another way" in text
    assert re.search(r"request r\d+ row 0, 2026-", text)
    assert "DRIFTS: 90 of 90 recorded rows compared" in text
    assert "note: 2 rows were lost" in text
    assert "\u202e" not in text
    assert "\x1b[31m" in terminal.render(drifted, colour=True)


def test_the_page_is_whole_and_escaped(drifted: DriftReport):
    page = html.render(drifted)
    assert page.startswith("<!doctype html>")
    assert "Answers have drifted" in page
    assert "&lt;no&gt;" in page
    assert "<no>" not in page
    assert "\u202e" not in page
    assert not re.search(r"https?://(?!www\.w3\.org)", page)
    for title in ("By hour (UTC)", "Labels", "Score", "Failures", "drifted most"):
        assert title in page


def test_the_report_is_json(drifted: DriftReport):
    found = json.loads(json.dumps(drifted.to_dict(), allow_nan=False))
    assert (found["verdict"], found["exit_code"]) == ("drifts", 1)
    assert found["columns"][0]["verdict"] == "divergent"
    assert found["columns"][0]["rule"] == {"kind": "close", "ulp": 64.0}
    assert found["traffic"]["handlers"] == {"credit 1.0.0": 90}


def test_agreement_is_short(tmp_path: Path):
    ref = write_handler(tmp_path / "credit")
    record(tmp_path / "captured", ref, incomes(10))
    report = replay_capture(tmp_path / "captured", runner=Here(), handler=ref)
    text = terminal.render(report)
    assert len(text.splitlines()) < 12
    assert "AGREES: 10 of 10 recorded rows compared, 0 drift beyond the tolerance, 10 are" in text
    assert "Recorded traffic is answered as it was" in html.render(report)
