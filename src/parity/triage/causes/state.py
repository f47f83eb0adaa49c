"""What a handler keeps from one batch to the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from parity.batch import Batch
from parity.engine import Engine
from parity.errors import ParityError
from parity.handler import Handler
from parity.triage.case import Case, Explained, Finding, Refuted, Suspect, Values
from parity.triage.causes.failures import error_texts
from parity.triage.dependence import equal, shows
from parity.triage.memory import Memory, emptied_containers, forgetful_dicts
from parity.triage.trials import Trials, after_loading

_OVERLAPPED_LAWS: Final = ("concurrency", "batch-size", "runner", "golden")


@dataclass(frozen=True)
class _Later:
    """That rows got other values later: after what, which, and what changed on the handler meanwhile."""

    words: str
    values: list[Values]
    changed: tuple[str, ...]


# State.


def state_kept(case: Case) -> Finding:
    """A freshly loaded handler, asked for the rows after other batches, gives other values than at first."""
    trials = case.trials
    if trials is None or not case.pairs:
        return None
    later = _later(case, trials)
    if later is None:
        return None
    if later:
        again = _later(case, trials)
        if again is None or not _same_course(later, again):
            return Refuted("freshly loaded handlers do not go the same way: chance is at work too")
        first = later[0]
        names = f"; {', '.join(first.changed[:4])} changed" if first.changed else ""
        gone = "; put back before each batch, the difference is gone" if _restored(case, trials) else ""
        return Explained(
            f"a freshly loaded handler gives the row another value {first.words} than at first, each time "
            f"the same{names}{gone}"
        )
    return (
        _kept_within_a_batch(case)
        or _kept_beyond_loading(case, trials)
        or Refuted("a freshly loaded handler gives the same values again, also after other batches")
    )


def _same_course(one: Sequence[_Later], other: Sequence[_Later]) -> bool:
    return len(one) == len(other) and all(
        ours.words == theirs.words and _all_equal(ours.values, theirs.values)
        for ours, theirs in zip(one, other, strict=True)
    )


def _histories(case: Case) -> Iterator[tuple[str, list[pa.Table]]]:
    """What to ask before the rows, with words for it."""
    yield "the second time", [case.divergence.rows]
    if case.divergence.history:
        yield "after the batches before it", list(case.divergence.history)
    mates = None if case.dependence is None else case.dependence.mates
    if mates is not None and mates.others:
        yield "after its neighbours were asked", [mates.rows.take(pa.array(mates.others))]
        yield "after its whole batch was asked", [mates.rows]


def _later(case: Case, trials: Trials) -> list[_Later] | None:
    """The histories after which the rows get other values than at first, on freshly loaded handlers."""
    memories: list[Memory] = []
    cls = after_loading(trials.loaded.cls, lambda handler: memories.append(Memory(handler)))
    rows = case.divergence.rows
    found: list[_Later] = []
    try:
        with trials.fresh(cls) as engine:
            memories[-1].restore()  # which empties what functions cache
            first = _values(case, trials, rows, engine)
        memories[-1].restore()
        for words, history in _histories(case):
            with trials.fresh(cls) as engine:
                for batch in history:
                    trials.run(batch, engine)
                again = _values(case, trials, rows, engine)
            if first is None or again is None:
                return None
            if not _all_equal(first, again):
                found.append(_Later(words, again, tuple(memories[-1].changed())))
            memories[-1].restore()
    except ParityError:
        return None
    return found


def _values(case: Case, trials: Trials, rows: pa.Table, engine: Engine) -> list[Values] | None:
    run = trials.run(rows, engine)
    if run is None:
        return None
    found: list[Values] = [run.at(case.stage, item.place) for item in case.pairs[:4]]
    kinds: Values = [None if error is None else np.asarray(str(error["kind"])) for error in run.errors]
    return [*found, kinds]


def _all_equal(one: Sequence[Values], other: Sequence[Values]) -> bool:
    return all(
        equal(first, second)
        for ours, theirs in zip(one, other, strict=True)
        for first, second in zip(ours, theirs, strict=True)
    )


def _restored(case: Case, trials: Trials) -> bool:
    """Whether a handler whose memory is put back before each batch gives the same after every history."""
    rows = case.divergence.rows
    try:
        with trials.fresh(_forgetful(trials.loaded.cls)) as engine:
            first = _values(case, trials, rows, engine)
            for _, history in _histories(case):
                for batch in history:
                    trials.run(batch, engine)
                again = _values(case, trials, rows, engine)
                if first is None or again is None or not _all_equal(first, again):
                    return False
    except ParityError:
        return False
    return True


def _forgetful(base: type[Handler]) -> type[Handler]:
    memories: list[Memory] = []
    remembering = after_loading(base, lambda handler: memories.append(Memory(handler)))

    class Forgetful(remembering):
        def preprocess(self, batch: Batch) -> Any:
            if memories:
                memories[-1].restore()
            return super().preprocess(batch)

    return Forgetful


def _kept_within_a_batch(case: Case) -> Explained | None:
    """A cache whose first entry serves other rows of the same batch; with caches that forget, it does not."""
    company, trials = case.company, case.trials
    if company is None or trials is None:
        return None
    caches: list[str] = []
    cls = after_loading(trials.loaded.cls, lambda handler: caches.extend(forgetful_dicts(handler)))
    with trials.fresh(cls) as engine:
        if not caches or shows(company, engine):
            return None
    return Explained(
        f"with {' and '.join(caches[:3])} forgetting at once what is put in, the row gets the value that it "
        "gets alone",
        "a cache answers for rows that share its key: who comes first decides",
    )


def _kept_beyond_loading(case: Case, trials: Trials) -> Explained | None:
    """A freshly loaded handler gives the later value too, until what outlives it is emptied."""
    rows = case.divergence.rows
    with trials.fresh() as engine:
        now = trials.run(rows, engine)
    if now is None or case.side_like(now, range(rows.num_rows)) != "obtained":
        return None
    for name, emptied in emptied_containers(trials.loaded.cls):
        try:
            with emptied, trials.fresh() as engine:
                run = trials.run(rows, engine)
        except ParityError:
            continue
        if run is not None and case.side_like(run, range(rows.num_rows)) == "expected":
            return Explained(
                f"a freshly loaded handler gives the later value too; with {name} emptied it gives the first "
                "one"
            )
    return None


# Generators.


def generator_consumed(case: Case) -> Finding:
    """The handler holds a generator, and the first batch uses it up."""
    for side in case.sides:
        for text in error_texts(side):
            if "of type generator" in text:
                return Explained(f"a stage gives a generator as an answer, {side.name}: {text}")
    trials = case.trials
    if trials is None:
        return None
    held: list[str] = []

    def look(handler: Handler) -> None:
        held.extend(f"self.{name}" for name, value in vars(handler).items() if isinstance(value, Iterator))

    try:
        with trials.fresh(after_loading(trials.loaded.cls, look)):
            pass
    except ParityError:
        return None
    if not held:
        return None
    later = _later(case, trials)
    if not later:
        return Refuted(f"{held[0]} can be read only once, but a freshly loaded handler gives the same again")
    return Explained(
        f"the handler keeps {held[0]}, which can be read only once; a freshly loaded one gives the row "
        f"another value {later[0].words} than at first"
    )


def _suspects() -> Iterator[Suspect]:
    yield Suspect(
        "generator-consumed",
        "a generator or iterator is read once, and is empty afterwards",
        "iterators that the handler keeps; whether a freshly loaded one gives other values the second time",
        "keep a list, or make the generator anew in each batch",
        generator_consumed,
        ("company", "path", "process"),
    )
    yield Suspect(
        "state-kept",
        "the handler remembers something of earlier batches: a counter, a cache, a running mean",
        "freshly loaded handlers asked at once, twice, and after other batches; what changed on them "
        "meanwhile; whether putting it back, emptying it, or forgetting at once helps",
        "set everything in initialize, change nothing in a stage; key caches by all that decides the answer",
        state_kept,
        ("company", "path", "process"),
    )


SUSPECTS: Final = tuple(_suspects())
