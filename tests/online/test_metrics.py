"""The hot path's histogram says what prometheus_client's would, in the form that a scraper asks for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from parity_online.counting import LoopHistogram
from parity_online.metrics import Metrics, asks_for_open
from parity_online.trace import Trace

BOUNDS = (0.001, 0.01, 1.0, 10.0)


@given(st.lists(st.one_of(st.sampled_from(BOUNDS), st.floats(0, 20)), max_size=30))
def test_the_loops_histogram_is_exposed_as_prometheus_own(values: list[float]):
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    histograms = [
        LoopHistogram("seconds", "Time", ("model",), BOUNDS, ours).labels("a"),
        Histogram("seconds", "Time", ("model",), buckets=BOUNDS, registry=theirs).labels("a"),
    ]
    for histogram in histograms:
        for value in values:
            histogram.observe(value)
    lines = [line for line in generate_latest(theirs).decode().splitlines() if "_created" not in line]
    assert generate_latest(ours).decode().splitlines() == lines


def test_each_bucket_tells_the_last_trace_that_fell_into_it():
    registry = CollectorRegistry()
    histogram = LoopHistogram("seconds", "Time", ("model",), BOUNDS, registry).labels("a")
    histogram.observe(0.5)
    for value, trace in ((0.02, "a1"), (0.03, "a2"), (99.0, "a3")):
        histogram.observe_traced(value, trace)
    text = openmetrics.generate_latest(registry).decode()
    (family,) = text_string_to_metric_families(text)
    found = {
        sample.labels["le"]: (sample.value, sample.exemplar and sample.exemplar.labels, sample.exemplar)
        for sample in family.samples
        if sample.name == "seconds_bucket"
    }
    assert {le: (count, labels) for le, (count, labels, _) in found.items()} == {
        "0.001": (0, None),
        "0.01": (0, None),
        "1.0": (3, {"trace_id": "a2"}),
        "10.0": (3, None),
        "+Inf": (4, {"trace_id": "a3"}),
    }
    exemplar = found["1.0"][2]
    assert exemplar is not None
    assert exemplar.value == 0.03
    assert exemplar.timestamp is not None
    assert "#" not in generate_latest(registry).decode().partition("# TYPE")[2], "the classic text has none"


def test_only_traces_that_are_kept_are_told_and_names_are_the_same_in_both_forms():
    metrics = Metrics(("triton", "torchserve"))
    model = metrics.model("a", "1")
    model.answered("v2", 0.2, Trace("ab" * 16, "", "01"))
    model.answered("v2", 0.002, Trace("cd" * 16, "", "00"))
    model.failed("v1", 3.0, 504, "deadline", Trace("ef" * 16, "", "03"))
    text = metrics.open_text().decode()
    assert [label in text for label in ("ab" * 16, "cd" * 16, "ef" * 16)] == [True, False, True]
    assert list(text_string_to_metric_families(text)), "what Prometheus reads"
    assert series_of(text) == series_of(metrics.text().decode())


def series_of(text: str) -> set[str]:
    """The names and labels of a text's samples."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {line.partition(" # ")[0].rpartition(" ")[0] for line in lines}


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", False),
        ("*/*", False),
        ("text/plain; version=0.0.4", False),
        ("application/openmetrics-text", True),
        ("application/openmetrics-text; version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", True),
        ("application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5", True),
        ("text/plain;q=0.9, application/openmetrics-text;q=0.3", False),
        ("application/openmetrics-text; version=2.0.0", False),
        ("application/openmetrics-text;q=0", False),
        ("application/openmetrics-text;q=high", False),
        ("APPLICATION/OpenMetrics-Text; Version=1.0.0; Q=0.6; escaping=underscores", True),
        (";,=,;;q", False),
    ],
)
def test_a_scraper_gets_the_form_that_it_would_rather_have(accept: str, expected: bool):
    assert asks_for_open(accept) is expected
