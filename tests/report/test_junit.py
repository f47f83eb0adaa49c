"""JUnit XML that servers accept: of the shape that the strictest schema asks for; never green for nothing."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from xml.etree import ElementTree

import pytest

from parity.report import CheckReport
from parity.report.junit import render

from .reports import HOSTILE, agreeing, diagnosed, differing, entry, failing, hostile, law, report, same

SUITE = {"package", "id", "name", "timestamp", "hostname", "tests", "failures", "errors", "skipped", "time"}
DECIMAL = re.compile(r"\d+\.\d+")
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
NOTHING = report(laws=(law("nothing"), law("skipped", "device")))
REPORTS = [agreeing(), differing(), diagnosed(), hostile(), report(), NOTHING, report(entry(failing()))]


def suites(found: CheckReport) -> list[ElementTree.Element]:
    text = render(found, datetime(2026, 11, 29, 12, 0, tzinfo=UTC))
    assert FORBIDDEN.search(text) is None
    root = ElementTree.fromstring(text)  # our own text
    assert root.tag == "testsuites"
    assert root.attrib == {}
    return list(root)


def results(found: CheckReport) -> dict[str, str]:
    return {
        f"{suite.get('name')}/{case.get('name')}": next((child.tag for child in case), "passed")
        for suite in suites(found)
        for case in suite.iter("testcase")
    }


@pytest.mark.parametrize("found", REPORTS)
def test_it_has_the_elements_and_attributes_of_ants_schema_in_their_order(found: CheckReport):
    for place, suite in enumerate(suites(found)):
        assert set(suite.attrib) == SUITE
        assert suite.get("id") == str(place)
        assert suite.get("timestamp") == "2026-11-29T12:00:00"
        assert DECIMAL.fullmatch(suite.attrib["time"])
        tags = [child.tag for child in suite]
        cases = suite.findall("testcase")
        assert tags == ["properties", *["testcase"] * len(cases), "system-out", "system-err"]
        assert all(set(item.attrib) == {"name", "value"} and item.get("name") for item in suite[0])
        for kind, count in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            assert len(suite.findall(f"testcase/{kind}")) == int(suite.attrib[count])
        assert len(cases) == int(suite.attrib["tests"])
        for case in cases:
            assert set(case.attrib) == {"name", "classname", "time"}
            assert DECIMAL.fullmatch(case.attrib["time"])
            assert [child.tag for child in case] in ([], ["failure"], ["error"], ["skipped"])
            assert all(child.get("type") for child in case if child.tag != "skipped")


def test_a_test_for_each_runner_and_case_and_for_each_law():
    assert results(differing()) == {
        "notebook/sample": "passed",
        "online json/sample": "failure",
        "online v2/sample": "error",
        "laws/order": "passed",
        "laws/neighbours": "failure",
        "check/something was compared": "passed",
    }


@pytest.mark.parametrize("found", REPORTS)
def test_it_is_red_whenever_the_exit_code_is_not_0(found: CheckReport):
    red = {"failure", "error"} & set(results(found).values())
    assert bool(red) == bool(found.exit_code)


def test_a_law_that_could_not_be_tried_is_an_error_and_one_that_does_not_apply_is_skipped():
    found = results(report(entry(same()), laws=(law("unable", "process"), law("skipped", "device"))))
    assert found["laws/process"] == "error"
    assert found["laws/device"] == "skipped"


def test_a_failure_tells_the_cause():
    told = next(iter(suites(diagnosed())[0].iter("failure")))
    assert told.get("type") == "divergent"
    assert "cause: channel-order: the channels of an image" in (told.text or "")
    assert "first differs in preprocess" in (told.text or "")


def test_hostile_names_are_told_and_do_no_harm():
    names = {case.get("name") for suite in suites(hostile()) for case in suite.iter("testcase")}
    assert HOSTILE.replace("\x1b", "\\u001b").replace("\u202e", "\\u202e") in names
