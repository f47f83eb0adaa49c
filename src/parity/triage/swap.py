"""Blame confirmed by a swap: one side's values of a stage given to the other side's next stage.

Where the answers follow the swapped values, the stage that made them is to blame, and the later ones are not.
So a difference as small as float noise is found out when a later stage makes it large, at a threshold say.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from parity.batch import Batch
from parity.errors import ParityError
from parity.handler import Handler
from parity.padding import is_tensor
from parity.stages import Leaves, Value
from parity.triage.case import Case
from parity.triage.checks import ORDER, Comparisons, StageFinding
from parity.triage.model import Stage

_NOTE = "given the other side's values of this stage, this handler goes on to the other side's answers"


class _UnswappableError(ValueError):
    """The stage's value cannot be put together from the traces."""


def confirmed(case: Case) -> Comparisons:
    """The stages compared, with what swaps say of them: an early stage within noise may turn out to blame."""
    compared = case.compared
    first = compared.first
    if first is None or case.group == "company" or case.trials is None:
        return compared
    stage = first.check.stage
    try:
        for early in ORDER[1 : ORDER.index(stage)]:
            if compared.stages[early].check.verdict == "within" and follows(case, early):
                return _blamed(compared, early, set(first.check.rows))
        if stage in ("preprocess", "inference") and follows(case, stage):
            return _noted(compared, first)
    except (ParityError, _UnswappableError):
        pass
    return compared


def follows(case: Case, stage: Stage) -> bool:
    """Whether, given the other side's values of a stage, the engine goes on to the other side's answers."""
    mine, trials = case.side_of_engine, case.trials
    traces = case.traces[1 if mine == "expected" else 0]
    if mine is None or trials is None or traces is None or stage not in ("preprocess", "inference"):
        return False
    most = trials.engine.profile.max_rows
    if most is not None and traces.num_rows > most:
        return False
    given = traces.stage(stage)
    with trials.fresh(_swapping(trials.loaded.cls, stage, given)) as engine:
        run = trials.run(case.divergence.rows, engine)
    if run is None or any(error is not None for error in run.errors):
        return False
    return case.side_like(run, range(run.num_rows), answers=True) not in (None, mine)


def _swapping(base: type[Handler], stage: Stage, given: Leaves) -> type[Handler]:
    if stage == "preprocess":

        class Preprocessed(base):
            def preprocess(self, batch: Batch) -> Any:
                return put(super().preprocess(batch), given)

        return Preprocessed

    class Inferred(base):
        def inference(self, inputs: Any) -> Any:
            return put(super().inference(inputs), given)

    return Inferred


def put(value: Any, given: Leaves, path: str = "value") -> Any:
    """A stage's value with its leaves replaced by those of traces.

    Raises:
        ValueError: a leaf is not in the traces, or a row has none.
    """
    if isinstance(value, Mapping):
        mapping = cast("Mapping[Any, Any]", value)
        return {key: put(item, given, f"{path}[{key!r}]") for key, item in mapping.items()}
    if isinstance(value, tuple):
        items = [
            put(item, given, f"{path}[{place}]") for place, item in enumerate(cast("tuple[Any, ...]", value))
        ]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changed = {
            option.name: put(getattr(value, option.name), given, f"{path}.{option.name}")
            for option in dataclasses.fields(value)
        }
        return replace(cast("Any", value), **changed)
    if value is None:
        return None
    return _leaf(value, given.get(path))


def _leaf(value: Any, rows: Sequence[Value | None] | None) -> Any:
    if rows is None or any(row is None for row in rows):
        raise _UnswappableError("a row has no value")
    kept = [row for row in rows if row is not None]
    if isinstance(value, list):
        if any(row.dtype.kind == "U" and row.ndim == 0 and str(row)[:1] in "[{" for row in kept):
            raise _UnswappableError("a row's value is known by its text only")
        return [row[()] if row.dtype.kind != "U" or row.ndim else str(row) for row in kept]
    if not is_tensor(value) and not isinstance(value, np.ndarray):
        return value
    if value.ndim == 0 or len(value) != len(kept):
        return value
    stacked = np.stack(kept)
    if is_tensor(value):
        import torch

        tensor = torch.from_numpy(stacked)
        half = value.dtype in (torch.bfloat16, torch.float16)
        return tensor.to(device=value.device, dtype=value.dtype if half else tensor.dtype)
    return stacked


def _blamed(compared: Comparisons, stage: Stage, rows: set[int]) -> Comparisons:
    """The stage made the first that diverges, on the rows that a later stage diverges on."""
    finding = compared.stages[stage]
    pairs = tuple(
        replace(item, failing=tuple(row for row in item.differing if row in rows))
        for item in finding.pairs
        if rows.intersection(item.differing)
    )
    detail = f"{finding.check.detail}; small, and what comes after makes it large: {_NOTE}"
    check = replace(
        finding.check,
        verdict="divergent",
        rows=tuple(sorted({row for item in pairs for row in item.failing})),
        detail=detail,
    )
    return replace(compared, stages={**compared.stages, stage: StageFinding(check, pairs)})


def _noted(compared: Comparisons, first: StageFinding) -> Comparisons:
    stage = first.check.stage
    check = replace(first.check, detail=f"{first.check.detail}; {_NOTE}")
    return replace(compared, stages={**compared.stages, stage: replace(first, check=check)})
