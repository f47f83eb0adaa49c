"""TF Serving's and KServe V1's routes on a real server, asked as their documents do."""

import json
import subprocess
from typing import Any

import pytest

from tests.online.serving import Probe, ask

pytestmark = pytest.mark.slow

PATH = "/v1/models/probe:predict"


def curl(*arguments: str) -> Any:
    """What curl prints, as JSON."""
    done = subprocess.run(["curl", "-sS", *arguments], capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)


def test_rows_and_columns_answer_in_their_form(probe: Probe):
    rows = {"signature_name": "serving_default", "instances": [{"id": 1, "x": 0.5}, {"id": 2}]}
    answer = probe.ask(PATH, rows)[2]
    assert [(row["id"], row["y"]) for row in answer["predictions"]] == [(1, 2.0), (2, 1.0)]
    columns = {"inputs": {"id": [1, 2], "x": [0.5, 0.0]}}
    status, _, answer = probe.ask("/v1/models/probe/versions/3:predict", columns)
    assert (status, answer["outputs"]["id"], answer["outputs"]["y"]) == (200, [1, 2], [2.0, 1.0])


def test_curl_as_the_documents_have_it(probe: Probe):
    url = f"{probe.server.url}{PATH}"
    assert curl("-d", '{"instances": [{"id": 3, "x": 1.0}]}', "-X", "POST", url)["predictions"][0]["y"] == 3.0
    wrong = curl("-d", '{"instances": [{"id": 1.0}]}', "-X", "POST", url)
    assert "field 'id'" in wrong["error"]
    status = curl(f"{probe.server.url}/v1/models/probe")
    assert status["model_version_status"][0] == {
        "version": "3",
        "state": "AVAILABLE",
        "status": {"error_code": "OK", "error_message": ""},
    }
    metadata = curl(f"{probe.server.url}/v1/models/linear/metadata")
    signature = metadata["metadata"]["signature_def"]["signature_def"]["serving_default"]
    assert signature["inputs"]["features"]["dtype"] == "DT_FLOAT"
    assert [dim["size"] for dim in signature["inputs"]["features"]["tensor_shape"]["dim"]] == ["-1", "8"]


def test_more_rows_than_a_batch_come_back_in_order(probe: Probe):
    answer = probe.ask(PATH, {"instances": [{"id": number} for number in range(13)]})[2]
    assert [row["id"] for row in answer["predictions"]] == list(range(13))


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"{", 400, "not JSON"),
        (b'{"instances": []}', 400, "0 rows"),
        (b'{"instances": [{"id": 1}], "instances": []}', 400, "'instances' twice"),
        (b'{"inputs": {"id": [1], "idd": [1]}}', 400, "'idd'"),
        (b'{"instances": [{"id": 1}, {"id": 1, "act": "reject"}]}', 400, "row 1"),
        (b'{"instances": [{"id": 1}, {"id": 1, "act": "raise"}]}', 500, "row 1"),
        (b'{"instances": [{"id": 1, "act": "nan"}]}', 500, "field 'y'"),
        (json.dumps({"instances": [{"id": n} for n in range(17)]}).encode(), 413, "17 rows"),
        (b'{"instances": [%s1]}' % (b"1," * 400_000), 413, "400001 rows"),
    ],
)
def test_errors_have_the_protocols_form(probe: Probe, body: bytes, status: int, said: str):
    found, _, answer = ask(probe.server.url, "POST", PATH, body, {"Content-Type": "application/json"})
    assert found == status
    assert said in answer["error"] or said in str(answer.get("rows"))


def test_unknown_models_and_types_are_told(probe: Probe):
    assert probe.ask("/v1/models/prob:predict", {"instances": []})[0] == 404
    assert probe.ask("/v1/models/probe/versions/9:predict", {"instances": []})[0] == 404
    assert probe.ask(PATH, b"", {"Content-Type": "image/png"})[0] == 415
    assert ask(probe.server.url, "GET", "/v1/models")[2] == {"models": ["probe", "linear"]}
    assert ask(probe.server.url, "GET", "/v1/models/linear")[2]["ready"] is True
    assert ask(probe.server.url, "GET", "/v1/models/lin")[0] == 404
