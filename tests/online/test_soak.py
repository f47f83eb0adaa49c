"""The soak in small: clients of all protocols with faults, each answer held to the batch runner's."""

import numpy as np
import pytest

from benchmarks import soak
from benchmarks.serving.asking import Told
from benchmarks.serving.questions import Questions
from benchmarks.serving.traffic import FAULTS, judged

pytestmark = pytest.mark.slow
pytest.importorskip("tritonclient.http.aio")
pytest.importorskip("tritonclient.grpc.aio")


@pytest.mark.timeout(600)
def test_under_mixed_load_every_answer_is_the_batch_runners_and_every_fault_has_its_status():
    found = soak.run(["--requests", "1000", "--processes", "1", "--profile", "default"])
    assert set(FAULTS) <= set(found["kinds"]), "every kind of fault was tried"
    missed = [
        bar["what"]
        for bar in found["bars"]
        if (bar["value"] > bar["bar"] if bar["at"] == "most" else bar["value"] < bar["bar"])
        and not bar["what"].startswith("memory")  # so few requests warm nothing up
    ]
    assert not missed, (missed, found["first"], found["log_tail"])


def test_the_soak_tells_wrong_answers_from_right_ones():
    rows = [{"id": number} for number in range(3)]
    asked = Questions(rows, np.array([0.5, np.nan, 2], np.float32), ["", "failed", ""], [0, 2], [1])
    right = Told(200, [0.5, 2.0], [0, 2], {})
    assert judged(right, "v2_json", asked, [0, 2]) is None
    assert judged(Told(200, [0.5, 2.0], [0, 2], {1: "failed"}), "arrow", asked, [0, 1, 2]) is None
    assert judged(Told(500, bad={1: "failed"}), "v1_rows", asked, [0, 1]) is None
    one_bit_off = [0.5, float(np.nextafter(np.float32(2), np.float32(3)))]
    for wrong in (
        Told(200, [2.0, 0.5], [0, 2], {}),
        Told(200, one_bit_off, [0, 2], {}),
        Told(200, [0.5, 2.0], [2, 0], {}),
        Told(200, [0.5], [0], {}),
        Told(503, said="busy"),
    ):
        assert judged(wrong, "v2_json", asked, [0, 2]), wrong
    assert judged(right, "v2_json", asked, [0, 1]), "a row that must fail was answered"
    assert judged(Told(400), "v2_json", asked, [0, 1]), "a row that failed is no fault of the caller"
    assert judged(Told(200, [0.5, 2.0], [0, 2], {1: "invalid"}), "arrow", asked, [0, 1, 2])
