"""What a handler keeps from one batch to the next, or from one stage to the next."""

from __future__ import annotations

import contextlib
import copy
import inspect
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa

from parity.batch import Batch
from parity.engine import Engine
from parity.errors import ParityError
from parity.handler import Handler
from parity.result import ERROR_COLUMN
from parity.stages import Value
from parity.triage.case import Case, Explained, Finding, Refuted, Suspect, Values
from parity.triage.causes.order import row_count
from parity.triage.causes.randomness import modules_of
from parity.triage.dependence import equal
from parity.triage.trials import Trials, after_loading

_PLAIN: Final = (
    int,
    float,
    complex,
    str,
    bytes,
    bool,
    type(None),
    list,
    dict,
    set,
    tuple,
    np.ndarray,
    np.generic,
)


class Memory:
    """What a handler could remember: its attributes, its class's, its module's, defaults, caches, weights.

    Args:
        handler: a handler that was just initialized.
    """

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._owners: dict[str, Mapping[str, Any]] = {"self": vars(handler)}
        for cls in type(handler).__mro__:
            if cls.__module__.partition(".")[0] in ("parity", "builtins") or issubclass(Handler, cls):
                continue
            self._owners[cls.__name__] = vars(cls)
            module = sys.modules.get(cls.__module__)
            if module is not None:
                self._owners[cls.__module__] = vars(module)
        self._before = {
            (owner, name): kept
            for owner, names in self._owners.items()
            for name, value in list(names.items())
            if not name.startswith("__") and (kept := _copied(value)) is not _UNKNOWN
        }
        self._defaults = [
            (function, copy.deepcopy(function.__defaults__))
            for function in self._functions()
            if function.__defaults__
            and any(isinstance(item, list | dict | set) for item in function.__defaults__)
        ]
        torch = cast("Any", sys.modules.get("torch"))
        self._modules = [] if torch is None else modules_of(handler, torch)
        self._buffers = [
            {name: value.detach().clone() for name, value in module.state_dict().items()}
            for module in self._modules
        ]

    def changed(self) -> list[str]:
        """What is not as it was, by name, such as "self.seen"."""
        found: list[str] = []
        for (owner, name), value in self._before.items():
            now = self._owners[owner].get(name, _UNKNOWN)
            if now is _UNKNOWN or not _same(now, value):
                found.append(f"{owner}.{name}")
        own = vars(self._handler)
        found += [
            f"self.{name}" for name in own if ("self", name) not in self._before and _is_plain(own[name])
        ]
        found += [
            f"a default argument of {function.__qualname__}"
            for function, defaults in self._defaults
            if not _same(function.__defaults__, defaults)
        ]
        for module, buffers in zip(self._modules, self._buffers, strict=True):
            now = module.state_dict()
            found += [
                f"{name} of the model"
                for name, value in buffers.items()
                if not bool((now[name] == value).all())
            ]
        return found

    def restore(self) -> None:
        """Bring back what was remembered at the beginning."""
        for (owner, name), value in self._before.items():
            if owner == "self":
                vars(self._handler)[name] = _copied(value)
            else:
                self._put(owner, name, value)
        for name in [name for name in vars(self._handler) if ("self", name) not in self._before]:
            if _is_plain(vars(self._handler)[name]):
                del vars(self._handler)[name]
        for function, defaults in self._defaults:
            function.__defaults__ = copy.deepcopy(defaults)
        for function in self._functions(cached=True):
            function.cache_clear()
        for module, buffers in zip(self._modules, self._buffers, strict=True):
            module.load_state_dict(buffers)

    def _put(self, owner: str, name: str, value: Any) -> None:
        """Containers are filled again in place, since others may hold them; other values are set anew."""
        names = self._owners[owner]
        now = names.get(name)
        fresh = _copied(value)
        if _same(now, value):
            return
        if isinstance(now, dict) and isinstance(fresh, dict):
            now.clear()
            cast("dict[Any, Any]", now).update(cast("dict[Any, Any]", fresh))
        elif isinstance(now, list) and isinstance(fresh, list):
            now[:] = fresh
        elif isinstance(now, set) and isinstance(fresh, set):
            now.clear()
            cast("set[Any]", now).update(cast("set[Any]", fresh))
        elif isinstance(names, dict):
            names[name] = fresh
        else:
            owned = next((cls for cls in type(self._handler).__mro__ if cls.__name__ == owner), None)
            if owned is not None:
                setattr(owned, name, fresh)

    def _functions(self, *, cached: bool = False) -> list[Any]:
        found: list[Any] = []
        for owner, names in self._owners.items():
            for value in list(names.values()):
                function = inspect.unwrap(value) if callable(value) and not isinstance(value, type) else value
                if cached and hasattr(value, "cache_clear"):
                    found.append(value)
                elif not cached and isinstance(function, types.FunctionType) and owner != "self":
                    found.append(function)
        return found


