"""What runs in a Spark Python worker: a handler that is loaded once and kept, and a partition's rows scored.

Spark uses a worker for many tasks (`spark.python.worker.reuse`), and calls the function once a partition; so
the handler is kept in this module, not in the function.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from parity import numerics
from parity.codec.rebatch import rebatch
from parity.codec.sparkable import spark_table
from parity.distributed import Placement, TableScorer
from parity.errors import ConfigError

KEPT = 2
"""Handlers that a worker keeps at most: models are large, and a job has one."""


@dataclass(frozen=True)
class Work:
    """What a partition's rows need; Spark sends it along with the function.

    Attributes:
        placement: the handler and its profile.
        columns: the columns to pass through.
        batch_rows: rows scored at once.
        schema: the Arrow schema of scored rows, in Spark's types.
        gpu: whether the task's GPU is used.
        tap: a folder that the engine writes its stages to, or None.
    """

    placement: Placement
    columns: tuple[str, ...]
    batch_rows: int
    schema: pa.Schema
    gpu: bool
    tap: str | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """A partition's rows, scored, in their order."""
        scorer = kept_scorer(self, _device() if self.gpu else None)
        for rows in rebatch(batches, self.batch_rows):
            scored = scorer.score(pa.Table.from_batches([rows]))
            yield from spark_table(scored, self.schema).combine_chunks().to_batches()


_kept: dict[tuple[Any, ...], TableScorer] = {}
_last: list[tuple[Any, ...]] = []


def kept_scorer(work: Work, device: str | None) -> TableScorer:
    """The scorer for some work, loaded by the first task of this process that needs it.

    Precision and determinism are the process's: they are set as its profile says, after another one's.
    """
    key = (work.placement, work.columns, work.batch_rows, device, work.tap)
    if key not in _kept:
        while len(_kept) >= KEPT:
            del _kept[next(iter(_kept))]
        _kept[key] = TableScorer(
            work.placement, columns=work.columns, batch_rows=work.batch_rows, device=device, tap=work.tap
        )
    elif _last != [key]:
        numerics.apply(_kept[key].engine.profile)
    _last[:] = [key]
    return _kept[key]


def _device() -> str:
    """The GPU that Spark assigned to the task that this process runs."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return device_of({} if context is None else context.resources())


def device_of(resources: Mapping[str, Any]) -> str:
    """The device for a task's resources.

    Raises:
        ConfigError: the task has no GPU.
    """
    addresses = list(resources["gpu"].addresses) if "gpu" in resources else []
    if not addresses:
        raise ConfigError(
            "the profile asks for a GPU and Spark gave this task none: set spark.task.resource.gpu.amount "
            "and spark.executor.resource.gpu.amount, or give score() a ResourceProfile as resources="
        )
    return f"cuda:{addresses[0]}"
