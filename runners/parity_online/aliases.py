"""The names that Triton's and TorchServe's dashboards ask for, with those servers' labels and units.

Off unless asked for. Two things differ on purpose: Triton counts a request that a full queue refuses nowhere,
here it is REJECTED; and TorchServe's `model_version` is "default" for a model without a version, which no
handler is.
"""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

AliasSet = Literal["triton", "torchserve"]

_REASONS = {
    "deadline": "REJECTED",
    "queue_full": "REJECTED",
    "client_limit": "REJECTED",
    "not_ready": "REJECTED",
    "draining": "REJECTED",
    "client_left": "CANCELED",
    "failed": "BACKEND",
    "slot_hung": "BACKEND",
    "replica_died": "BACKEND",
}
_COMPUTES = {"preprocess": "input", "inference": "infer", "postprocess": "output"}

Series = tuple[tuple[tuple[str, str], ...], float]
"""Labels and a value."""


@dataclass(frozen=True)
class Family:
    """One alias: its name, its kind ("counter" or "gauge"), what it is, and its series."""

    name: str
    kind: str
    doc: str
    series: Sequence[Series]


@dataclass
class Tally:
    """What the aliases of one model are made from; it outlives a reload, as a counter must.

    Requests are counted on the event loop, batches on slots.

    Attributes:
        success: requests that were answered.
        success_s: from their heads to their answers.
        failures: other requests, by the kind of their error.
        statuses: all requests by HTTP status.
        rows: rows that were answered.
        batches: batches that were run.
        queue_s: the requests' time in the queue.
        last_queue_s: the last of those.
        stages_s: by stage, a batch's time as often as it had requests: what they spent in it together.
        last_stages_s: by stage, the last batch's time.
        queued: tells how many requests wait.
    """

    success: int = 0
    success_s: float = 0.0
    failures: Counter[str] = field(default_factory=Counter[str])
    statuses: Counter[int] = field(default_factory=Counter[int])
    rows: int = 0
    batches: int = 0
    queue_s: float = 0.0
    last_queue_s: float = 0.0
    stages_s: dict[str, float] = field(default_factory=dict[str, float])
    last_stages_s: dict[str, float] = field(default_factory=dict[str, float])
    queued: Callable[[], float] = float
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answered(self, seconds: float) -> None:
        """A request was answered."""
        self.success += 1
        self.success_s += seconds
        self.statuses[200] += 1

    def failed(self, status: int, kind: str) -> None:
        """A request was answered with an error."""
        self.failures[kind] += 1
        self.statuses[status] += 1

    def dispatched(self, waits_s: Sequence[float]) -> None:
        """Requests left the queue after these waits."""
        self.queue_s += sum(waits_s)
        self.last_queue_s = waits_s[-1] if waits_s else self.last_queue_s

    def scored(self, answered: int, requests: int, stages_s: Mapping[str, float]) -> None:
        """A batch of so many requests has run, and so many of its rows were answered."""
        with self._lock:
            self.rows += answered
            self.batches += 1
            for stage, seconds in stages_s.items():
                self.stages_s[stage] = self.stages_s.get(stage, 0.0) + seconds * requests
            self.last_stages_s = dict(stages_s)