class _Unknown:
    """Stands for a value that cannot be remembered."""


_UNKNOWN: Final = _Unknown()


def _is_plain(value: object) -> bool:
    return isinstance(value, _PLAIN) or type(value).__module__ == "collections"


def _copied(value: Any) -> Any:
    if not _is_plain(value):
        return _UNKNOWN
    try:
        return copy.deepcopy(value)
    except Exception:  # noqa: BLE001 - a value that refuses to be copied is not remembered
        return _UNKNOWN


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return (
            isinstance(one, np.ndarray)
            and isinstance(other, np.ndarray)
            and one.dtype == other.dtype
            and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
        )
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(_same(a, b) for a, b in zip(one, other, strict=True))
    try:
        return bool(one == other)
    except Exception:  # noqa: BLE001 - what cannot be compared is taken to have changed
        return False


# State.


def state_kept(case: Case) -> Finding:
    """A freshly loaded handler, asked for the rows after other batches, gives other values than at first."""
    trials = case.trials
    if trials is None or not case.pairs:
        return None
    rows = case.divergence.rows
    runs = _before_and_after(case, trials)
    if runs is None:
        return None
    after, changed = runs
    if not after:
        return Refuted("a freshly loaded handler gives the same values again, also after other batches")
    again = _before_and_after(case, trials)
    if again is None or [item.words for item in again[0]] != [item.words for item in after]:
        return Refuted("freshly loaded handlers do not go the same way, so that chance is at work too")
    kept = [name for name in changed if not name.startswith("__")][:4]
    names = f"; {', '.join(kept)} changed" if kept else ""
    restored = _restored(case, trials)
    gone = "; put back before each batch, the difference is gone" if restored and kept else ""
    del rows
    return Explained(
        f"a freshly loaded handler gives the row another value {after[0].words} than at first, the same "
        "way each "
        f"time{names}{gone}"
    )


class _Later:
    """That a row got another value later, and after what."""

    def __init__(self, words: str) -> None:
        self.words = words


def _histories(case: Case) -> list[tuple[str, list[pa.Table]]]:
    rows = case.divergence.rows
    histories: list[tuple[str, list[pa.Table]]] = [("the second time", [rows])]
    if case.divergence.history:
        histories.append(("after the batches before it", list(case.divergence.history)))
    mates = None if case.dependence is None else case.dependence.mates
    if mates is not None and mates.others:
        others = mates.rows.take(pa.array(mates.others))
        histories.append(("after its neighbours were asked", [others]))
        histories.append(("after its whole batch was asked", [mates.rows]))
    return histories


def _before_and_after(case: Case, trials: Trials) -> tuple[list[_Later], list[str]] | None:
    """How the rows' values change after each history, on fresh handlers; and what those remembered."""
    memories: list[Memory] = []
    cls = after_loading(trials.loaded.cls, lambda handler: memories.append(Memory(handler)))
    rows = case.divergence.rows
    later: list[_Later] = []
    changed: list[str] = []
    try:
        with trials.fresh(cls) as engine:
            first = _values(case, trials, rows, engine)
        for words, history in _histories(case):
            with trials.fresh(cls) as engine:
                for batch in history:
                    trials.run(batch, engine)
                again = _values(case, trials, rows, engine)
                if first is None or again is None:
                    return None
                if not _all_equal(first, again):
                    later.append(_Later(words))
                    changed = changed or memories[-1].changed()
            memories[-1].restore()
    except ParityError:
        return None
    return later, changed


def _values(case: Case, trials: Trials, rows: pa.Table, engine: Engine) -> list[Values] | None:
    run = trials.run(rows, engine)
    if run is None:
        return None
    places = [item.place for item in case.pairs[:4]]
    found: list[Values] = [run.at(case.stage, place) for place in places]
    kinds: Values = [None if error is None else np.asarray(str(error["kind"])) for error in run.errors]
    return [*found, kinds]


def _all_equal(one: list[Values], other: list[Values]) -> bool:
    return all(
        equal(first, second)
        for ours, theirs in zip(one, other, strict=True)
        for first, second in zip(ours, theirs, strict=True)
    )


