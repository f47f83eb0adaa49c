"""The batch engine `ray`: the units of `parity batch --engine ray`, each scored by one of a pool of actors.

An actor keeps the handler between units. One that dies is started again, and its unit is scored again.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from parity.errors import ConfigError, RunnerError, did_you_mean
from parity_ray.local import local_cluster
from parity_ray.pool import cluster_resources

UnitT = TypeVar("UnitT")
ReportT = TypeVar("ReportT")

RETRIES = 3
"""Times that a unit is begun again after its actor died; a unit that kills each of four is at fault."""

_LOOK_S = 30.0
"""How often to look whether the cluster still has room for an actor, when no unit gets done."""


@dataclass(frozen=True)
class RayBatchEngine:
    """A `parity.batch_engines.BatchEngine` over a Ray cluster.

    Attributes:
        address: a cluster's address; by default the one that this process is connected to, the one that
            `RAY_ADDRESS` names, or else a cluster of this machine's for the time of the job.
        num_cpus: the CPUs that an actor holds.
        num_gpus: the GPUs that an actor holds; by default 1 where the job's device is a GPU.
        start_timeout_s: how long to wait until the cluster has room for a first actor.
    """

    address: str | None = None
    num_cpus: float = 1.0
    num_gpus: float | None = None
    start_timeout_s: float = 600.0
    name: str = "ray"

    def run(
        self, units: Sequence[UnitT], task: Callable[[UnitT], ReportT], *, workers: int | None, device: str
    ) -> Iterator[ReportT]:
        """The task's report for each unit, as units finish; see `BatchEngine.run`.

        Raises:
            ConfigError: the cluster has no room for the workers.
            RunnerError: no actor could be started in time, a unit killed every actor that scored it, or the
                cluster lost what was needed.
            Exception: what the task raised.
        """
        with self._connected():
            gpus_each = (1.0 if device != "cpu" else 0.0) if self.num_gpus is None else self.num_gpus
            count = self._workers(workers, len(units), gpus_each)
            yield from self._scored(list(units), task, count, gpus_each)

    @contextlib.contextmanager
    def _connected(self) -> Generator[None]:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        import ray

        if ray.is_initialized():
            yield
            return
        address = self.address or os.environ.get("RAY_ADDRESS")
        if address is None:
            with local_cluster(len(os.sched_getaffinity(0))):
                yield
            return
        try:
            ray.init(address=address, log_to_driver=False)
        except (ConnectionError, ValueError, RuntimeError) as exc:
            raise RunnerError(
                f"batch engine 'ray': no Ray cluster answers at {address!r}: {exc}; check the address, or "
                "leave it out for a cluster of this machine"
            ) from exc
        try:
            yield
        finally:
            ray.shutdown()

    def _workers(self, wanted: int | None, units: int, gpus_each: float) -> int:
        cpus, gpus = cluster_resources()
        room = min(
            cpus / self.num_cpus if self.num_cpus else float(units),
            gpus / gpus_each if gpus_each else cpus or 1,
        )
        fits = int(room + 1e-9)
        if fits < 1 or (wanted is not None and wanted > fits):
            raise ConfigError(
                f"batch engine 'ray': {wanted or 1} workers need {(wanted or 1) * self.num_cpus:g} CPUs and "
                f"{(wanted or 1) * gpus_each:g} GPUs, and this cluster has {cpus:g} and {gpus:g}; "
                f"{f'at most --workers {fits} fit' if fits else 'name a larger cluster'}, or give "
                "--engine-option num_cpus= or num_gpus= a smaller number"
            )
        return min(units, fits if wanted is None else wanted)

    def _scored(
        self, units: list[UnitT], task: Callable[[UnitT], ReportT], count: int, gpus_each: float
    ) -> Iterator[ReportT]:
        import ray

        actor = cast("Any", ray).remote(
            num_cpus=self.num_cpus, num_gpus=gpus_each, max_restarts=-1, max_task_retries=RETRIES
        )(_UnitActor)
        shared = ray.put(task)
        actors = [actor.remote([shared]) for _ in range(count)]
        free: list[Any] = []
        starting: dict[Any, Any] = {made.ready.remote(): made for made in actors}
        running: dict[Any, tuple[Any, UnitT]] = {}
        waiting = list(reversed(units))
        lacking_since: float | None = None
        try:
            while waiting or running:
                while free and waiting:
                    unit, worker = waiting.pop(), free.pop()
                    running[worker.score.remote(unit)] = (worker, unit)
                timeout = _LOOK_S if running else self.start_timeout_s
                pending = [*running, *(starting if waiting else ())]
                done, _ = ray.wait(pending, num_returns=1, timeout=timeout)
                if not done and not running:
                    raise RunnerError(
                        f"batch engine 'ray': no actor could be started within {self.start_timeout_s:.0f} s; "
                        "the cluster's CPUs or GPUs are held by others (see `ray status`): free some, or "
                        "raise --engine-option start_timeout_s="
                    )
                lacking_since = None if done else self._lacking(lacking_since, gpus_each)
                for reference in done:
                    if reference in starting:
                        worker = starting.pop(reference)
                        _got(reference, "an actor")
                        free.append(worker)
                        continue
                    worker, unit = running.pop(reference)
                    report = _got(reference, _named(unit))
                    free.append(worker)
                    yield report
        finally:
            for made in actors:
                with contextlib.suppress(Exception):
                    ray.kill(made)

    def _lacking(self, since: float | None, gpus_each: float) -> float | None:
        """Since when no actor fits in the cluster any more; None where one does.

        Raises:
            RunnerError: that was so for longer than an actor may take to start.
        """
        cpus, gpus = cluster_resources()
        if cpus >= self.num_cpus and gpus >= gpus_each:
            return None
        now = time.monotonic()
        if since is not None and now - since > self.start_timeout_s:
            raise RunnerError(
                f"batch engine 'ray': an actor needs {self.num_cpus:g} CPUs and {gpus_each:g} GPUs, and for "
                f"{now - since:.0f} s the cluster has had only {cpus:g} and {gpus:g}; did it lose nodes (see "
                "`ray status`)? The same command continues when they are back"
            )
        return now if since is None else since


def _got(reference: Any, what: str) -> Any:
    """What a task of an actor gave.

    Raises:
        RunnerError: its actors died, or Ray lost it.
        Exception: what the task raised.
    """
    import ray
    from ray import exceptions

    try:
        return ray.get(reference)
    except exceptions.RayTaskError as exc:
        raise (exc.cause if isinstance(exc.cause, Exception) else exc) from None
    except exceptions.RayError as exc:
        told = " ".join(str(exc).split())[:300]
        if not isinstance(exc, exceptions.RayActorError):
            said = f"Ray lost {what}: {type(exc).__name__}: {told}; the same command continues"
        elif what == "an actor":
            said = f"an actor could not be started: {told}"
        else:
            said = f"{what} killed each of {RETRIES + 1} actors that scored it: {told}; is its memory enough?"
        raise RunnerError(f"batch engine 'ray': {said}") from exc


class _UnitActor:
    """An actor; it is given the task in a list, so that Ray does not fetch it for an actor not started."""

    def __init__(self, shared: list[Any]) -> None:
        import ray

        self._task: Any = ray.get(shared[0])

    def ready(self) -> None:
        """Return as soon as the actor is there."""

    def score(self, unit: Any) -> Any:
        """The task's report for a unit."""
        return self._task(unit)


def batch_engine(options: Mapping[str, str]) -> RayBatchEngine:
    """The engine for `--engine-option` settings: address, num_cpus, num_gpus, start_timeout_s.

    Raises:
        ImportError: Ray is not installed.
        ConfigError: a setting is unknown (near names are given), or no number.
    """
    importlib.import_module("ray")  # fails here, before the plan is made
    known = ("address", "num_cpus", "num_gpus", "start_timeout_s")
    found: dict[str, Any] = {}
    for key, text in options.items():
        if key not in known:
            raise ConfigError(f"batch engine 'ray' has no option {key!r}; {did_you_mean(key, known)}")
        found[key] = text if key == "address" else _number(key, text)
    return RayBatchEngine(**found)


def _number(key: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise ConfigError(f"batch engine 'ray': {key} = {text!r} is not a number of at least 0")
    return value


def _named(unit: Any) -> str:
    return f"unit {getattr(unit, 'part', unit)}"