class Aliases:
    """The chosen names of all models.

    Args:
        chosen: whose names are given.
    """

    def __init__(self, chosen: Iterable[AliasSet]) -> None:
        self._chosen = frozenset(chosen)
        self._tallies: dict[tuple[str, str], Tally] = {}
        self._hostname = socket.gethostname()

    def tally(self, name: str, version: str) -> Tally | None:
        """What a model's aliases are counted in; None where none are wanted."""
        return self._tallies.setdefault((name, version), Tally()) if self._chosen else None

    def text(self, counter: str = "counter") -> bytes:
        """The aliases in the Prometheus text format. Their counters do not end in `_total`, as there.

        Args:
            counter: what counters are said to be.
        """
        families: list[Family] = []
        if "triton" in self._chosen:
            families += self._triton()
        if "torchserve" in self._chosen:
            families += self._torchserve()
        return "".join(_text(family, counter) for family in families).encode()

    def _triton(self) -> Iterator[Family]:
        def of(count: Callable[[Tally], float]) -> list[Series]:
            return [
                ((("model", name), ("version", version)), count(tally))
                for (name, version), tally in list(self._tallies.items())
            ]

        counted: list[tuple[str, str, Callable[[Tally], float]]] = [
            (
                "request_success",
                "Number of successful inference requests, all batch sizes",
                lambda tally: tally.success,
            ),
            ("count", "Number of inferences performed", lambda tally: tally.rows),
            ("exec_count", "Number of model executions performed", lambda tally: tally.batches),
            (
                "request_duration_us",
                "Cumulative inference request duration in microseconds",
                lambda tally: _microseconds(tally.success_s),
            ),
            (
                "queue_duration_us",
                "Cumulative inference queuing duration in microseconds",
                lambda tally: _microseconds(tally.queue_s),
            ),
        ]
        for name, doc, count in counted:
            yield Family(f"nv_inference_{name}", "counter", doc, of(count))
        for stage, name in _COMPUTES.items():
            yield Family(
                f"nv_inference_compute_{name}_duration_us",
                "counter",
                f"Cumulative compute {name} duration in microseconds",
                of(lambda tally, stage=stage: _microseconds(tally.stages_s.get(stage, 0.0))),
            )
        yield Family(
            "nv_inference_request_failure",
            "counter",
            "Number of failed inference requests, all batch sizes",
            list(self._failures()),
        )
        yield Family(
            "nv_inference_pending_request_count",
            "gauge",
            "Instantaneous number of pending requests awaiting execution per-model.",
            of(lambda tally: tally.queued()),
        )

    def _failures(self) -> Iterator[Series]:
        for (name, version), tally in list(self._tallies.items()):
            counts: dict[str, int] = dict.fromkeys(("REJECTED", "CANCELED", "BACKEND", "OTHER"), 0)
            for kind, count in tally.failures.copy().items():
                counts[_REASONS.get(kind, "OTHER")] += count
            for reason, count in counts.items():
                yield (("model", name), ("reason", reason), ("version", version)), count

    def _torchserve(self) -> Iterator[Family]:
        host = (("Level", "Host"), ("Hostname", self._hostname))

        def of(count: Callable[[Tally], float]) -> list[Series]:
            return [
                (
                    (("model_name", name), ("model_version", version), ("hostname", self._hostname)),
                    count(tally),
                )
                for (name, version), tally in list(self._tallies.items())
            ]

        tallies = list(self._tallies.values())
        yield Family(
            "ts_inference_requests_total",
            "counter",
            "Total number of inference requests",
            of(lambda tally: sum(tally.statuses.copy().values())),
        )
        yield Family(
            "ts_inference_latency_microseconds",
            "counter",
            "Cumulative inference duration in microseconds",
            of(lambda tally: _microseconds(tally.success_s)),
        )
        yield Family(
            "ts_queue_latency_microseconds",
            "counter",
            "Cumulative queue duration in microseconds",
            of(lambda tally: _microseconds(tally.queue_s)),
        )
        for hundred in (2, 4, 5):
            total = sum(
                count
                for tally in tallies
                for status, count in tally.statuses.copy().items()
                if status // 100 == hundred
            )
            yield Family(
                f"Requests{hundred}XX", "counter", f"Requests answered with a {hundred}xx", [(host, total)]
            )
        if tallies:
            waits_ms = max(tally.last_queue_s for tally in tallies) * 1000.0
            yield Family("QueueTime", "gauge", "Last time in the queue in milliseconds", [(host, waits_ms)])
        for name, doc, stages in (
            ("PredictionTime", "Last batch's time in all stages in milliseconds", tuple(_COMPUTES)),
            ("HandlerTime", "Last batch's time in the handler in milliseconds", tuple(_COMPUTES)),
        ):
            yield Family(
                name,
                "gauge",
                doc,
                [
                    (
                        (("ModelName", model), ("Level", "Model"), ("Hostname", self._hostname)),
                        1000.0 * max(_sum(tally.last_stages_s, stages) for tally in versions),
                    )
                    for model, versions in self._by_name().items()
                ],
            )

    def _by_name(self) -> dict[str, list[Tally]]:
        found: dict[str, list[Tally]] = {}
        for (name, _), tally in list(self._tallies.items()):
            found.setdefault(name, []).append(tally)
        return found


def _sum(stages_s: Mapping[str, float], stages: Iterable[str]) -> float:
    return sum(stages_s.get(stage, 0.0) for stage in stages)


def _microseconds(seconds: float) -> int:
    return round(seconds * 1e6)


def _text(family: Family, counter: str) -> str:
    kind = counter if family.kind == "counter" else family.kind
    lines = [f"# HELP {family.name} {family.doc}", f"# TYPE {family.name} {kind}"]
    for labels, value in family.series:
        told = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels)
        lines.append(f"{family.name}{{{told}}} {value}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
