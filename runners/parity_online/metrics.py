"""Prometheus metrics of the server. A model's series exist from the start, so that rates are never missing.

Labels: `model`, `version`; where it says so also `protocol` ("predictions" or "v2"), `status`, `stage`,
`kind`, `reason`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.openmetrics import exposition as openmetrics

from parity.result import Result
from parity_online.aliases import Aliases, AliasSet
from parity_online.counting import LoopCounter, LoopHistogram
from parity_online.statistics import Statistics
from parity_online.trace import Trace

CONTENT_TYPE = CONTENT_TYPE_LATEST
OPEN_CONTENT_TYPE = openmetrics.CONTENT_TYPE_LATEST

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_LABELS = ("model", "version")
_EOF = b"# EOF\n"
STAGES = ("preprocess", "inference", "postprocess")
PROTOCOLS = ("predictions", "v2", "grpc", "v1")


class Metrics:
    """The families of one server, in a registry of their own.

    Args:
        aliases: whose names of metrics are given beside ours.
    """

    def __init__(self, aliases: Iterable[AliasSet] = ()) -> None:
        self.aliases = Aliases(aliases)
        self.registry = CollectorRegistry()
        self.request_seconds = LoopHistogram(
            "parity_request_seconds",
            "From the request's headers to its answer",
            (*_LABELS, "protocol"),
            _SECONDS,
            self.registry,
        )
        self.queue_seconds = LoopHistogram(
            "parity_queue_seconds", "A request's time in the queue", _LABELS, _SECONDS, self.registry
        )
        self.stage_seconds = self._histogram(
            "parity_stage_seconds", "A batch's time in a stage", (*_LABELS, "stage"), _SECONDS
        )
        self.batch_rows = self._histogram("parity_batch_rows", "Rows in a batch", _LABELS, _ROWS)
        self.padding_share = self._histogram(
            "parity_padding_share", "Share of a batch's inference rows that is padding", _LABELS, _SHARES
        )
        self.answers = LoopCounter(
            "parity_answers",
            "Requests by HTTP status; 499: the client left",
            (*_LABELS, "protocol", "status"),
            self.registry,
        )
        self.rows = self._counter("parity_rows", "Rows answered", _LABELS)
        self.row_errors = self._counter(
            "parity_row_errors", "Rows without an answer: invalid, rejected or failed", (*_LABELS, "kind")
        )
        self.errors = self._counter("parity_errors", "Error answers by kind", (*_LABELS, "kind"))
        self.rejected = self._counter(
            "parity_rejected", "Requests refused: queue_full, draining or not_ready", (*_LABELS, "reason")
        )
        self.timeouts = self._counter("parity_timeouts", "Requests whose deadline passed", _LABELS)
        self.cancelled = self._counter(
            "parity_cancelled", "Requests dropped because their client left", _LABELS
        )
        self.gate_divergences = self._counter(
            "parity_gate_divergences", "Golden cases that diverged at start", _LABELS
        )
        self.captured_rows = self._counter(
            "parity_captured_rows", "Rows written to the capture, those that were refused too", _LABELS
        )
        self.capture_lost_rows = self._counter(
            "parity_capture_lost_rows", "Rows not captured: the queue was full, or the target failed", _LABELS
        )
        self.capture_failures = self._counter(
            "parity_capture_failures", "Parts of the capture that could not be written", _LABELS
        )
        self.queue_rows = Gauge("parity_queue_rows", "Rows waiting", _LABELS, registry=self.registry)
        self.slots = Gauge("parity_slots", "Slots that can take a batch", _LABELS, registry=self.registry)
        self.device_slots = Gauge(
            "parity_device_slots",
            "Slots that can take a batch, by their device",
            (*_LABELS, "device"),
            registry=self.registry,
        )
        self.slots_lost = self._counter(
            "parity_slots_lost", "Slots whose batch hung, or whose process died", (*_LABELS, "cause")
        )
        self.shadow_rows = self._counter(
            "parity_shadow_rows",
            "Rows that a shadow answered too: same, different, unanswered or lost; `of` is the measure",
            (*_LABELS, "of", "verdict"),
        )
        self.ready = Gauge("parity_ready", "1 when the model takes requests", _LABELS, registry=self.registry)
        self._tasks = Gauge("parity_tasks", "Tasks that live in the event loop", registry=self.registry)
        self._connections = Gauge("parity_connections", "Open HTTP connections", registry=self.registry)

    def watch(self, tasks: Callable[[], float], connections: Callable[[], float]) -> None:
        """Tell how many tasks and connections there are: what must not grow for ever."""
        self._tasks.set_function(tasks)
        self._connections.set_function(connections)

    def model(self, name: str, version: str) -> ModelMetrics:
        """The series of one model; `ModelMetrics.show` adds its gauges."""
        return ModelMetrics(self, name, version)

    def text(self) -> bytes:
        """Everything, in the Prometheus text format."""
        return generate_latest(self.registry) + self.aliases.text()

    def open_text(self) -> bytes:
        """The same as OpenMetrics, with the traces of requests as exemplars of `parity_request_seconds`.

        The aliases keep their names: as counters they would have to end in `_total`, so they are of no
        known type here.
        """
        ours = openmetrics.generate_latest(self.registry)
        return ours.removesuffix(_EOF) + self.aliases.text(counter="unknown") + _EOF

    def _histogram(self, name: str, doc: str, labels: Sequence[str], buckets: Sequence[float]) -> Histogram:
        return Histogram(name, doc, labels, buckets=buckets, registry=self.registry)

    def _counter(self, name: str, doc: str, labels: Sequence[str]) -> Counter:
        return Counter(name, doc, labels, registry=self.registry)


class CaptureMetrics:
    """The series of one model's capture; see `parity.capture.CaptureObserver`. For any thread."""

    def __init__(self, metrics: Metrics, labels: tuple[str, str]) -> None:
        self._rows = metrics.captured_rows.labels(*labels)
        self._lost_rows = metrics.capture_lost_rows.labels(*labels)
        self._failures = metrics.capture_failures.labels(*labels)

    def captured(self, rows: int) -> None:
        """So many rows have been written."""
        self._rows.inc(rows)

    def lost(self, rows: int) -> None:
        """So many rows are lost to the capture."""
        self._lost_rows.inc(rows)

    def failed(self) -> None:
        """A part could not be written."""
        self._failures.inc()


