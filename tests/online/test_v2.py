"""The Open Inference Protocol on a real server."""

import json
from typing import Any

import numpy as np
import pytest

from tests.online.serving import Probe, ask

pytestmark = pytest.mark.slow

INFER = "/v2/models/probe/infer"


def tensors(ids: list[Any], x: list[Any] | None = None, act: list[str] | None = None) -> dict[str, Any]:
    found = [{"name": "id", "datatype": "INT64", "shape": [len(ids)], "data": ids}]
    if x is not None:
        found.append({"name": "x", "datatype": "FP32", "shape": [len(ids)], "data": x})
    if act is not None:
        found.append({"name": "act", "datatype": "BYTES", "shape": [len(ids)], "data": act})
    return {"inputs": found}


def data(answer: dict[str, Any], name: str) -> list[Any]:
    return next(output["data"] for output in answer["outputs"] if output["name"] == name)


def test_tensors_in_tensors_out(probe: Probe):
    status, headers, answer = probe.ask(
        INFER, {"id": "q1", **tensors([1, 2], [0.5, 1.5])}, {"X-Request-Id": "r1"}
    )
    assert status == 200
    assert headers["x-request-id"] == "r1"
    assert (answer["model_name"], answer["model_version"], answer["id"]) == ("probe", "3", "q1")
    assert [output["name"] for output in answer["outputs"]] == ["id", "y", "rows"]
    assert answer["outputs"][1] == {"name": "y", "datatype": "FP32", "shape": [2], "data": [2.0, 4.0]}


def test_the_version_may_be_named(probe: Probe):
    assert probe.ask("/v2/models/probe/versions/3/infer", tensors([1]))[0] == 200
    assert probe.ask("/v2/models/probe/versions/4/infer", tensors([1]))[0] == 404


def test_only_the_outputs_asked_for_come_back(probe: Probe):
    answer = probe.ask(INFER, {**tensors([7], [1.0]), "outputs": [{"name": "y"}]})[2]
    assert [output["name"] for output in answer["outputs"]] == ["y"]


def test_more_rows_than_a_batch_are_split_and_put_together_again(probe: Probe):
    answer = probe.ask(INFER, tensors(list(range(13)), [float(n) for n in range(13)]))[2]
    assert data(answer, "id") == list(range(13))
    assert data(answer, "y") == [2.0 * n + 1 for n in range(13)]
    assert data(answer, "rows") == [8] * 8 + [5] * 5


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({}, "inputs"),
        ({"inputs": []}, "input"),
        ({"inputs": [{"name": "id", "datatype": "INT32", "shape": [1], "data": [1]}]}, "INT64"),
        ({"inputs": [{"name": "id", "datatype": "INT64", "shape": [2], "data": [1]}]}, "2"),
        ({"inputs": [{"name": "id", "datatype": "INT64", "shape": [1, 2], "data": [1, 2]}]}, "shape"),
        ({"inputs": [{"name": "idd", "datatype": "INT64", "shape": [1], "data": [1]}]}, "'id'"),
        ({"inputs": [{"name": "id", "datatype": "INT64", "shape": [0], "data": []}]}, "0 rows"),
        ({**tensors([1]), "id": 5}, "id"),
        ({**tensors([1]), "outputs": [{"name": "z"}]}, "z"),
        ({**tensors([1]), "parameters": {"timeout": "soon"}}, "timeout"),
        ([1], "object"),
    ],
)
def test_a_request_that_does_not_fit_is_400(probe: Probe, request_: object, said: str):
    status, _, answer = probe.ask(INFER, request_)
    assert status == 400
    assert said in answer["error"]


def test_a_bad_row_fails_its_request_and_is_named(probe: Probe):
    status, _, answer = probe.ask(INFER, tensors([1, "two", 3]))
    assert status == 400
    assert answer["rows"][0]["row"] == 1
    assert answer["rows"][0]["field"] == "id"
    assert "row 1" in answer["error"]


def test_a_rejected_row_is_400_and_a_failed_one_500(probe: Probe):
    status, _, answer = probe.ask(INFER, tensors([1, 2, 3], act=["", "", "reject"]))
    assert (status, [row["row"] for row in answer["rows"]]) == (400, [2])
    status, _, answer = probe.ask(INFER, tensors([1, 2, 3], act=["", "raise", "reject"]))
    assert (status, [(row["row"], row["kind"]) for row in answer["rows"]]) == (
        500,
        [(1, "failed"), (2, "rejected")],
    )
    assert "secret-42" not in str(answer)


def test_a_bad_row_of_a_split_request_keeps_its_number(probe: Probe):
    act = [""] * 13
    act[11] = "reject"
    status, _, answer = probe.ask(INFER, tensors(list(range(13)), act=act))
    assert (status, [row["row"] for row in answer["rows"]]) == (400, [11])


