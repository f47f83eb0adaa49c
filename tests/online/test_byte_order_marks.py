"""JSON as some editors save it, behind a byte order mark of UTF-8, in every protocol on a real server."""

import json
from codecs import BOM_UTF8

import pytest

from tests.online.serving import JSON, Probe, ask

pytestmark = pytest.mark.slow

ROW = {"id": 1, "x": 0.5}
TENSORS = {
    "inputs": [
        {"name": "id", "datatype": "INT64", "shape": [1], "data": [1]},
        {"name": "x", "datatype": "FP32", "shape": [1], "data": [0.5]},
    ]
}
PREDICT = "/v1/models/probe:predict"
REQUESTS = [
    ("/predictions/probe", ROW),
    ("/predictions/probe/3", ROW),
    ("/predictions/probe", [ROW, ROW]),
    ("/v2/models/probe/infer", TENSORS),
    ("/v2/models/probe/versions/3/infer", TENSORS),
    (PREDICT, {"instances": [ROW]}),
    (PREDICT, {"inputs": {"id": [1], "x": [0.5]}}),
    ("/v1/models/probe/versions/3:predict", {"signature_name": "serving_default", "instances": [ROW]}),
]


@pytest.mark.parametrize("headers", [JSON, {}], ids=["json", "no type"])
@pytest.mark.parametrize(("path", "request_"), REQUESTS)
def test_a_request_is_answered_as_without_the_mark(
    probe: Probe, path: str, request_: object, headers: dict[str, str]
):
    body = json.dumps(request_).encode()
    status, _, answer = ask(probe.server.url, "POST", path, body, headers)
    assert status == 200
    assert ask(probe.server.url, "POST", path, BOM_UTF8 + body, headers)[::2] == (status, answer)


def test_the_mark_counts_to_the_length_of_json_before_bytes(probe: Probe):
    """As all that comes before the first tensor."""
    inputs = [{**TENSORS["inputs"][0], "parameters": {"binary_data_size": 8}}]
    del inputs[0]["data"]
    text = BOM_UTF8 + json.dumps({"inputs": inputs}).encode()
    length = {"Inference-Header-Content-Length": str(len(text))}
    body = text + (7).to_bytes(8, "little")
    status, _, answer = ask(probe.server.url, "POST", "/v2/models/probe/infer", body, length)
    assert (status, answer["outputs"][0]["data"]) == (200, [7])


@pytest.mark.parametrize("path", sorted({path for path, _ in REQUESTS}))
@pytest.mark.parametrize(("body", "said"), [(b"", "the body is empty"), (b'{"id": 1,}', "not JSON")])
def test_what_is_wrong_behind_the_mark_is_told(probe: Probe, path: str, body: bytes, said: str):
    status, _, answer = ask(probe.server.url, "POST", path, BOM_UTF8 + body, JSON)
    assert status == 400
    assert said in json.dumps(answer)


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"", 200, "probe"),
        (b'{"ready": true}', 200, "probe"),
        (b"[]", 400, "the body is not a JSON object"),
        (b"{,}", 400, "the body is not JSON: "),
        (b'{"ready": 1, "ready": 2}', 400, "'ready' twice"),
    ],
)
def test_requests_for_the_repository_are_read_by_the_same_rule(
    probe: Probe, body: bytes, status: int, said: str
):
    for mark in (b"", BOM_UTF8):
        found, _, answer = ask(probe.server.url, "POST", "/v2/repository/index", mark + body, JSON)
        assert found == status
        assert said in json.dumps(answer)
