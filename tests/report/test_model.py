"""Verdict, exit code, matrix and advice follow from the data."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest

from parity.compare import compare
from parity.report import EXIT_CODES, CheckReport, advice, as_json
from parity.report.matrix import Cell, divergences, matrix

from .photos import photo_report
from .reports import (
    FINGERPRINT,
    agreeing,
    diagnosed,
    differing,
    divergent,
    entry,
    failing,
    hostile,
    law,
    report,
    same,
    within,
)

EMPTY = pa.table({"x": pa.array([], pa.int64())})


@pytest.mark.parametrize(
    ("found", "verdict", "code"),
    [
        (report(entry(same()), entry(within(), "online")), "agrees", 0),
        (report(entry(same()), laws=(law("noise"), law("skipped"))), "agrees", 0),
        (report(entry(same()), laws=(law("noise"), law("nothing"))), "law without rows", 5),
        (report(entry(same()), entry(compare(EMPTY, EMPTY), case="empty")), "agrees", 0),
        (report(laws=(law("holds"), law("nothing"))), "law without rows", 5),
        (report(laws=(law("broken"), law("nothing"))), "diverges", 1),
        (report(entry(same()), entry(divergent())), "diverges", 1),
        (report(entry(same()), laws=(law("broken"),)), "diverges", 1),
        (report(entry(divergent()), entry(None, refused=True)), "diverges", 1),
        (report(entry(same()), entry(None, refused=True)), "refused", 4),
        (report(), "nothing compared", 5),
        (report(entry(compare(EMPTY, EMPTY))), "nothing compared", 5),
        (report(entry(compare(EMPTY, EMPTY)), laws=(law("holds"),)), "nothing compared", 5),
        (report(entry(failing())), "nothing compared", 5),
        (report(laws=(law("nothing"), law("skipped"))), "nothing compared", 5),
        (report(entry(same()), laws=(law("unable"), law())), "law unable", 6),
        (report(entry(divergent()), laws=(law("unable"), law("broken"))), "law unable", 6),
        (report(entry(divergent()), entry(None, error="crash")), "runner crashed", 6),
        (report(entry(None), laws=(law("unable"), law("broken", "repeatable"))), "nondeterministic", 7),
    ],
)
def test_the_gravest_finding_decides(found: CheckReport, verdict: str, code: int):
    assert (found.verdict, found.exit_code) == (verdict, code)


def test_every_exit_code_of_the_design_but_those_of_errors_is_a_verdict():
    assert set(EXIT_CODES.values()) == {0, 1, 4, 5, 6, 7}


@pytest.mark.parametrize("found", [agreeing(), differing(), diagnosed(), hostile()])
def test_a_report_is_json(found: CheckReport):
    text = as_json.render(found)
    data = json.loads(text)
    assert data["verdict"] == found.verdict
    assert data["exit_code"] == found.exit_code
    assert len(data["entries"]) == len(found.entries)
    assert data.pop("next") == advice(found)
    assert data.pop("matrix") == json.loads(json.dumps(matrix(found).to_dict()))
    assert data == json.loads(json.dumps(found.to_dict(), allow_nan=False))


@pytest.mark.slow
def test_samples_and_diagnosis_are_in_the_json_a_list_a_line():
    text = as_json.render(photo_report())
    entry = json.loads(text)["entries"][2]
    assert entry["diagnosis"]["cause"]["name"] == "channel-order"
    column = entry["samples"]["columns"][0]
    assert column["column"] == "warmth"
    assert len(column["expected"]) == len(column["rows"]) == 60
    assert {item["where"] for item in entry["samples"]["pictures"]} > {"photo", "file", "mask"}
    assert max(line.count(",") for line in text.splitlines()) > 50
    assert len(text.splitlines()) < 5000


def test_the_matrix_has_a_row_for_each_runner_and_a_column_for_each_check():
    found = matrix(differing())
    assert found.runners == ("engine", "notebook", "online json", "online v2")
    assert found.checks == (("case", "sample"), ("law", "order"), ("law", "neighbours"))
    assert found.row("engine") == [None, Cell("holds", 128), Cell("broken", 128)]
    assert found.row("online json") == [Cell("divergent", 64, 64, 64), None, None]
    assert found.row("online v2") == [Cell("crashed", 0), None, None]


def test_a_law_that_is_told_twice_has_the_graver_verdict_in_the_matrix():
    found = matrix(
        report(laws=(law("broken"), law("holds"), law("unable", "device"), law("broken", "device")))
    )
    assert [cell.verdict for cell in found.cells.values()] == ["broken", "unable"]
    assert found.cells["engine", "law", "order"].compared == 256


def test_entries_that_fail_alike_are_one_divergence():
    wrong = divergent()
    found = report(
        entry(wrong, "batch"),
        entry(wrong, "online"),
        entry(divergent("shoe"), "notebook"),
        entry(wrong, "batch", case="other"),
        entry(None, "ray", error="a"),
        entry(None, "spark", error="a"),
        entry(None, "dask", error="b"),
        entry(same(), "engine"),
    )
    assert [[entry.name for entry in group] for group in divergences(found)] == [
        ["batch", "online"],
        ["notebook"],
        ["batch"],
        ["ray", "spark"],
        ["dask"],
    ]


def test_agreement_needs_no_advice():
    assert advice(agreeing()) == []


def test_one_runner_that_differs_is_named_with_those_that_agree():
    steps = " ".join(advice(report(entry(same(), "notebook"), entry(divergent(), "online", "json"))))
    assert "differs in online json; notebook agrees" in steps
    assert "no float noise" in steps


def test_a_known_cause_comes_with_its_remedy_and_spares_the_talk_of_tolerances():
    steps = advice(diagnosed())
    assert steps[0] == "channel-order: decode to RGB on both sides; OpenCV gives BGR"
    assert not any("tolerance" in step or "ulp" in step for step in steps)


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


def test_an_operation_that_changed_since_the_recording_is_told_by_its_versions():
    used = {"operation.resize": "2", "operation.flip": "1", "operation.decode": "1"}
    recorded = {**FINGERPRINT, "operation.resize": "1", "operation.pad": "3", "operation.decode": "1"}
    changed = replace(report(entry(divergent(), recorded=recorded)), fingerprint={**FINGERPRINT, **used})
    assert changed.fingerprint_changes() == {"operation.resize": ("1", "2")}
    told = [step for step in advice(changed) if "peration" in step or "changed" in step]
    assert [step[:44] for step in told] == ["Operation resize changed: version 1 -> 2. It"]


A, B, C = "aa", "bb", "cc"


@pytest.mark.parametrize(
    ("then", "now", "tells"),
    [
        (A, A, False),
        (A, B, True),
        (A, f"{A} {B}", False),
        (f"{A} {B}", B, False),
        (f"{A} {B}", f"{A} {C}", True),
        (f"{A} {B}", C, True),
        (None, A, False),
        (A, None, False),
    ],
)
def test_a_plan_changed_where_each_side_used_one_that_the_other_did_not(
    then: str | None, now: str | None, tells: bool
):
    recorded, used = ({} if found is None else {"plan.prepare": found} for found in (then, now))
    changed = replace(
        report(entry(divergent(), recorded={**FINGERPRINT, **recorded})), fingerprint={**FINGERPRINT, **used}
    )
    assert changed.fingerprint_changes() == ({"plan.prepare": (then, now)} if tells else {})
    told = [step for step in advice(changed) if "prepare" in step]
    assert [step.split(":")[0] for step in told] == (
        ["Plan prepare is another than at the recording"] if tells else []
    )


def test_crashes_refusals_and_laws_that_could_not_be_tried_are_told_with_their_reasons():
    assert any("status 1 before it was ready" in step for step in advice(differing()))
    refused = report(entry(None, error="another CPU", refused=True))
    assert "Runner batch refused case sample: another CPU" in advice(refused)
    unable = report(laws=(law("unable", "process", "no memory"),))
    assert "Law 'process' could not be tried: found no memory" in advice(unable)


def test_nothing_compared_says_how_to_record():
    assert "parity golden record fashion ROWS" in advice(report())[0]
