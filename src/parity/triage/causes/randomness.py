"""Random generators, and layers in training mode, which draw from them."""

from __future__ import annotations

import contextlib
import os
import random
import sys
from collections.abc import Callable, Generator, Iterator
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa

from parity.errors import ParityError
from parity.handler import Handler
from parity.triage.case import Case, Explained, Finding, Refuted, Suspect, Values
from parity.triage.dependence import equal, shows
from parity.triage.memory import Memory, modules_of
from parity.triage.trials import Trials, after_loading, around_stages, patched

_SEED: Final = 20_240_229


# Training mode.


def train_mode(case: Case) -> Finding:
    """The handler's torch modules switched to eval mode, and dropout off: the difference is gone."""
    torch = cast("Any", sys.modules.get("torch"))
    if torch is None or case.trials is None:
        return None
    trials = case.trials
    seen: list[int] = [0, 0]

    def to_eval(handler: Handler) -> None:
        for module in modules_of(handler, torch):
            seen[0] += 1
            seen[1] += sum(bool(part.training) for part in module.modules())
            module.eval()

    @contextlib.contextmanager
    def evaluated() -> Generator[None]:
        functional = torch.nn.functional
        with contextlib.ExitStack() as stack:
            for name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout"):
                stack.enter_context(patched(functional, name, _no_dropout))
            stack.enter_context(patched(torch.nn.Module, "train", _stay))
            yield

    altered = around_stages(after_loading(trials.loaded.cls, to_eval), evaluated)
    differs = _difference(case)
    if differs is None:
        return None
    with trials.fresh() as engine:
        if not differs(engine):
            return None
    with trials.fresh(altered) as engine:
        if differs(engine):
            return Refuted("in eval mode the difference stays") if seen[0] else None
    training = f"{seen[1]} modules of the handler are in training mode" if seen[1] else "dropout runs"
    return Explained(f"{training}; in eval mode, with dropout off, the difference is gone")


def _no_dropout(values: Any, *_: object, **__: object) -> Any:
    return values


def _stay(module: Any, mode: bool = True) -> Any:
    del mode
    return module


def _difference(case: Case) -> Callable[[Any], bool] | None:
    """Whether an engine shows the difference: between a row and its batch, or between two repetitions."""
    dependence = case.dependence
    if dependence is not None:
        return lambda engine: shows(dependence, engine)
    trials = case.trials
    if trials is None:
        return None

    def repeats_differ(engine: Any) -> bool:
        one, other = (trials.run(case.divergence.rows, engine) for _ in range(2))
        if one is None or other is None:
            return True
        return not _same_values(case, one, other)

    return repeats_differ


def _same_values(case: Case, one: Any, other: Any) -> bool:
    places = [item.place for item in case.pairs] or [""]
    return all(
        equal(first, second)
        for place in places
        for first, second in zip(one.at(case.stage, place), other.at(case.stage, place), strict=True)
    )


# Generators.


def _asked(case: Case) -> pa.Table:
    """The rows to ask again: the batch of the first that diverges, where there is one."""
    return case.divergence.rows if case.dependence is None else case.dependence.mates.rows


def _repeats(case: Case, trials: Trials, before: Callable[[], object] | None = None) -> list[Values] | None:
    """The values of the rows asked three times of one fresh handler; None where they cannot be asked."""
    place = next((item.place for item in case.pairs), "")
    rows = _asked(case)
    found: list[Values] = []
    try:
        with trials.fresh() as engine:
            for _ in range(3):
                if before is not None:
                    before()
                run = trials.run(rows, engine)
                if run is None:
                    return None
                found.append(run.at(case.stage, place))
    except ParityError:
        return None
    return found


def _all_equal(first: Values, *others: Values) -> bool:
    return all(equal(one, another) for other in others for one, another in zip(first, other, strict=True))


def seed_everything() -> None:
    """Seed the global generators of Python, numpy and torch."""
    random.seed(_SEED)
    np.random.seed(_SEED % 2**32)  # noqa: NPY002 - the global generator is what is under suspicion
    torch = cast("Any", sys.modules.get("torch"))
    if torch is not None:
        torch.manual_seed(_SEED)


def _global_state() -> list[Any]:
    numpy_state: Any = np.random.get_state()  # noqa: NPY002 - as above
    found: list[Any] = [random.getstate(), numpy_state[1].tobytes(), numpy_state[2], numpy_state[4]]
    torch = cast("Any", sys.modules.get("torch"))
    if torch is not None:
        found.append(torch.get_rng_state().numpy().tobytes())
    return found


