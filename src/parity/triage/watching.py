"""A handler watched while a batch goes through it: what its stages return, and whose memory that is."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pyarrow as pa

from parity.batch import Batch
from parity.errors import ParityError
from parity.handler import Handler
from parity.padding import is_tensor
from parity.stages import Value, leaves
from parity.triage.model import Stage
from parity.triage.trials import Trials


@dataclass
class Watch:
    """What was seen.

    Attributes:
        shared: the attribute of the handler that shares its memory with what a stage returns, by stage.
        counts: for each stage that gave another number of values than rows, both numbers, the first time.
        rejecting: the stages in which rows were rejected.
    """

    shared: dict[Stage, str] = field(default_factory=dict["Stage", str])
    counts: dict[Stage, tuple[int, int]] = field(default_factory=dict["Stage", tuple[int, int]])
    rejecting: list[Stage] = field(default_factory=list["Stage"])

    def note(self, stage: Stage, handler: Handler, given: Any, rows: int) -> None:
        """Look at what a stage returned for so many rows."""
        holder = _holder(handler, given)
        if holder:
            self.shared.setdefault(stage, holder)
        for _, leaf in leaves(given):
            count = _length(leaf)
            if count is not None and count != rows:
                self.counts.setdefault(stage, (count, rows))


def watched(trials: Trials, rows: pa.Table) -> Watch:
    """Watch a freshly loaded handler answer a batch."""
    found = Watch()
    base = trials.loaded.cls

    class Watched(base):
        _rows_at_once = 0

        def preprocess(self, batch: Batch) -> Any:
            before = len(batch.rejections)
            given = super().preprocess(batch)
            found.note("preprocess", self, given, len(batch))
            if len(batch.rejections) > before:
                found.rejecting.append("preprocess")
            return given

        def inference(self, inputs: Any) -> Any:
            rows = next((count for _, leaf in leaves(inputs) if (count := _length(leaf)) is not None), None)
            given = super().inference(inputs)
            if rows is not None:
                found.note("inference", self, given, rows)
            return given

        def postprocess(self, outputs: Any, batch: Batch) -> Any:
            before = len(batch.rejections)
            given = super().postprocess(outputs, batch)
            found.note("postprocess", self, given, len(batch))
            if len(batch.rejections) > before:
                found.rejecting.append("postprocess")
            return given

    with contextlib.suppress(ParityError), trials.fresh(Watched) as engine:
        trials.run(rows, engine)
    return found


def short_stage(trials: Trials, rows: pa.Table) -> tuple[Stage, str] | None:
    """The first stage that gives another number of values than it gets rows, and both numbers in words."""
    counts = watched(trials, rows).counts
    stages: tuple[Stage, ...] = ("preprocess", "inference", "postprocess")
    for stage in stages:
        if stage in counts:
            values, count = counts[stage]
            return stage, f"{stage} gives {values} values for {count} rows"
    return None


def _length(leaf: Any) -> int | None:
    if isinstance(leaf, list):
        return len(cast("list[Any]", leaf))
    if is_tensor(leaf) or isinstance(leaf, np.ndarray):
        return int(leaf.shape[0]) if leaf.ndim else None
    return None


def _holder(handler: Handler, given: Any) -> str:
    arrays = [array for _, leaf in leaves(given) if (array := _as_array(leaf)) is not None]
    held: Mapping[str, Any] = vars(handler)
    for name, kept in held.items():
        array = _as_array(kept)
        if array is not None and any(np.may_share_memory(array, other) for other in arrays):
            return name
    return ""


def _as_array(value: Any) -> Value | None:
    if isinstance(value, np.ndarray):
        return cast("Value", value)
    if is_tensor(value) and str(value.device) == "cpu":
        with contextlib.suppress(TypeError, RuntimeError):
            return value.detach().numpy()
    return None
