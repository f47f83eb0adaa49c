"""All laws, in the order in which they are told: a law that explains others comes before them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa

from parity.batch import Batch
from parity.compare import Tolerances
from parity.engine import Engine
from parity.errors import (
    ConfigError,
    FingerprintError,
    InputMutatedError,
    RunnerError,
    StageError,
    did_you_mean,
)
from parity.failures import unlogged
from parity.laws.access import DeclaredAccess
from parity.laws.bench import Bench, OutOfTimeError
from parity.laws.clock import Clock, repeats_when_stopped
from parity.laws.composition import BatchSize, Neighbours, Order, SingleRow
from parity.laws.concurrency import Concurrency
from parity.laws.failures import EmptyBatch, FailingRows
from parity.laws.forms import WireForm
from parity.laws.honesty import DeclaredOutputs, InputsUntouched
from parity.laws.law import Law, NotApplicableError
from parity.laws.modes import EvalMode
from parity.laws.outcome import LawOutcome
from parity.laws.process import BASELINE, Process
from parity.laws.runners import Device, ThroughRunner
from parity.laws.state import History, Repeatable
from parity.profile import Profile
from parity.registry import Runner
from parity.result import Result

Progress = Callable[[str], None]

LAWS: Final[tuple[Law, ...]] = (
    InputsUntouched(),
    EvalMode(),
    Repeatable(),
    DeclaredOutputs(),
    SingleRow(),
    Order(),
    Neighbours(),
    BatchSize(),
    FailingRows(),
    EmptyBatch(),
    History(),
    Concurrency(),
    WireForm(),
    Clock(),
    DeclaredAccess(),
    Process(),
    ThroughRunner(),
    Device(),
)

_UNTOLD_BY: Final[Mapping[str, tuple[str, ...]]] = {
    "inputs-untouched": ("declared-access",),
    "eval-mode": ("repeatable", "declared-outputs", "declared-access"),
    "repeatable": ("declared-outputs", "declared-access"),
}
"""When a law of the left is broken, only those of the right still say anything."""

_WHY_UNTOLD: Final[Mapping[str, str]] = {
    "inputs-untouched": "the handler writes into its inputs",
    "eval-mode": "a model is in training mode",
    "repeatable": "the handler's answers do not repeat",
}

_EXPLAINED_BY: Final[Mapping[str, tuple[str, ...]]] = {
    "repeatable": ("eval-mode",),
    "neighbours": ("order",),
    "batch-size": ("single-row", "order", "neighbours"),
    "failing-rows": ("single-row", "order", "neighbours", "batch-size"),
    "concurrency": ("history",),
    "process": ("clock",),
    "runner": tuple(law.name for law in LAWS if law.name not in ("runner", "device")),
    "device": ("process",),
}
"""Which laws, when they are broken too, may be all there is to a breach."""


def laws_named(names: Sequence[str] | None) -> tuple[Law, ...]:
    """The laws of these names, all for None; raises ConfigError with near names for an unknown one."""
    if names is None:
        return LAWS
    known = {law.name: law for law in LAWS}
    for name in names:
        if name not in known:
            raise ConfigError(f"no law {name!r}; {did_you_mean(name, known)}")
    return tuple(law for law in LAWS if law.name in names)


def check_laws(
    engine: Engine,
    batch: Batch,
    *,
    laws: Sequence[Law] = LAWS,
    labels: Sequence[str] | None = None,
    tolerances: Tolerances | None = None,
    runners: Sequence[Runner] = (),
    runner_answers: Mapping[str, Result | pa.Table] | None = None,
    profiles: Sequence[str | Profile] = (),
    thorough: bool = False,
    progress: Progress | None = None,
    deadline_s: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> list[LawOutcome]:
    """Try laws on some rows and on edge rows made from the schema.

    Args:
        engine: an entered engine.
        batch: rows of the handler's input schema, at least one.
        laws: what to try.
        labels: a name for each row, for counterexamples.
        tolerances: the rules that tell noise from a difference; handler.toml's when not given.
        runners: runners that the runner law sends the rows through.
        runner_answers: what runners gave already for `batch`, by runner and wire form ("online rows").
        profiles: profiles, or names of handler.toml's, that the device law compares this one with.
        thorough: more generated rows, batch sizes, repetitions and processes.
        progress: called with a line before each law.
        deadline_s: seconds after which no further law is begun; those left over could not be tried.
        clock: what tells the seconds.

    Raises:
        ConfigError: there are no rows, or answers of a runner are not one for each row.
    """
    bench = Bench(
        engine,
        batch,
        labels=labels,
        tolerances=tolerances,
        runners=runners,
        runner_answers=runner_answers,
        profiles=profiles,
        thorough=thorough,
        deadline_s=deadline_s,
        clock=clock,
    )
    with bench:
        return check_bench(bench, laws, progress=progress)


def check_bench(
    bench: Bench, laws: Sequence[Law] = LAWS, *, progress: Progress | None = None
) -> list[LawOutcome]:
    """Try laws on a bench that was entered; see `check_laws`."""
    names = {law.name for law in laws}
    if bench.loaded.ref and names & {"process", "declared-access"}:
        bench.workers.get(BASELINE)  # loads while the laws of this process are tried
    outcomes: list[LawOutcome] = []
    with unlogged(everywhere=True):
        for law in laws:
            why = _untold(bench, law, outcomes)
            if why:
                outcomes.append(LawOutcome(law.name, law.sentence, "skipped", 0, detail=why))
                continue
            if progress is not None:
                progress(f"law {law.name}")
            outcomes.append(_checked(bench, law))
    return [_explained(outcome, outcomes) for outcome in outcomes]


def _checked(bench: Bench, law: Law) -> LawOutcome:
    outcome = LawOutcome(law.name, law.sentence, "skipped", 0)
    try:
        bench.check_time()
        return law.check(bench)
    except NotApplicableError as exc:
        return replace(outcome, detail=f"does not apply: {exc}")
    except OutOfTimeError:
        return replace(
            outcome, verdict="unable", detail="not tried to its end: the time for all laws was over"
        )
    except (RunnerError, FingerprintError, StageError) as exc:
        return replace(outcome, verdict="unable", detail=str(exc))
    except InputMutatedError as exc:
        return replace(outcome, verdict="broken", detail=str(exc), follows=InputsUntouched.name)


def _untold(bench: Bench, law: Law, outcomes: Iterable[LawOutcome]) -> str:
    """Why a law says nothing any more, given what is broken already; "" when it does."""
    for outcome in outcomes:
        if outcome.verdict != "broken":
            continue
        root = InputsUntouched.name if outcome.follows == InputsUntouched.name else outcome.law
        if root in _UNTOLD_BY and law.name not in _UNTOLD_BY[root]:
            if root == Repeatable.name and law.name == Clock.name and repeats_when_stopped(bench):
                continue
            return f"not tried: {_WHY_UNTOLD[root]}"
    return ""


def _explained(outcome: LawOutcome, outcomes: Iterable[LawOutcome]) -> LawOutcome:
    """The outcome with the earlier law that may be all there is to it."""
    if outcome.verdict != "broken" or outcome.follows:
        return outcome
    causes = _EXPLAINED_BY.get(outcome.law, ())
    earlier = next((item.law for item in outcomes if item.verdict == "broken" and item.law in causes), "")
    return replace(outcome, follows=earlier)