class ModelMetrics:
    """The series of one model, bound to its labels; also the observer of its driver.

    Attributes:
        statistics: what Triton's extension tells.
        is_rehearsing: whether its batches are goldens at start, which nobody has asked for: statistics and
            aliases, which count what clients asked, leave them out.
    """

    def __init__(self, metrics: Metrics, name: str, version: str) -> None:
        labels = (name, version)
        self._labels = labels
        self._metrics = metrics
        self._devices: set[str] = set()
        self.statistics = Statistics()
        self.is_rehearsing = False
        self._tally = metrics.aliases.tally(name, version)
        self._request_seconds = {p: metrics.request_seconds.labels(*labels, p) for p in PROTOCOLS}
        self._ok = {p: metrics.answers.labels(*labels, p, "200") for p in PROTOCOLS}
        self._queue_seconds = metrics.queue_seconds.labels(*labels)
        self._stage_seconds = {stage: metrics.stage_seconds.labels(*labels, stage) for stage in STAGES}
        self._batch_rows = metrics.batch_rows.labels(*labels)
        self._padding_share = metrics.padding_share.labels(*labels)
        self._rows = metrics.rows.labels(*labels)
        self._row_errors = {
            k: metrics.row_errors.labels(*labels, k) for k in ("invalid", "rejected", "failed")
        }
        self._rejected = {
            reason: metrics.rejected.labels(*labels, reason)
            for reason in ("queue_full", "draining", "not_ready")
        }
        self._timeouts = metrics.timeouts.labels(*labels)
        self._cancelled = metrics.cancelled.labels(*labels)
        self.gate_divergences = metrics.gate_divergences.labels(*labels)
        self.ready = metrics.ready.labels(*labels)
        self.slots = metrics.slots.labels(*labels)
        self._slots_lost = {cause: metrics.slots_lost.labels(*labels, cause) for cause in ("hung", "died")}
        self.capture = CaptureMetrics(metrics, labels)

    def show(self, queued_rows: Callable[[], float], queued: Callable[[], float]) -> None:
        """Tell how many rows wait, and how many requests."""
        if self._tally is not None:
            self._tally.queued = queued
        self.ready = self._metrics.ready.labels(*self._labels)
        self._metrics.queue_rows.labels(*self._labels).set_function(queued_rows)

    def show_slots(self, by_device: Mapping[str, int]) -> None:
        """Tell how many slots can take a batch, for each device."""
        self.slots.set(sum(by_device.values()))
        self._devices |= set(by_device)
        for device, alive in by_device.items():
            self._metrics.device_slots.labels(*self._labels, device).set(alive)

    def forget(self) -> None:
        """Drop the gauges of a model that is gone; what was counted stays."""
        self._metrics.ready.remove(*self._labels)
        self._metrics.queue_rows.remove(*self._labels)
        self._metrics.slots.remove(*self._labels)
        for device in self._devices:
            self._metrics.device_slots.remove(*self._labels, device)
        if self._tally is not None:
            self._tally.queued = float

    def dispatched(self, waits_s: Sequence[float], rows: int) -> None:
        """See `parity_online.driver.Observer`."""
        observe = self._queue_seconds.observe
        for wait_s in waits_s:
            observe(wait_s)
        self._batch_rows.observe(rows)
        if self.is_rehearsing:
            return
        self.statistics.dispatched(waits_s)
        if self._tally is not None:
            self._tally.dispatched(waits_s)

    def expired(self, requests: int) -> None:
        """See `parity_online.driver.Observer`."""
        self._timeouts.inc(requests)

    def cancelled(self, requests: int) -> None:
        """See `parity_online.driver.Observer`."""
        self._cancelled.inc(requests)

    def scored(self, result: Result, rows: int, requests: int) -> None:
        """A batch of `rows` rows, of so many requests, has run."""
        for stage, seconds in result.timings.items():
            child = self._stage_seconds.get(stage)
            if child is not None:
                child.observe(seconds)
        self._rows.inc(rows - len(result.errors))
        for error in result.errors:
            self._row_errors[error.kind].inc()
        if self.is_rehearsing:
            return
        self.statistics.scored(rows, rows - len(result.errors), result.timings)
        if self._tally is not None:
            self._tally.scored(rows - len(result.errors), requests, result.timings)

    def lost_slot(self, cause: str) -> None:
        """A slot was lost: "hung" or "died"."""
        self._slots_lost[cause].inc()

    def shadowed(self, of: str, verdict: str, rows: int) -> None:
        """This model, a shadow, was compared on so many rows with version `of`."""
        self._metrics.shadow_rows.labels(*self._labels, of, verdict).inc(rows)

    def padded(self, share: float) -> None:
        """A batch's inference rows had this share of padding."""
        self._padding_share.observe(share)

    def refused_rows(self, rows: int) -> None:
        """So many rows did not fit the schema."""
        self._row_errors["invalid"].inc(rows)

    def answered(self, protocol: str, seconds: float, trace: Trace | None = None) -> None:
        """A request was answered 200."""
        self._took(protocol, seconds, trace)
        self._ok[protocol].inc()
        self.statistics.answered(seconds)
        if self._tally is not None:
            self._tally.answered(seconds)

    def failed(
        self, protocol: str, seconds: float, status: int, kind: str, trace: Trace | None = None
    ) -> None:
        """A request was answered with an error, or its client left (499)."""
        self._took(protocol, seconds, trace)
        self._metrics.answers.labels(*self._labels, protocol, str(status)).inc()
        self._metrics.errors.labels(*self._labels, kind).inc()
        self.statistics.failed(seconds)
        if self._tally is not None:
            self._tally.failed(status, kind)
        if kind in self._rejected:
            self._rejected[kind].inc()

    def _took(self, protocol: str, seconds: float, trace: Trace | None) -> None:
        if trace is not None and trace.is_sampled:
            self._request_seconds[protocol].observe_traced(seconds, trace.id)
        else:
            self._request_seconds[protocol].observe(seconds)


def asks_for_open(accept: str) -> bool:
    """Whether a scraper's `Accept` would rather have OpenMetrics (1.0 or 0.0.1) than the classic text."""
    best = {True: 0.0, False: 0.0}
    for entry in accept.lower().split(","):
        media, *parameters = (part.strip() for part in entry.split(";"))
        told = {key: value for key, _, value in (parameter.partition("=") for parameter in parameters)}
        is_open = media == "application/openmetrics-text"
        if is_open and told.get("version", "1.0.0") not in ("1.0.0", "0.0.1"):
            continue
        if is_open or media in ("text/plain", "text/*"):
            best[is_open] = max(best[is_open], _quality(told.get("q", "1")))
    return best[True] > 0 and best[True] >= best[False]


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
