"""Metrics for the hot path: a few list operations an observation, where prometheus_client takes locks.

For one thread only, the event loop's.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Generic, TypeVar

from prometheus_client.core import CounterMetricFamily, Exemplar, HistogramMetricFamily
from prometheus_client.registry import Collector, CollectorRegistry
from prometheus_client.samples import Timestamp
from prometheus_client.utils import floatToGoString

Traced = tuple[str, float, float]
"""A trace's id, a value, and its time in seconds since 1970."""


Child = TypeVar("Child")


class _Family(Collector, Generic[Child]):
    """What families share: a child for each tuple of label values, made when it is first asked for."""

    def __init__(
        self,
        name: str,
        doc: str,
        labels: Sequence[str],
        make_child: Callable[[], Child],
        registry: CollectorRegistry,
    ) -> None:
        self._name = name
        self._doc = doc
        self._label_names = tuple(labels)
        self._make_child = make_child
        self._children: dict[tuple[str, ...], Child] = {}
        registry.register(self)

    def labels(self, *values: str) -> Child:
        """The child of these label values."""
        if values not in self._children:
            self._children[values] = self._make_child()
        return self._children[values]


class LoopCounter(_Family["LoopCounterChild"]):
    """A family of counters; `labels` gives the one of some label values, to keep and increment.

    Args:
        name: the metric's name, without "_total".
        doc: what it counts.
        labels: the label names.
        registry: where it is shown.
    """

    def __init__(self, name: str, doc: str, labels: Sequence[str], registry: CollectorRegistry) -> None:
        super().__init__(name, doc, labels, LoopCounterChild, registry)

    def collect(self) -> Iterator[CounterMetricFamily]:
        """The family, as Prometheus wants it."""
        family = CounterMetricFamily(self._name, self._doc, labels=self._label_names)
        for values, child in self._children.items():
            family.add_metric(values, child.count)
        yield family


class LoopCounterChild:
    """One counter."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def inc(self) -> None:
        """Count one."""
        self.count += 1


class LoopHistogram(_Family["LoopHistogramChild"]):
    """A family of histograms; `labels` gives the one of some label values, to keep and observe.

    Args:
        name: the metric's name.
        doc: what it measures.
        labels: the label names.
        bounds: the upper bounds of the buckets, ascending, without infinity.
        registry: where it is shown.
    """

    def __init__(
        self, name: str, doc: str, labels: Sequence[str], bounds: Sequence[float], registry: CollectorRegistry
    ) -> None:
        self._bounds = tuple(float(bound) for bound in bounds)
        super().__init__(name, doc, labels, partial(LoopHistogramChild, self._bounds), registry)

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """The family, as Prometheus wants it: buckets are cumulative."""
        family = HistogramMetricFamily(self._name, self._doc, labels=self._label_names)
        texts = [*(floatToGoString(bound) for bound in self._bounds), "+Inf"]
        for values, child in self._children.items():
            total = 0
            buckets: list[tuple[str, float] | tuple[str, float, Exemplar]] = []
            for text, count, traced in zip(texts, child.counts, child.traced, strict=True):
                total += count
                buckets.append((text, total) if traced is None else (text, total, _exemplar(traced)))
            family.add_metric(values, buckets, child.sum)
        yield family


class LoopHistogramChild:
    """One histogram: `counts` per bucket, the last for what is above all bounds, and the `sum`.

    `traced` has for each bucket the last value of a traced request: the trace, the value, and when it was.
    """

    __slots__ = ("_bounds", "counts", "sum", "traced")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0
        self.traced: list[Traced | None] = [None] * (len(bounds) + 1)

    def observe(self, value: float) -> None:
        """Count one value."""
        self.counts[bisect_left(self._bounds, value)] += 1
        self.sum += value

    def observe_traced(self, value: float, trace: str) -> None:
        """Count one value of a request that belongs to this trace."""
        place = bisect_left(self._bounds, value)
        self.counts[place] += 1
        self.sum += value
        self.traced[place] = (trace, value, time.time())


def _exemplar(traced: Traced) -> Exemplar:
    trace, value, moment = traced
    return Exemplar({"trace_id": trace}, value, Timestamp(int(moment), int(moment % 1 * 1e9)))
