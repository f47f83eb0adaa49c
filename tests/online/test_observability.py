"""What a live server tells: JSON logs, access logs, traces, aliases, and all that the dashboard asks for."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_families
from prometheus_client.parser import text_string_to_metric_families

from parity_online.process import ServerProcess
from parity_online.trace import read_trace
from tests.online.serving import JSON, LINEAR, PROBE, ask, metric, until

ROOT = Path(__file__).parents[2]
DASHBOARD = json.loads((ROOT / "deploy" / "grafana" / "parity.json").read_text())
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"


@dataclass
class Told:
    server: ServerProcess

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.server.log().splitlines()]

    def of(self, request_id: str) -> dict[str, Any]:
        """The line of a request, once it is there."""
        until(lambda: any(line.get("id") == request_id for line in self.lines()))
        (found,) = [
            line
            for line in self.lines()
            if line.get("id") == request_id and line["event"] in ("request", "request_failed")
        ]
        return found


@pytest.fixture(scope="module", params=["fast", "asgi"])
def told(request: pytest.FixtureRequest) -> Iterator[Told]:
    arguments = [PROBE, LINEAR, "--max-batch", "8", "--http", request.param, "--log-format", "json"]
    arguments += ["--access-log", "--grpc-port", "0", "--slot", "thread"]
    arguments += ["--metric-aliases", "triton", "--metric-aliases", "torchserve"]
    with ServerProcess(arguments) as server:
        yield Told(server)
        told = Told(server)
    assert all({"time", "level", "logger", "event"} <= line.keys() for line in told.lines())


def send(told: Told, body: object, request_id: str, **headers: str) -> tuple[int, dict[str, str], Any]:
    more = {**JSON, "X-Request-Id": request_id, **headers}
    return ask(told.server.url, "POST", "/predictions/probe", body, more)


@pytest.mark.slow
def test_each_request_is_a_line_with_its_durations(told: Told):
    assert send(told, {"id": 1, "x": 2}, 'a "quoted" id')[0] == 200
    line = told.of('a "quoted" id')
    assert (line["event"], line["level"], line["model"], line["version"]) == ("request", "info", "probe", "3")
    assert (line["protocol"], line["status"]) == ("predictions", 200)
    stages = [line[f"{stage}_s"] for stage in ("preprocess", "inference", "postprocess")]
    assert 0 < sum(stages) <= line["seconds"]
    assert type(line["batch"]) is int


@pytest.mark.slow
def test_a_request_that_fails_is_a_line_with_the_reason(told: Told):
    assert send(told, {"id": "one"}, "q-400")[0] == 400
    assert send(told, {"id": 1, "act": "raise"}, "q-500")[0] == 500
    bad, failed = told.of("q-400"), told.of("q-500")
    assert (bad["event"], bad["level"], bad["status"], bad["kind"]) == (
        "request_failed",
        "info",
        400,
        "invalid",
    )
    assert (failed["level"], failed["status"], failed["kind"]) == ("error", 500, "failed")
    assert failed["error"].endswith("inference raised LookupError")
    (row,) = [
        line for line in told.lines() if line["event"] == "row_failed" and line["batch"] == failed["batch"]
    ]
    assert (row["stage"], row["type"]) == ("inference", "LookupError")
    assert row["level"] == "warning"
    assert "Traceback" in row["traceback"]
    assert "in inference" in row["traceback"]
    assert row["traceback"].endswith("\nLookupError")
    assert "secret-42" not in told.server.log(), "what a handler says may quote what was asked"


@pytest.mark.slow
@pytest.mark.parametrize("where", ["here", "replicas"])
@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("is_told", [False, True])
def test_what_a_handlers_exception_says_is_logged_on_demand_only(where: str, form: str, is_told: bool):
    arguments = [PROBE, "--log-format", form, "--gate", "off"]
    arguments += ["--replicas", "1"] if where == "replicas" else []
    arguments += ["--log-failures"] if is_told else []
    row = {"id": 1, "act": "raise"}
    with ServerProcess(arguments) as server:
        assert ask(server.url, "POST", "/predictions/probe", row, JSON)[0] == 500
        assert ask(server.url, "POST", "/predictions/probe", [row, {"id": 2}], JSON)[0] == 200
        tensors = {"instances": [row]}
        assert ask(server.url, "POST", "/v1/models/probe:predict", tensors, JSON)[0] == 500
        assert server.stop() == 0
        log = server.log()
    assert log.count("event=row_failed") + log.count('"event":"row_failed"') >= 3
    assert "LookupError" in log
    assert "handler.py" in log, "the place is told either way"
    assert ("secret-42" in log) is is_told


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "path", "status", "kind"),
    [
        ("GET", "/nowhere", 404, "not_found"),
        ("POST", "/predictions/prob", 404, "not_found"),
        ("POST", "/v2/models/probe/versions/9/infer", 404, "not_found"),
        ("DELETE", "/predictions/probe", 405, "method"),
        ("GET", "/v1/models/probe/versions/9", 404, "not_found"),
        ("POST", "/explanations/probe", 501, "not_offered"),
    ],
)
def test_a_request_that_reaches_no_model_is_a_line_too(
    told: Told, verb: str, path: str, status: int, kind: str
):
    request_id = f"{verb} {path}"
    found, headers, body = ask(told.server.url, verb, path, None, {"X-Request-Id": request_id})
    assert (found, headers["x-request-id"], body["id"]) == (status, request_id, request_id)
    line = told.of(request_id)
    assert (line["event"], line["level"], line["method"], line["path"]) == (
        "request_failed", "info", verb, path,
    )  # fmt: skip
    assert (line["status"], line["kind"], line["client"]) == (status, kind, "127.0.0.1")
    assert type(line["status"]) is int


@pytest.mark.slow
def test_a_replica_logs_in_the_servers_form():
    with ServerProcess([LINEAR, "--replicas", "1", "--log-format", "json"]) as server:
        row = {"features": [1] * 8, "account": 1, "name": "raise", "at": None}
        assert ask(server.url, "POST", "/predictions/linear", row, JSON)[0] == 500
        lines = [json.loads(line) for line in server.log().splitlines()]
    traces = [line["traceback"] for line in lines if line["event"] == "row_failed" and "batch" in line]
    assert traces[-1].endswith("ValueError")


@pytest.mark.slow
def test_a_trace_goes_through(told: Told):
    for request_id, body, status in (("t-1", {"id": 1}, 200), ("t-2", {"id": None}, 400)):
        found, headers, _ = send(told, body, request_id, traceparent=TRACEPARENT)
        assert found == status
        version, trace, span, flags = headers["traceresponse"].split("-")
        assert (version, trace, flags) == ("00", TRACE, "01")
        assert span != PARENT
        line = told.of(request_id)
        assert (line["trace"], line["span"], line["parent"]) == (TRACE, span, PARENT)
    assert "traceresponse" not in send(told, {"id": 1}, "t-3")[1]
    assert "traceresponse" not in send(told, {"id": 1}, "t-4", traceparent="00-nonsense")[1]


@pytest.mark.slow
def test_a_trace_goes_through_grpc(told: Told):
    grpc = pytest.importorskip("grpc")
    from parity.codec.oip_messages import message_type

    request = message_type("ModelInferRequest")(model_name="probe")
    request.inputs.add(name="id", datatype="INT64", shape=[1])
    request.raw_input_contents.append(np.array([7]).tobytes())
    with grpc.insecure_channel(told.server.grpc) as channel:
        infer = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
        metadata = (("traceparent", TRACEPARENT), ("x-request-id", "g-1"))
        _, call = infer.with_call(request.SerializeToString(), metadata=metadata)
        assert dict(call.initial_metadata())["traceresponse"].startswith(f"00-{TRACE}-")
        request.inputs[0].datatype = "BOOL"
        with pytest.raises(grpc.RpcError) as caught:
            infer(
                request.SerializeToString(), metadata=(("traceparent", TRACEPARENT), ("x-request-id", "g-2"))
            )
    assert dict(caught.value.trailing_metadata())["traceresponse"].startswith(f"00-{TRACE}-")
    assert told.of("g-1")["trace"] == told.of("g-2")["trace"] == TRACE


@pytest.mark.slow
def test_a_slow_requests_trace_is_an_exemplar_where_the_scraper_asks_for_openmetrics(told: Told):
    kept, dropped = "1" * 32, "2" * 32
    assert send(told, {"id": 1}, "e-1", traceparent=f"00-{kept}-{PARENT}-01")[0] == 200
    assert send(told, {"id": 1}, "e-2", traceparent=f"00-{dropped}-{PARENT}-00")[0] == 200
    prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1"
    _, headers, body = ask(told.server.url, "GET", "/metrics", None, {"Accept": prometheus})
    assert headers["content-type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    families = {family.name: family for family in open_families(body.decode())}
    exemplars = [
        (sample.labels["model"], sample.exemplar.labels["trace_id"])
        for sample in families["parity_request_seconds"].samples
        if sample.exemplar is not None
    ]
    assert ("probe", kept) in exemplars
    assert dropped not in body.decode()
    _, headers, body = ask(told.server.url, "GET", "/metrics", None, {"Accept": "text/plain"})
    assert headers["content-type"].startswith("text/plain")
    assert kept not in body.decode()


@pytest.mark.slow
def test_the_aliases_count_what_our_metrics_count(told: Told):
    for number in range(5):
        assert send(told, [{"id": number}, {"id": number}], f"alias-{number}")[0] == 200
    assert send(told, {"id": 1, "act": "raise"}, "alias-failed")[0] == 500
    assert send(told, {}, "alias-bad")[0] == 400

    def of(name: str, **labels: str) -> float:
        return metric(told.server.url, name, **labels)

    probe = {"model": "probe", "version": "3"}
    assert (
        of("nv_inference_request_success", **probe) == of("parity_answers_total", **probe, status="200") >= 5
    )
    assert of("nv_inference_count", **probe) == of("parity_rows_total", **probe) >= 10
    assert of("nv_inference_exec_count", **probe) == of("parity_batch_rows_count", **probe)
    assert of("nv_inference_request_failure", **probe, reason="BACKEND") >= 1
    assert of("nv_inference_request_failure", **probe, reason="OTHER") >= 1
    assert of("nv_inference_pending_request_count", **probe) == 0
    queued_us = 1e6 * of("parity_queue_seconds_sum", **probe)
    assert abs(of("nv_inference_queue_duration_us", **probe) - queued_us) <= 1
    infer_us = of("nv_inference_compute_infer_duration_us", **probe)
    assert (
        0
        < infer_us
        <= of("nv_inference_request_duration_us", **probe) + 1e6 * of("parity_request_seconds_sum")
    )
    everything = of("parity_answers_total", **probe)
    assert of("ts_inference_requests_total", model_name="probe", model_version="3") == everything
    assert abs(of("ts_queue_latency_microseconds", model_name="probe") - queued_us) <= 1
    for hundred in "245":
        ours = sum(
            of("parity_answers_total", status=status)
            for status in ("200", "400", "500")
            if status[0] == hundred
        )
        assert of(f"Requests{hundred}XX", Level="Host") == ours
    assert of("HandlerTime", ModelName="probe", Level="Model") > 0


@pytest.mark.slow
def test_the_aliases_are_prometheus_text_and_off_unless_asked_for(told: Told, probe: Any):
    text = ask(told.server.url, "GET", "/metrics")[2].decode()
    names = {family.name for family in text_string_to_metric_families(text)}
    assert {"nv_inference_count", "ts_inference_latency_microseconds", "QueueTime"} <= names
    assert "# TYPE nv_inference_count counter\n" in text
    plain = ask(probe.server.url, "GET", "/metrics")[2].decode()
    assert "nv_" not in plain
    assert "ts_inference" not in plain


def expressions() -> list[str]:
    return [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]


@pytest.mark.slow
def test_the_dashboard_asks_only_for_what_a_live_server_exports(told: Told):
    send(told, {"id": 1}, "d-1")
    send(told, {"id": "bad"}, "d-2")
    exported: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(ask(told.server.url, "GET", "/metrics")[2].decode()):
        exported.setdefault(family.name if family.type != "counter" else f"{family.name}_total", set())
        for sample in family.samples:
            exported.setdefault(sample.name, set()).update(sample.labels)
    asked: set[str] = set()
    for expression in expressions():
        names = re.findall(r"\bparity_\w+", expression)
        assert names, expression
        asked |= set(names)
        used = set(re.findall(r"(\w+)\s*=~?\"", expression))
        for group in re.findall(r"\bby \(([^)]*)\)", expression):
            used |= {label.strip() for label in group.split(",")}
        for name in names:
            assert name in exported, name
            if name == "parity_shadow_rows_total":  # has series only where there is a shadow
                exported[name] |= {"model", "version", "of", "verdict"}
            assert used <= exported[name], (name, used)
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in exported if name.startswith("parity_")}
    assert families == {re.sub(r"_(bucket|sum|count)$", "", name) for name in asked}, (
        "each family has a panel"
    )


def test_the_dashboards_panels_do_not_overlap():
    places = [panel["gridPos"] for panel in DASHBOARD["panels"]]
    cells = [
        (x, y)
        for place in places
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(places)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "00",
        f"ff-{TRACE}-{PARENT}-01",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-01-more",
        f"00-{TRACE}-{PARENT}",
    ],
)
def test_a_traceparent_that_is_not_valid_is_ignored(value: str):
    assert read_trace(value.encode()) is None


def test_a_later_version_of_traceparent_is_read_as_far_as_it_is_known():
    found = read_trace(f"cc-{TRACE}-{PARENT}-ff-what-comes".encode())
    assert found is not None
    assert (found.id, found.parent, found.flags) == (TRACE, PARENT, "03")
