"""The hot path's histogram says what prometheus_client's would."""

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram, generate_latest

from parity_online.counting import LoopHistogram

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