def _restored(case: Case, trials: Trials) -> bool:
    """Whether a handler whose memory is put back before each batch gives the same after every history."""
    memories: list[Memory] = []
    cls = _forgetful(trials.loaded.cls, memories)
    rows = case.divergence.rows
    try:
        with trials.fresh(cls) as engine:
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


def _forgetful(base: type[Handler], memories: list[Memory]) -> type[Handler]:
    remembering = after_loading(base, lambda handler: memories.append(Memory(handler)))

    class Forgetful(remembering):
        def preprocess(self, batch: Batch) -> Any:
            if memories:
                memories[-1].restore()
            return super().preprocess(batch)

    return Forgetful


# Buffers.


def stale_buffer(case: Case) -> Finding:
    """What a stage returns is memory that the handler keeps; or a row's value is one of an earlier batch."""
    trials = case.trials
    if trials is None or not case.pairs:
        return None
    shared = _shared_memory(case, trials)
    earlier = _earlier_value(case, trials)
    overlapped = _overlapped_value(case, trials) if shared else ""
    if shared and (earlier or overlapped):
        return Explained(f"what {shared}; {earlier or overlapped}")
    if earlier:
        return Explained(earlier)
    if shared:
        return Refuted(f"what {shared}, but no row gets an earlier batch's value")
    return Refuted(
        "no row gets a value of an earlier batch, and no stage returns memory that the handler keeps"
    )


def _shared_memory(case: Case, trials: Trials) -> str:
    """The stage that returns an array which an attribute of the handler holds too; empty for none."""
    found: list[str] = []
    base = trials.loaded.cls

    class Watched(base):
        def inference(self, inputs: Any) -> Any:
            given = super().inference(inputs)
            name = _holder(self, given)
            if name:
                found.append(f"inference returns shares its memory with self.{name}")
            return given

        def preprocess(self, batch: Batch) -> Any:
            given = super().preprocess(batch)
            name = _holder(self, given)
            if name:
                found.append(f"preprocess returns shares its memory with self.{name}")
            return given

    try:
        with trials.fresh(Watched) as engine:
            trials.run(case.divergence.rows, engine)
    except ParityError:
        return ""
    return found[0] if found else ""


def _holder(handler: Handler, value: Any) -> str:
    from parity.stages import leaves

    arrays = [_as_array(leaf) for _, leaf in leaves(value)]
    for name, kept in vars(handler).items():
        held = _as_array(kept)
        if held is None:
            continue
        if any(array is not None and np.may_share_memory(array, held) for array in arrays):
            return name
    return ""


def _as_array(value: Any) -> Value | None:
    if isinstance(value, np.ndarray):
        return cast("Value", value)
    if type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "data_ptr"):
        with contextlib.suppress(Exception):
            return value.detach().numpy()
    return None