def test_more_rows_than_the_queue_holds_is_413(probe: Probe):
    assert probe.ask(INFER, tensors(list(range(17))))[0] == 413


def test_an_answer_that_json_cannot_tell_names_its_row(probe: Probe):
    status, _, answer = probe.ask(INFER, tensors([1, 2], act=["", "nan"]))
    assert (status, answer["rows"][0]["row"], answer["rows"][0]["field"]) == (500, 1, "y")


def test_metadata_tells_the_tensors(probe: Probe):
    url = probe.server.url
    assert ask(url, "GET", "/v2")[2]["name"] == "parity"
    assert ask(url, "GET", "/v2/models")[2] == {"models": ["probe", "linear"]}
    for path in ("/v2/models/probe", "/v2/models/probe/versions/3"):
        answer = ask(url, "GET", path)[2]
        assert answer["versions"] == ["3"]
        assert answer["inputs"][0] == {"name": "id", "datatype": "INT64", "shape": [-1]}
        assert [output["name"] for output in answer["outputs"]] == ["id", "y", "rows"]


def test_the_configuration_is_tritons(probe: Probe):
    config = ask(probe.server.url, "GET", "/v2/models/linear/config")[2]
    assert (config["name"], config["max_batch_size"]) == ("linear", 8)
    assert config["input"][0] == {"name": "features", "data_type": "TYPE_FP32", "dims": [8]}
    assert config["input"][2] == {"name": "name", "data_type": "TYPE_STRING", "dims": [1]}
    assert config["output"][5] == {"name": "echo", "data_type": "TYPE_FP32", "dims": [2]}
    assert config["dynamic_batching"]["max_queue_delay_microseconds"] == 0
    assert config["dynamic_batching"]["default_queue_policy"]["max_queue_size"] == 16


def test_health_is_good(probe: Probe):
    url = probe.server.url
    for path in ("/v2/health/live", "/v2/health/ready", "/v2/models/probe/ready", "/ping"):
        assert ask(url, "GET", path)[0] == 200
    assert ask(url, "GET", "/v2/models/prob/ready")[0] == 404
    assert ask(url, "GET", "/ping")[2] == {"status": "Healthy"}


def test_the_docs_have_the_handlers_own_schema(probe: Probe):
    url = probe.server.url
    assert b"/predictions/" in ask(url, "GET", "/docs")[2]
    document = ask(url, "GET", "/openapi.json")[2]
    body = document["paths"]["/predictions/linear"]["post"]["requestBody"]["content"]["application/json"]
    row, rows = body["schema"]["oneOf"]
    assert row["properties"]["features"]["description"] == "eight numbers"
    assert rows["items"] == row
    answer = document["paths"]["/predictions/linear"]["post"]["responses"]["200"]["content"][
        "application/json"
    ]
    assert set(answer["schema"]["oneOf"][0]["properties"]) == {
        "score", "positive", "account", "greeting", "tags", "echo",
    }  # fmt: skip
    assert "/v2/models/probe/infer" in document["paths"]
    assert "/v2/health/ready" in document["paths"]
    assert "{name}" not in " ".join(path for path in document["paths"] if "predictions" in path)


def test_metrics_are_exposed_from_the_start(probe: Probe):
    text = ask(probe.server.url, "GET", "/metrics")[2].decode()
    for name in (
        "parity_request_seconds_bucket",
        "parity_queue_seconds_sum",
        "parity_batch_rows_count",
        "parity_rows_total",
        "parity_timeouts_total",
        "parity_cancelled_total",
        "parity_queue_rows",
    ):
        assert f"{name}{{" in text
    for stage in ("preprocess", "inference", "postprocess"):
        assert f'parity_stage_seconds_count{{model="linear",stage="{stage}",version="1"}}' in text
    assert 'parity_rejected_total{model="linear",reason="queue_full",version="1"} 0.0' in text
    assert 'parity_ready{model="probe",version="3"} 1.0' in text


def binary(*tensors_: tuple[str, str, list[int], bytes], **more: Any) -> tuple[bytes, dict[str, str]]:
    inputs = [
        {"name": name, "datatype": kind, "shape": shape, "parameters": {"binary_data_size": len(data)}}
        for name, kind, shape, data in tensors_
    ]
    text = json.dumps({"inputs": inputs, **more}).encode()
    headers = {"Inference-Header-Content-Length": str(len(text)), "Content-Type": "application/octet-stream"}
    return text + b"".join(data for *_, data in tensors_), headers


