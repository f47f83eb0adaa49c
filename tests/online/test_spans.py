"""Spans that a real server sends to a collector over HTTP."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from parity.errors import ConfigError
from parity_online.process import ServerProcess
from parity_online.spans import Spans
from tests.online.serving import JSON, PROBE, ask

pytest.importorskip("opentelemetry.sdk")
service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


class Collector:
    """What is posted to /v1/traces, as OTLP's protobuf."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        received = self.requests

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                assert self.path == "/v1/traces"
                received.append(service.ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    @property
    def spans(self) -> list[Any]:
        return [
            span
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


@pytest.fixture
def collector() -> Iterator[Collector]:
    found = Collector()
    thread = threading.Thread(target=found.server.serve_forever)
    thread.start()
    yield found
    found.server.shutdown()
    thread.join()
    found.server.server_close()


def attributes(span: Any) -> dict[str, Any]:
    return {item.key: getattr(item.value, item.value.WhichOneof("value")) for item in span.attributes}


@pytest.mark.slow
@pytest.mark.parametrize("http", ["fast", "asgi"])
def test_a_request_is_a_span_with_its_stages_inside(collector: Collector, http: str):
    with ServerProcess([PROBE, "--http", http, "--otel-endpoint", collector.url, "--access-log"]) as server:
        answers = [
            ask(server.url, "POST", "/predictions/probe", body, {**JSON, **headers})
            for body, headers in (
                ({"id": 1}, {"traceparent": f"00-{TRACE}-{PARENT}-01", "X-Request-Id": "one"}),
                ({"id": 2, "act": "raise"}, {}),
                ({"id": 3}, {"traceparent": f"00-{TRACE}-{PARENT}-00"}),
            )
        ]
    assert [status for status, _, _ in answers] == [200, 500, 200]
    responses = [headers["traceresponse"].split("-") for _, headers, _ in answers]
    roots = {span.span_id.hex(): span for span in collector.spans if span.name == "infer probe"}
    # The third was not sampled by its client, and so is not here either.
    assert set(roots) == {responses[0][2], responses[1][2]}
    assert responses[2][1:] == [TRACE, responses[2][2], "00"]
    one, failed = roots[responses[0][2]], roots[responses[1][2]]
    assert (one.trace_id.hex(), one.parent_span_id.hex()) == (TRACE, PARENT)
    told = attributes(one)
    assert told["parity.request_id"] == "one"
    assert (told["parity.model"], told["parity.version"], told["parity.protocol"]) == (
        "probe",
        "3",
        "predictions",
    )
    assert told["http.response.status_code"] == 200
    inside = sorted(
        (span for span in collector.spans if span.parent_span_id == one.span_id),
        key=lambda span: span.start_time_unix_nano,
    )
    assert [span.name for span in inside] == ["wait", "preprocess", "inference", "postprocess"]
    for span in inside:
        assert one.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano
        assert span.end_time_unix_nano <= one.end_time_unix_nano
    assert failed.status.code == 2
    assert attributes(failed)["error.type"] == "failed"
    (resource,) = {request.resource_spans[0].resource.SerializeToString() for request in collector.requests}
    assert b"service.name" in resource
    assert b"parity" in resource
    assert f"trace={TRACE} span={one.span_id.hex()} parent={PARENT}" in server.log()


@pytest.mark.slow
def test_a_collector_that_is_away_keeps_nobody():
    with ServerProcess([PROBE, "--otel-endpoint", "http://127.0.0.1:9"], stop_s=30) as server:
        status, headers, _ = ask(server.url, "POST", "/predictions/probe", {"id": 1}, JSON)
        assert status == 200
        assert headers["traceresponse"].startswith("00-")
    assert server.exit_code == 0


def test_an_endpoint_that_is_no_url_is_refused():
    with pytest.raises(ConfigError, match="--otel-endpoint 'localhost:4318': expected the collector's URL"):
        Spans("localhost:4318")
