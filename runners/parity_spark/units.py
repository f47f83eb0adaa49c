"""The batch engine `spark`: the units of `parity batch --engine spark`, each a partition of one Spark job.

A Python worker keeps the handler between units. A task whose worker dies is tried again by Spark.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast

from parity import errors
from parity.errors import ConfigError, ParityError, RunnerError, did_you_mean
from parity_spark.java import require_java
from parity_spark.local import local_session
from parity_spark.worker import device_of

if TYPE_CHECKING:
    from pyspark import SparkContext

UnitT = TypeVar("UnitT")
ReportT = TypeVar("ReportT")

_POLL_S = 0.2


@dataclass(frozen=True)
class SparkBatchEngine:
    """A `parity.batch_engines.BatchEngine` over Spark.

    Attributes:
        master: Spark's master; by default the session of this process, or what spark-submit says, or else
            this machine's cores for the time of the job.
        settings: Spark's own settings, `spark.*`, for a session that is made here.
    """

    master: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    name: str = "spark"

    def run(
        self, units: Sequence[UnitT], task: Callable[[UnitT], ReportT], *, workers: int | None, device: str
    ) -> Iterator[ReportT]:
        """The task's report for each unit, as units finish; see `BatchEngine.run`.

        Args:
            units: what is to be done.
            task: what does it.
            workers: the partitions that the units are put in; by default one for each unit, and Spark decides
                how many run at once.
            device: where it is not "cpu", each Spark task needs a GPU.

        Raises:
            RunnerError: Spark gave up.
            Exception: what the task raised.
        """
        slices = min(len(units), workers or len(units))
        with self._context() as context:
            yield from _scored(context, list(units), task, slices, gpu=device != "cpu")

    @contextlib.contextmanager
    def _context(self) -> Generator[SparkContext]:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        active = cast("Any", SparkContext)._active_spark_context
        if active is not None:
            yield active
            return
        submitted = os.environ.get("SPARK_ENV_LOADED") or "PYSPARK_SUBMIT_ARGS" in os.environ
        if self.master is None and not submitted:
            cores = len(os.sched_getaffinity(0))
            with local_session(self.settings, master=f"local[{cores},4]") as session:
                yield session.sparkContext
            return
        builder = SparkSession.builder.appName("parity batch")
        if self.master is not None:
            builder = builder.master(self.master)
        for name, value in self.settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        try:
            yield session.sparkContext
        finally:
            session.stop()


class Arrivals:
    """What tasks have sent to the driver with their success, as Spark's accumulators want it."""

    def zero(self, value: list[Any]) -> list[Any]:
        """Nothing yet."""
        del value
        return []

    def addInPlace(self, value1: list[Any], value2: list[Any]) -> list[Any]:  # noqa: N802 - Spark's name
        """Both."""
        value1.extend(value2)
        return value1


@dataclass(frozen=True)
class _Task:
    """What runs in a Python worker for a partition's units, each with its number.

    Attributes:
        task: scores a unit.
        gpu: whether it needs a GPU.
        arrivals: an accumulator, which brings each outcome to the driver when its partition is done.
    """

    task: Callable[[Any], Any]
    gpu: bool
    arrivals: Any

    def __call__(self, units: Iterable[tuple[int, Any]]) -> Iterator[_Outcome]:
        """For each unit its report; at an error that another try cannot cure what it is, and no more."""
        if self.gpu:
            from pyspark import TaskContext

            context = TaskContext.get()
            device = device_of({} if context is None else context.resources())
            # Before torch looks; a worker that is used again keeps its first one.
            os.environ.setdefault("CUDA_VISIBLE_DEVICES", device.partition(":")[2])
        for number, unit in units:
            try:
                outcome: _Outcome = (number, self.task(unit), None)
            except ParityError as exc:
                outcome = (number, None, (type(exc).__name__, str(exc)))
            self.arrivals.add([outcome])
            yield outcome
            if outcome[2] is not None:
                return


_Outcome = tuple[int, Any, tuple[str, str] | None]
"""A unit's number, its report, and in place of that the error's type and text."""


def _scored(
    context: SparkContext, units: list[Any], task: Callable[[Any], Any], slices: int, *, gpu: bool
) -> Iterator[Any]:
    """Run one Spark job on a thread; give each partition's reports when it is done."""
    from pyspark import InheritableThread

    arrivals = context.accumulator([], cast("Any", Arrivals()))
    group = f"parity-{uuid.uuid4().hex}"
    collected: list[_Outcome] = []
    raised: list[BaseException] = []

    def work() -> None:
        try:
            context.setJobGroup(group, "parity batch", interruptOnCancel=True)
            numbered = context.parallelize(list(enumerate(units)), slices)
            collected.extend(numbered.mapPartitions(_Task(task, gpu, arrivals)).collect())
        except BaseException as exc:  # noqa: BLE001 - raised on the caller's thread
            raised.append(exc)

    thread = InheritableThread(target=work, name="parity-spark")
    thread.daemon = True
    thread.start()
    given: set[int] = set()
    seen = 0
    try:
        while True:
            thread.join(_POLL_S)
            ended = not thread.is_alive()
            arrived = list(cast("list[_Outcome]", arrivals.value))
            for number, report, failure in [*arrived[seen:], *(collected if ended else ())]:
                if failure is not None:
                    raise _parity_error(*failure)
                if number not in given:
                    given.add(number)
                    yield report
            seen = len(arrived)
            if ended:
                break
        if raised:
            raise _spark_error(raised[0]) from raised[0]
    finally:
        if thread.is_alive():
            context.cancelJobGroup(group)
            thread.join(60)


def _parity_error(kind: str, message: str) -> ParityError:
    """The error that a worker met; one that only a worker knows is a RunnerError."""
    cls = getattr(errors, kind, RunnerError)
    return cls(message) if issubclass(cls, ParityError) else RunnerError(f"{kind}: {message}")


def _spark_error(exc: BaseException) -> BaseException:
    if not isinstance(exc, Exception):
        return exc
    told = [line for line in str(exc).splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    text = "\n  ".join(told[-12:])
    return RunnerError(
        "batch engine 'spark': Spark gave up on a task, which it had tried again as often as "
        f"spark.task.maxFailures says; the parts that are finished stay\n  {text}"
    )


def batch_engine(options: Mapping[str, str]) -> SparkBatchEngine:
    """The engine for `--engine-option` settings: master, and any of Spark's own, `spark.*`.

    Raises:
        ImportError: PySpark is not installed.
        ConfigError: a setting is unknown, or there is no Java.
    """
    importlib.import_module("pyspark")  # fails here, before the plan is made
    require_java()
    for key in options:
        if key != "master" and not key.startswith("spark."):
            hint = did_you_mean(key, ("master",))
            raise ConfigError(
                f"batch engine 'spark' has no option {key!r}; {hint} or a setting of Spark's own such as "
                "spark.executor.memory"
            )
    settings = {key: value for key, value in options.items() if key != "master"}
    return SparkBatchEngine(options.get("master"), settings)
