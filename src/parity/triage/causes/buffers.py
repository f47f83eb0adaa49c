"""Buffers that are used again, and stages that pass something on through the handler."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from parity.errors import ParityError
from parity.examples import example_batch
from parity.result import ERROR_COLUMN
from parity.triage.case import Case, Explained, Finding, Refuted, Suspect, Values
from parity.triage.dependence import equal
from parity.triage.memory import Memory
from parity.triage.model import Stage
from parity.triage.trials import Run, Trials, after_loading
from parity.triage.watching import watched

_OVERLAPPED_LAWS: Final = ("concurrency", "batch-size", "runner", "golden")


@dataclass(frozen=True)
class _Later:
    """That rows got other values later: after what, which, and what changed on the handler meanwhile."""

    words: str
    values: list[Values]
    changed: tuple[str, ...]


# Buffers.


def stale_buffer(case: Case) -> Finding:
    """What a stage returns is memory that the handler keeps; or a row's value is one of an earlier batch."""
    trials = case.trials
    if trials is None or not case.pairs:
        return None
    shared = watched(trials, case.divergence.rows).shared
    stage: Stage | None = next(iter(shared), None)
    if stage is not None:
        overlap = _overlapped(case, trials)
        if overlap is not None:
            return Explained(
                f"what {stage} returns shares its memory with self.{shared[stage]}; with the stages of "
                f"several batches overlapped, {overlap[0]}",
                stage=stage,
            )
    earlier = _earlier_value(case, trials)
    if earlier:
        return Explained(earlier)
    if stage is not None:
        return Refuted(
            f"{stage} returns memory of self.{shared[stage]}, but no row gets another batch's value"
        )
    return Refuted("no row gets a value of an earlier batch, and no stage returns memory that is kept")


def _earlier_value(case: Case, trials: Trials) -> str:
    """That after an earlier batch rows get values of that batch or of other rows, out of a kept array."""
    place = case.pairs[0].place
    target = case.divergence.rows if case.dependence is None else case.dependence.mates.rows
    histories: list[pa.Table] = [*case.divergence.history]
    if target.num_rows > 1:
        histories.append(target.slice(0, max(1, target.num_rows // 3)))
    histories.append(target.take(pa.array(list(range(target.num_rows)) * 2)))
    memories: list[Memory] = []
    cls = after_loading(trials.loaded.cls, lambda handler: memories.append(Memory(handler)))
    for history in histories:
        try:
            with trials.fresh(cls) as engine:
                first = trials.run(target, engine)
            with trials.fresh(cls) as engine:
                before = trials.run(history, engine)
                again = trials.run(target, engine)
        except ParityError:
            return ""
        if first is None or before is None or again is None:
            continue
        arrays = memories[-1].changed_arrays()
        bad, stale = _stale_rows(case, place, first, before, again)
        if arrays and bad and stale == bad:
            return (
                f"after a batch of {history.num_rows} rows, {len(bad)} of {target.num_rows} rows get a value "
                f"that belongs to another row or an earlier batch; {arrays[0]} is used again"
            )
    return ""


def _stale_rows(case: Case, place: str, first: Run, before: Run, again: Run) -> tuple[list[int], list[int]]:
    right, wrong = first.at(case.stage, place), again.at(case.stage, place)
    earlier = [*before.at(case.stage, place), *right]
    bad = [row for row, value in enumerate(wrong) if not equal(value, right[row])]
    return bad, [row for row in bad if any(equal(wrong[row], value) for value in earlier)]


# Stages that overlap.


def _overlapped(case: Case, trials: Trials) -> tuple[str, Stage] | None:
    """What rows get while other batches are under way, where that differs; and the stage where it does."""
    pool = case.divergence.rows if case.dependence is None else case.dependence.mates.rows
    strangers = example_batch(trials.loaded.inputs, 3, seed=5).to_table().cast(pool.schema)
    pool = pa.concat_tables([pool.slice(0, 5), strangers])
    pieces = [pool.slice(row, 1) for row in range(pool.num_rows)]
    runs = _one_by_one(trials, pieces)
    again = _one_by_one(trials, pieces)
    together = trials.overlapped(pieces)
    if runs is None or again is None or together is None:
        return None
    alone, answers = [_answer(run.answers) for run in runs], [_answer(run.answers) for run in together]
    if alone != [_answer(run.answers) for run in again]:
        return None
    wrong = [row for row in range(len(pieces)) if answers[row] != alone[row]]
    if not wrong:
        return None
    others = sum(answers[row] in [answer for at, answer in enumerate(alone) if at != row] for row in wrong)
    whose = f", {others} of them another row's" if others else ""
    stages: tuple[Stage, ...] = ("preprocess", "inference")
    parted: list[Stage] = [stage for stage in stages if _parts(runs[wrong[0]], together[wrong[0]], stage)]
    return f"{len(wrong)} of {len(pieces)} rows get other answers{whose}", parted[
        0
    ] if parted else "postprocess"


def _parts(one: Run, other: Run, stage: Stage) -> bool:
    """Whether the values of a stage differ between two runs of one row."""
    ours, theirs = one.traces.stage(stage), other.traces.stage(stage)
    return not all(
        place in theirs and equal(values[0], theirs[place][0]) for place, values in ours.items() if values
    )


def _one_by_one(trials: Trials, pieces: Sequence[pa.Table]) -> list[Run] | None:
    runs = [trials.run(piece) for piece in pieces]
    found = [run for run in runs if run is not None]
    return found if len(found) == len(pieces) else None


def _answer(answers: pa.Table) -> str:
    table = answers.drop_columns([ERROR_COLUMN]) if ERROR_COLUMN in answers.column_names else answers
    return repr(table.to_pylist())


def shared_state(case: Case) -> Finding:
    """Stages of several batches overlapped give other answers than one batch after the other."""
    trials = case.trials
    if trials is None or case.law not in _OVERLAPPED_LAWS:
        return None
    found = _overlapped(case, trials)
    if found is None:
        return Refuted("with the stages of several batches overlapped the answers stay the same")
    memories: list[Memory] = []
    cls = after_loading(trials.loaded.cls, lambda handler: memories.append(Memory(handler)))
    changed: list[str] = []
    with contextlib.suppress(ParityError), trials.fresh(cls) as engine:
        trials.run(case.divergence.rows, engine)
        changed = [name for name in memories[-1].changed() if name.startswith("self.")]
    names = f"; a batch changes {', '.join(changed[:3])}" if changed else ""
    words, stage = found
    return Explained(
        f"with the stages of several batches overlapped, {words}{names}",
        stage=stage if case.stage is None else None,
    )


def _suspects() -> Iterator[Suspect]:
    yield Suspect(
        "stale-buffer",
        "a buffer is used again: what is left of an earlier batch is answered",
        "stages that return memory which the handler keeps; a batch after smaller and larger ones, whose "
        "values are looked for among the earlier ones",
        "return a copy, and size buffers by the batch: np.empty(len(batch))",
        stale_buffer,
        ("company", "path"),
    )
    yield Suspect(
        "shared-state",
        "stages pass something on through self, and another batch comes in between",
        "the stages of several batches overlapped, against the same batches one after the other; what a "
        "batch changes on the handler",
        "pass it on in what preprocess and inference return; keep nothing about a batch on self",
        shared_state,
        ("company", "path"),
    )


SUSPECTS: Final = tuple(_suspects())