def test_tensors_go_and_come_as_bytes(probe: Probe):
    ids, x = np.array([5, 6], "<i8"), np.array([0.5, np.nan], "<f4")
    body, headers = binary(
        ("id", "INT64", [2], ids.tobytes()),
        ("x", "FP32", [2], x.tobytes()),
        parameters={"binary_data_output": True},
        outputs=[{"name": "y"}, {"name": "id", "parameters": {"binary_data": False}}],
    )
    status, found, answer = ask(probe.server.url, "POST", INFER, body, headers)
    assert status == 200
    assert found["content-type"] == "application/octet-stream"
    length = int(found["inference-header-content-length"])
    head = json.loads(answer[:length])
    assert head["outputs"] == [
        {"name": "id", "datatype": "INT64", "shape": [2], "data": [5, 6]},
        {"name": "y", "datatype": "FP32", "shape": [2], "parameters": {"binary_data_size": 8}},
    ]
    y = np.frombuffer(answer[length:], "<f4")
    assert y[0] == 2.0
    assert np.isnan(y[1])


def test_a_raw_request_is_one_row_of_the_one_input(probe: Probe):
    headers = {"Inference-Header-Content-Length": "0", "Content-Type": "application/octet-stream"}
    body = np.array(7, "<i8").tobytes()
    status, found, answer = ask(probe.server.url, "POST", INFER, body, headers)
    assert status == 200
    length = int(found["inference-header-content-length"])
    outputs = json.loads(answer[:length])["outputs"]
    assert [(output["name"], output["shape"]) for output in outputs] == [
        ("id", [1]),
        ("y", [1]),
        ("rows", [1]),
    ]
    assert answer[length : length + 8] == body


@pytest.mark.parametrize(
    ("body", "length", "said"),
    [
        (b'{"inputs":[]}', "99", "Inference-Header-Content-Length is 99"),
        (b'{"inputs":[]}', "many", "expected a number of bytes"),
        (b'{"inputs":[]}', "-1", "expected a number of bytes"),
        (b'{"inputs":[]}x', "13", "1 bytes behind the last tensor"),
        (b"\0" * 7, "0", "expected 8 bytes"),
        (b"\xff\xfe", "2", "not JSON"),
    ],
)
def test_a_body_of_bytes_that_does_not_add_up_is_400(probe: Probe, body: bytes, length: str, said: str):
    status, _, answer = ask(
        probe.server.url, "POST", INFER, body, {"Inference-Header-Content-Length": length}
    )
    assert status == 400
    assert said in answer["error"]


def test_curls_own_content_type_is_taken(probe: Probe):
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert ask(probe.server.url, "POST", INFER, tensors([1]), headers)[0] == 200
    assert ask(probe.server.url, "POST", INFER, tensors([1]), {"Content-Type": "text/csv"})[0] == 415


def test_a_key_that_is_there_twice_is_400(probe: Probe):
    body = b'{"id": "a", "id": "b", "inputs": []}'
    status, _, answer = ask(probe.server.url, "POST", INFER, body, {"Content-Type": "application/json"})
    assert (status, "'id' twice" in answer["error"]) == (400, True)


def test_the_statistics_count_rows_batches_and_requests(probe: Probe):
    url = probe.server.url
    before = ask(url, "GET", "/v2/models/linear/stats")[2]["model_stats"][0]
    rows = [{"features": [0.0] * 8, "account": None, "at": None}] * 11
    assert probe.ask("/predictions/linear", rows)[0] == 200
    assert probe.ask("/v2/models/linear/infer", {})[0] == 400
    after = ask(url, "GET", "/v2/models/linear/versions/1/stats")[2]["model_stats"][0]
    assert after["name"] == "linear"
    assert after["inference_count"] - before["inference_count"] == 11
    assert after["execution_count"] - before["execution_count"] == 2
    for key, more in (("success", 1), ("fail", 1), ("queue", 2), ("compute_infer", 2)):
        assert after["inference_stats"][key]["count"] - before["inference_stats"][key]["count"] == more
        assert after["inference_stats"][key]["ns"] > before["inference_stats"][key]["ns"]
    assert {8, 3} <= {entry["batch_size"] for entry in after["batch_stats"]}
    assert after["last_inference"] > before["last_inference"] - 1
    both = ask(url, "GET", "/v2/models/stats")[2]["model_stats"]
    assert [entry["name"] for entry in both] == ["probe", "linear"]
    assert "statistics" in ask(url, "GET", "/v2")[2]["extensions"]


def test_the_repository_index_lists_versions_and_states(probe: Probe):
    index = [
        {"name": "probe", "version": "3", "state": "READY", "reason": ""},
        {"name": "linear", "version": "1", "state": "READY", "reason": ""},
    ]
    assert probe.ask("/v2/repository/index", b"")[2] == index
    assert probe.ask("/v2/repository/index", {"ready": True})[2] == index
    assert probe.ask("/v2/repository/index", {"ready": "yes"})[0] == 400
    assert probe.ask("/v2/repository/index", b"{")[0] == 400
