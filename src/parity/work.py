"""A batch on its way through the stages: its parts, what became of them, and the result in row order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parity.batch import Batch
from parity.codec.decoded import Decoded
from parity.errors import RowError
from parity.result import Result, StageValues, empty_batch
from parity.schema import Schema
from parity.stages import snapshot

Rows = np.ndarray[Any, np.dtype[np.int64]]


@dataclass
class Part:
    """Rows that go through the stages together; never more than the largest bucket."""

    batch: Batch
    rows: Rows
    shape_rows: int | None
    keep_stages: bool = False
    value: Any = None
    failure: Failure | None = None
    stage_values: dict[str, Any] = field(default_factory=dict[str, Any])

    def keep(self, stage: str) -> None:
        """Keep what the stage returned, when asked for."""
        if self.keep_stages:
            self.stage_values[stage] = snapshot(self.value)


@dataclass(frozen=True)
class Failure:
    """What a stage raised."""

    stage: str
    exc: BaseException


@dataclass
class Work:
    """A batch on its way through the stages; made by `Engine.preprocess`, opaque to everybody else."""

    num_rows: int
    parts: list[Part]
    keep_stages: bool = False
    timings: dict[str, float] = field(default_factory=dict[str, float])


@dataclass
class Answers:
    """Answers and errors of some parts, gathered before they are put into row order."""

    rows: list[Rows] = field(default_factory=list[Rows])
    outputs: list[Batch] = field(default_factory=list[Batch])
    buckets: list[int] = field(default_factory=list[int])
    errors: list[RowError] = field(default_factory=list[RowError])
    stages: list[StageValues] = field(default_factory=list[StageValues])

    def take(self, part: Part, outputs: Batch, handler: str) -> None:
        """Take a part's outputs; rows that the handler rejected get their reasons instead.

        Args:
            part: what went through the stages.
            outputs: a row for each of the part's.
            handler: its name.
        """
        rows, rejections = part.rows, part.batch.rejections
        if rejections:
            for position, reason in rejections.items():
                self.errors.append(rejection(handler, int(rows[position]), reason))
            kept = np.setdiff1d(np.arange(len(rows)), np.fromiter(rejections, np.int64))
            rows, outputs = rows[kept], outputs.take(kept)
        self.rows.append(rows)
        self.outputs.append(outputs)
        self.buckets.append(part.shape_rows or part.batch.num_rows)
        self.stages.append(
            StageValues(part.rows, part.stage_values.get("preprocess"), part.stage_values.get("inference"))
        )

    def result(self, work: Work, schema: Schema) -> Result:
        """All of it in row order, stage values included.

        Args:
            work: what was answered.
            schema: of the outputs.
        """
        if not self.outputs:
            outputs, index, buckets = empty_batch(schema), np.empty(0, np.int64), np.empty(0, np.int32)
        else:
            outputs, index = Batch.concat(self.outputs), np.concatenate(self.rows)
            sizes = [len(rows) for rows in self.rows]
            buckets = np.repeat(np.asarray(self.buckets, np.int32), sizes)
            if len(self.rows) > 1 and np.any(np.diff(index) < 0):
                order = np.argsort(index, kind="stable")
                outputs, index, buckets = outputs.take(order), index[order], buckets[order]
        return Result(
            num_rows=work.num_rows,
            outputs=outputs,
            index=index,
            errors=tuple(sorted(self.errors, key=lambda error: error.row)),
            timings=work.timings,
            buckets=buckets,
            stages=tuple(self.stages),
        )


def rejection(handler: str, row: int, reason: str) -> RowError:
    """The error of a row that the handler rejected."""
    return RowError(row, "rejected", f"handler {handler}: {reason}")


def merge(decoded: Decoded, result: Result) -> Result:
    """A result on the rows of a codec's good rows, put back on the rows of its source."""
    if not decoded.errors and decoded.num_rows == result.num_rows:
        return result
    index = decoded.index
    moved = [error.at(int(index[error.row])) for error in result.errors]
    return Result(
        num_rows=decoded.num_rows,
        outputs=result.outputs,
        index=index[result.index],
        errors=tuple(sorted([*decoded.errors, *moved], key=lambda error: error.row)),
        timings=result.timings,
        buckets=result.buckets,
        stages=tuple(
            StageValues(index[item.rows], item.preprocess, item.inference) for item in result.stages
        ),
    )