def _earlier_value(case: Case, trials: Trials) -> str:
    """Whether after an earlier batch the row's value is one of that batch's, or nothing is written for it."""
    rows = case.divergence.rows
    place = case.pairs[0].place
    mates = None if case.dependence is None else case.dependence.mates.rows
    target = rows if mates is None else mates
    histories: list[pa.Table] = [*case.divergence.history]
    if target.num_rows > 1:
        histories.append(target.slice(0, max(1, target.num_rows // 3)))
    histories.append(target.take(pa.array(list(range(target.num_rows)) * 2)))
    for history in histories:
        try:
            with trials.fresh() as engine:
                first = trials.run(target, engine)
            with trials.fresh() as engine:
                before = trials.run(history, engine)
                again = trials.run(target, engine)
        except ParityError:
            return ""
        if first is None or before is None or again is None:
            continue
        right, wrong = first.at(case.stage, place), again.at(case.stage, place)
        earlier = [*before.at(case.stage, place), *right]
        bad = [row for row, value in enumerate(wrong) if not equal(value, right[row])]
        if not bad:
            continue
        stale = [row for row in bad if any(equal(wrong[row], value) for value in earlier)]
        if len(stale) == len(bad):
            return (
                f"after a batch of {history.num_rows} rows, {len(bad)} of {target.num_rows} rows get a "
                "value that "
                "belongs to another row or an earlier batch"
            )
    return ""


def _overlapped_value(case: Case, trials: Trials) -> str:
    found = _overlap(case, trials)
    return "" if found is None else f"with the stages of two batches overlapped, {found}"


def _overlap(case: Case, trials: Trials) -> str | None:
    """What a row gets while other batches are under way, where that is not what it gets otherwise."""
    rows = case.divergence.rows
    pool = rows if case.dependence is None else case.dependence.mates.rows
    if pool.num_rows < 2:
        from parity.examples import example_batch

        strangers = example_batch(trials.loaded.inputs, 3, seed=5).to_table().cast(pool.schema)
        pool = pa.concat_tables([pool, strangers])
    pieces = [pool.slice(row, 1) for row in range(min(pool.num_rows, 8))]
    alone = [trials.run(piece) for piece in pieces]
    together = trials.overlapped(pieces)
    if together is None or any(run is None for run in alone):
        return None
    ours = [_answer(run.answers) for run in alone if run is not None]
    theirs = [_answer(answers) for answers in together]
    wrong = [row for row in range(len(pieces)) if ours[row] != theirs[row]]
    if not wrong:
        return None
    others = sum(theirs[row] in [answer for at, answer in enumerate(ours) if at != row] for row in wrong)
    whose = f", {others} of them another row's" if others else ""
    return f"{len(wrong)} of {len(pieces)} rows get other answers{whose}"


def _answer(answers: pa.Table) -> str:
    table = answers.drop_columns([ERROR_COLUMN]) if ERROR_COLUMN in answers.column_names else answers
    return repr(table.to_pylist())


def shared_state(case: Case) -> Finding:
    """Stages of several batches overlapped give other answers than one batch after the other."""
    trials = case.trials
    if trials is None:
        return None
    if case.law not in ("concurrency", "batch-size", "runner", "repeatable"):
        return None
    found = _overlap(case, trials)
    if found is None:
        return Refuted("with the stages of several batches overlapped the answers stay the same")
    memories: list[Memory] = []
    cls = after_loading(trials.loaded.cls, lambda handler: memories.append(Memory(handler)))
    changed: list[str] = []
    with contextlib.suppress(ParityError), trials.fresh(cls) as engine:
        trials.run(case.divergence.rows, engine)
        changed = [name for name in memories[-1].changed() if name.startswith("self.")]
    names = f"; a batch changes {', '.join(changed[:3])}" if changed else ""
    return Explained(f"with the stages of several batches overlapped, {found}{names}")


# Generators.


def generator_consumed(case: Case) -> Finding:
    """The handler holds a generator, and the first batch uses it up."""
    trials = case.trials
    counted = row_count(case)
    if isinstance(counted, Explained) and "generator" in counted.evidence:
        return counted
    if trials is None:
        return None
    held: list[str] = []

    def look(handler: Handler) -> None:
        memory = vars(handler)
        held.extend(
            f"self.{name}"
            for name, value in memory.items()
            if isinstance(value, Iterator) and not _is_random(value)
        )

    try:
        with trials.fresh(after_loading(trials.loaded.cls, look)):
            pass
    except ParityError:
        return None
    if not held:
        return None
    runs = _before_and_after(case, trials)
    if runs is None or not runs[0]:
        return Refuted(
            f"the handler keeps {held[0]}, which can be read once, but gives the same values again"
        )
    return Explained(
        f"the handler keeps {held[0]}, which can be read once; a freshly loaded handler gives the row "
        "another value "
        f"{runs[0][0].words} than at first"
    )


def _is_random(value: object) -> bool:
    return isinstance(value, np.random.Generator)


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
        "stale-buffer",
        "a buffer is used again: what is left of an earlier batch is answered",
        "stages that return memory which the handler keeps; a batch after smaller and larger ones, whose "
        "values are "
        "looked for among the earlier ones",
        "return a copy, and size buffers by the batch: np.empty(len(batch))",
        stale_buffer,
        ("company", "path"),
    )
    yield Suspect(
        "shared-state",
        "stages pass something on through self, and another batch comes in between",
        "the stages of several batches overlapped, against the same batches one after the other; what a "
        "batch "
        "changes on the handler",
        "pass it on in what preprocess and inference return; keep nothing about a batch on self",
        shared_state,
        ("company", "path"),
    )
    yield Suspect(
        "state-kept",
        "the handler remembers something of earlier batches: a counter, a cache, a running mean",
        "freshly loaded handlers asked at once, twice, and after other batches; what changed on them "
        "meanwhile, and "
        "whether putting it back helps",
        "set everything in initialize, and change nothing in a stage; key caches by all that decides the "
        "answer",
        state_kept,
        ("company", "path", "process"),
    )


SUSPECTS: Final = tuple(_suspects())
