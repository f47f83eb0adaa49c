"""What spreads a batch job's units of work over threads, processes or machines, and how one is found by name.

A unit is a run of row groups of one input file. The batch runner plans the units, and makes a task: a
callable that can be pickled, that scores one unit into the output folder and returns a small report. An
engine only decides where and when the task is called, so that parts, names, errors and resume are the same
with every engine. The batch runner brings the engine `local` (threads of this process) and imports no other.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar, runtime_checkable

from parity.errors import ConfigError, ReferenceNotFoundError, did_you_mean

BATCH_ENGINE_GROUP = "parity.batch_engines"
LOCAL = "local"

UnitT = TypeVar("UnitT")
ReportT = TypeVar("ReportT")


@runtime_checkable
class BatchEngine(Protocol):
    """Calls a task for each unit, somewhere.

    An entry point of the group `parity.batch_engines` is a callable that takes the `--engine-option`
    settings, a mapping of texts, and returns one; it raises ConfigError for a setting that it does not know.

    Attributes:
        name: the entry point's name, for messages.
    """

    name: str

    def run(
        self,
        units: Sequence[UnitT],
        task: Callable[[UnitT], ReportT],
        *,
        workers: int | None,
        device: str,
    ) -> Iterator[ReportT]:
        """The task's report for each unit, as units finish, in any order.

        Units and reports are small, can be pickled, and are the batch runner's own business. A task loads the
        handler with its first call in a process and keeps it there for the next ones. It may be called by
        several threads of a process, for several units at once and, after a worker was lost, for a unit
        again: what it writes appears whole or not at all, and is the same each time. It does not raise for
            a unit whose file
        cannot be read: its report says so.

        Closing the iterator ends the job early: no further unit is begun.

        Args:
            units: what is to be done, at least one.
            task: what does it.
            workers: how many units to work on at once; None for what the engine thinks best.
            device: the profile's device, "cpu" or "cuda": where it is not "cpu", a worker needs one of its
                own.

        Raises:
            Exception: what the task raised, which ends the job.
        """
        ...


def batch_engine_names() -> list[str]:
    """The names that `find_batch_engine` knows, `local` included, sorted."""
    points = importlib.metadata.entry_points(group=BATCH_ENGINE_GROUP)
    return sorted({LOCAL, *(point.name for point in points)})


def find_batch_engine(name: str, options: Mapping[str, str]) -> BatchEngine:
    """The installed engine called `name`, which is not `local`.

    Raises:
        ReferenceNotFoundError: there is none; near names are given.
        ConfigError: it cannot be imported (the message names the extra to install), or refuses its options.
    """
    points = importlib.metadata.entry_points(group=BATCH_ENGINE_GROUP, name=name)
    if not points:
        hint = did_you_mean(name, batch_engine_names())
        raise ReferenceNotFoundError(f"no batch engine {name!r} is installed; {hint}")
    point = next(iter(points))
    try:
        engine = point.load()(options)
    except ImportError as exc:
        raise ConfigError(
            f"batch engine {name!r} ({point.value}) cannot be imported: {exc}; "
            f"pip install 'parity[{name}]' brings what it needs"
        ) from exc
    if not isinstance(engine, BatchEngine):
        raise ConfigError(f"entry point {name!r} ({point.value}) gives no batch engine")
    return engine
