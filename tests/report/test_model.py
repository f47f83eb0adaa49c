"""Verdict, exit code and advice follow from the data."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from parity.compare import compare
from parity.report import EXIT_CODES, CheckReport, advice, as_json

from .reports import agreeing, differing, divergent, entry, hostile, law, report, same, within

EMPTY = pa.table({"x": pa.array([], pa.int64())})


@pytest.mark.parametrize(
    ("found", "verdict", "code"),
    [
        (report(entry(same()), entry(within(), "online")), "agrees", 0),
        (report(entry(same()), laws=(law("noise"), law("nothing"))), "agrees", 0),
        (report(entry(same()), entry(compare(EMPTY, EMPTY), case="empty")), "agrees", 0),
        (report(entry(same()), entry(divergent())), "diverges", 1),
        (report(entry(same()), laws=(law("broken"),)), "diverges", 1),
        (report(), "nothing compared", 5),
        (report(entry(compare(EMPTY, EMPTY))), "nothing compared", 5),
        (report(entry(divergent()), entry(None, error="crash")), "runner crashed", 6),
        (report(entry(None), laws=(law("broken", "repeatable"),)), "nondeterministic", 7),
    ],
)
def test_the_gravest_finding_decides(found: CheckReport, verdict: str, code: int):
    assert (found.verdict, found.exit_code) == (verdict, code)
    assert set(EXIT_CODES.values()) == {0, 1, 5, 6, 7}


@pytest.mark.parametrize("found", [agreeing(), differing(), hostile()])
def test_a_report_is_json(found: CheckReport):
    data = json.loads(as_json.render(found))
    assert data["verdict"] == found.verdict
    assert data["exit_code"] == found.exit_code
    assert len(data["entries"]) == len(found.entries)
    assert data["next"] == advice(found)
    assert data == json.loads(json.dumps(found.to_dict(), allow_nan=False))


def test_agreement_needs_no_advice():
    assert advice(agreeing()) == []


def test_one_runner_that_differs_is_named_with_those_that_agree():
    steps = " ".join(advice(report(entry(same(), "notebook"), entry(divergent(), "online", "json"))))
    assert "differs in online json; notebook agrees" in steps
    assert "no float noise" in steps


def test_all_runners_that_differ_point_at_the_handler():
    found = report(entry(divergent()), entry(divergent(), "online"), reference="handlers/fashion")
    assert "parity golden update handlers/fashion" in advice(found)[0]


def test_a_tolerance_is_named_but_not_recommended():
    expected = pa.table({"x": pa.array([1.0], pa.float32())})
    obtained = pa.table({"x": pa.array([1.0 + 100 * 2**-23], pa.float32())})
    steps = " ".join(advice(report(entry(compare(expected, obtained)))))
    assert "would pass with ulp = 100. Only if you know why" in steps


def test_what_changed_since_the_recording_is_told():
    assert differing().fingerprint_changes() == {"torch": ("2.12.1", "2.13.0")}
    assert any("torch" in step for step in advice(differing()))


def test_crashes_are_told_with_their_error():
    assert any("status 1 before it was ready" in step for step in advice(differing()))


def test_nothing_compared_says_how_to_record():
    assert "parity golden record fashion ROWS" in advice(report())[0]