def global_rng(case: Case) -> Finding:
    """The global generators seeded before each batch, or found drawn from."""
    trials = case.trials
    if trials is None or not case.pairs:
        return None
    plain = _repeats(case, trials)
    if plain is None:
        return None
    if not _all_equal(*plain):
        seeded = _repeats(case, trials, seed_everything)
        if seeded is not None and _all_equal(*seeded):
            return Explained(
                "asked twice, a freshly loaded handler gives other values; with the global generators of "
                "Python, numpy and torch seeded before each batch it gives the same"
            )
        return Refuted("with the global generators seeded before each batch the values still change")
    company = case.company
    if company is None:
        return None
    seed_everything()
    before = _global_state()
    company.values(company.mates.rows)
    touched = _global_state() != before
    values = company.copies(max(company.size, 4))
    if touched and values is not None and not all(equal(value, values[0]) for value in values):
        return Explained(
            "the handler seeds or draws from a global generator in every batch, and copies of one row get "
            "different values by their place in it"
        )
    if touched:
        return Refuted("a global generator is drawn from, but copies of one row get one value")
    return _local_draws(case)


def _local_draws(case: Case) -> Finding:
    """A generator seeded anew in each batch and drawn from for all rows; with one draw for all it is gone."""
    company = case.company
    if company is None:
        return None
    values = company.copies(max(company.size, 4))
    if values is None or all(equal(value, values[0]) for value in values):
        return None
    made: list[int] = []
    original = np.random.default_rng

    def alike_for_all(*arguments: Any, **options: Any) -> Any:
        made.append(1)
        return _OneDraw(original(*arguments, **options))

    with patched(np.random, "default_rng", alike_for_all):
        try:
            with company.trials.fresh() as engine:
                again = company.values(company.mates.row.take([0] * max(company.size, 4)), engine)
        except ParityError:
            return None
    if made and again is not None and all(equal(value, again[0]) for value in again):
        return Explained(
            "a generator is made in every batch and drawn from for all rows; with one draw for all of them, "
            "copies of one row get one value"
        )
    return None


class _OneDraw:
    """A numpy generator whose draws are the same for every row."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if not callable(method):
            return method

        def drawn(*arguments: Any, **options: Any) -> Any:
            values = method(*arguments, **options)
            if isinstance(values, np.ndarray) and values.ndim:
                values[:] = values[:1]
            return values

        return drawn


def unseeded_rng(case: Case) -> Finding:
    """Freshly loaded handlers differ from each other, and no more once seedless generators get a seed."""
    trials = case.trials
    if trials is None or not case.pairs:
        return None
    place = case.pairs[0].place
    rows = _asked(case)
    memories: list[Memory] = []
    cls = after_loading(trials.loaded.cls, lambda handler: memories.append(Memory(handler)))

    def first() -> Values | None:
        """The first answers of a fresh handler, none of which remembers another."""
        seed_everything()
        try:
            with trials.fresh(cls) as engine:
                seed_everything()
                memories[-1].restore()  # which empties what functions cache
                run = trials.run(rows, engine)
                memories[-1].restore()
        except ParityError:
            return None
        return None if run is None else run.at(case.stage, place)

    one, other = first(), first()
    if one is None or other is None:
        return None
    within = _repeats(case, trials, seed_everything)
    if _all_equal(one, other) and (within is None or _all_equal(*within)):
        return None
    if _all_equal(one, other):
        return Refuted("freshly loaded handlers all give the same first answers")
    with _seeded_generators() as used:
        one, other = first(), first()
    if one is not None and other is not None and _all_equal(one, other) and used:
        return Explained(
            f"freshly loaded handlers give different answers, whatever is seeded; with {used[0]} given a "
            "seed they give the same"
        )
    return Explained(
        "freshly loaded handlers give different answers to the same rows, with all global generators seeded"
    )


@contextlib.contextmanager
def _seeded_generators() -> Generator[list[str]]:
    """Generators that are made without a seed get one; yields the names of those that were made."""
    used: list[str] = []
    original = np.random.default_rng

    def default_rng(seed: Any = None) -> Any:
        if seed is None:
            used.append("numpy's default_rng()")
            return original(_SEED)
        return original(seed)

    def urandom(size: int) -> bytes:
        used.append("os.urandom, which uuid4 reads,")
        return bytes(range(1, 256))[:size].ljust(size, b"\1")

    with contextlib.ExitStack() as stack:
        stack.enter_context(patched(np.random, "default_rng", default_rng))
        stack.enter_context(patched(os, "urandom", urandom))
        yield used


def _suspects() -> Iterator[Suspect]:
    yield Suspect(
        "train-mode",
        "the model is in training mode: dropout drops, or batch normalisation takes the batch's statistics",
        "the handler's torch modules switched to eval mode and dropout off, in a freshly loaded handler",
        "model.eval() in initialize; Context.load_model does it",
        train_mode,
        ("company", "process", "path"),
    )
    yield Suspect(
        "global-rng",
        "random numbers are drawn from a generator whose state other draws move on",
        "the global generators of Python, numpy and torch seeded before each batch; whether a batch moves "
        "them on; one draw for all rows",
        "draw nothing in a stage; where chance is wanted, seed it with what the row holds",
        global_rng,
        ("company",),
    )
    yield Suspect(
        "unseeded-rng",
        "random numbers are drawn from a generator that nobody seeds",
        "freshly loaded handlers against each other with all global generators seeded; seedless generators "
        "given a seed",
        "draw nothing in a stage; where chance is wanted, seed it with what the row holds",
        unseeded_rng,
        ("company", "process"),
    )


SUSPECTS: Final = tuple(_suspects())
