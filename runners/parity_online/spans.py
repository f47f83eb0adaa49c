"""OpenTelemetry spans of inference requests: one for the request, one for each part of its time.

The request's span is made when the answer is, with the times that were measured on the way: so the hot path
does nothing for it before. Its children are `wait` (decoding and the queue) and the stages of the batch that
answered it, the last one where it was split. The SDK's own variables hold: OTEL_SERVICE_NAME,
OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER, OTEL_BSP_* and OTEL_EXPORTER_OTLP_HEADERS.
"""

from __future__ import annotations

import importlib.metadata
import os
import threading
import time
from typing import Any

from parity.errors import ConfigError
from parity_online.request import Request
from parity_online.trace import Trace

_FLUSH_S = 5.0


class Spans:
    """Exports spans to a collector by OTLP over HTTP, on a thread of its own that requests never wait for.

    Args:
        endpoint: the collector's root, such as http://localhost:4318.

    Raises:
        ConfigError: OpenTelemetry is not installed, or the endpoint is no URL of HTTP.
    """

    def __init__(self, endpoint: str) -> None:
        if not endpoint.startswith(("http://", "https://")):
            raise ConfigError(
                f"--otel-endpoint {endpoint!r}: expected the collector's URL, such as http://localhost:4318"
            )
        try:
            from opentelemetry import trace
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError as exc:
            raise ConfigError(
                f"--otel-endpoint needs a library that is not installed ({exc.name}): "
                "pip install 'parity[otel]'"
            ) from exc
        self._api: Any = trace
        version = importlib.metadata.version("parity")
        service = {"service.name": os.environ.get("OTEL_SERVICE_NAME", "parity"), "service.version": version}
        self._provider = TracerProvider(resource=Resource.create(service), shutdown_on_exit=False)
        exporter = OTLPSpanExporter(endpoint=endpoint.rstrip("/") + "/v1/traces")
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("parity_online", version)

    def record(
        self,
        request: Request,
        model: tuple[str, str],
        protocol: str,
        status: int,
        seconds: float,
        kind: str = "",
    ) -> None:
        """Export a request that has just been answered; `request.trace` tells its span from now on.

        Args:
            request: the request.
            model: the name and version that answered it.
            protocol: how it was asked.
            status: the HTTP status of its answer.
            seconds: how long it took.
            kind: of its error.
        """
        api = self._api
        now, now_ns = time.perf_counter(), time.time_ns()
        name, version = model
        attributes: dict[str, Any] = {
            "parity.model": name,
            "parity.version": version,
            "parity.protocol": protocol,
            "http.response.status_code": status,
        }
        if request.id is not None:
            attributes["parity.request_id"] = request.id
        if request.ran is not None:
            attributes["parity.batch"] = request.ran.batch
        if kind:
            attributes["error.type"] = kind
        start_ns = now_ns - round(seconds * 1e9)
        span = self._tracer.start_span(
            f"infer {name}",
            context=self._parent(request.trace),
            kind=api.SpanKind.SERVER,
            attributes=attributes,
            start_time=start_ns,
        )
        if status >= 500:
            span.set_status(api.StatusCode.ERROR, kind)
        if request.ran is not None and span.is_recording():
            inside = api.set_span_in_context(span)
            at_ns = now_ns - round((now - request.ran.started) * 1e9)
            self._part("wait", inside, start_ns, at_ns)
            for stage, stage_s in request.ran.stages_s.items():
                end_ns = min(now_ns, at_ns + round(stage_s * 1e9))
                self._part(stage, inside, at_ns, end_ns)
                at_ns = end_ns
        span.end(end_time=now_ns)
        found = span.get_span_context()
        parent = "" if request.trace is None else request.trace.parent
        flags = f"{int(found.trace_flags):02x}"
        request.trace = Trace(f"{found.trace_id:032x}", parent, flags, f"{found.span_id:016x}")

    def close(self) -> None:
        """Send what is left, for at most some seconds: a collector that is away keeps nobody here."""
        closing = threading.Thread(target=self._provider.shutdown, name="parity-spans", daemon=True)
        closing.start()
        closing.join(_FLUSH_S)

    def _part(self, name: str, inside: Any, start_ns: int, end_ns: int) -> None:
        self._tracer.start_span(name, context=inside, start_time=start_ns).end(end_time=end_ns)

    def _parent(self, trace: Trace | None) -> Any:
        if trace is None:
            return None
        api = self._api
        parent = api.SpanContext(
            trace_id=int(trace.id, 16),
            span_id=int(trace.parent, 16),
            is_remote=True,
            trace_flags=api.TraceFlags(int(trace.flags, 16)),
        )
        return api.set_span_in_context(api.NonRecordingSpan(parent))
