"""The law of eval mode: no module is in training mode, and no dropout draws, when rows are scored."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import FunctionType, ModuleType
from typing import Any, Final, cast

from parity.batch import Batch
from parity.engine import Engine
from parity.handler import Context, Handler
from parity.laws.bench import Bench
from parity.laws.law import NotApplicableError
from parity.laws.outcome import LawOutcome
from parity.laws.trials import Trial, judge, try_pair
from parity.laws.ways import Asked, Pair, Way, joined
from parity.triage import Cause, Diagnosis

_MOST_OBJECTS: Final = 20_000
_DRAWING: Final = ("native_dropout", "bernoulli", "dropout", "rrelu_with_noise")
_NORMALISING: Final = ("native_batch_norm", "_native_batch_norm_legit", "cudnn_batch_norm", "batch_norm")
_TRAINING_ARGUMENT: Final = {"native_batch_norm": 5, "_native_batch_norm_legit": 5, "cudnn_batch_norm": 5}


class EvalMode:
    """The golden rows asked of the handler as it is, and with all its modules in eval mode."""

    name = "eval-mode"
    sentence = "models are in eval mode: dropout is off, and batch norm uses what it learned"

    def check(self, bench: Bench) -> LawOutcome:
        """Ask as the handler is and with its modules in eval mode; ask with two seeds, and hear what draws.

        Raises:
            NotApplicableError: the handler uses no torch.
        """
        torch = cast("Any", sys.modules.get("torch"))
        if torch is None or not hasattr(torch, "nn"):
            raise NotApplicableError("the handler imports no torch")
        with watched_engine(bench) as (engine, handler):
            modules = modules_of(handler, torch)
            training = _training(modules)
            state = _state(modules, training)
            heard: list[str] = []

            def trials() -> Iterator[Trial]:
                if training:
                    one = _seeded(torch, engine, 0, "as it is")
                    yield try_pair(bench, bench.golden, Pair(one, _in_eval(torch, engine, modules), _IN_EVAL))
                again, other = (_seeded(torch, engine, seed, f"with seed {seed}") for seed in (0, 1))
                trial = try_pair(bench, bench.golden, Pair(again, other, {"torch seed": "1"}))
                if bench.compare(bench.golden, trial.answers).verdict == "divergent":
                    repeated = again.ask(bench.batch(bench.golden), False).answers
                    trial = replace(
                        trial, how=f"{again.name}, and again", answers=(trial.answers[0], repeated)
                    )
                    if bench.compare(bench.golden, trial.answers).verdict == "divergent":
                        return  # whatever the seed: the law of repetition tells it
                    heard.extend(_heard(torch, engine, bench.batch(bench.golden)))
                    if heard:
                        trial = try_pair(bench, bench.golden, Pair(again, other, {"torch seed": "1"}))
                yield trial

            outcome = judge(self.name, self.sentence, bench, trials(), "other bits in eval mode")
            outcome = replace(outcome, detail=f"{state}; {outcome.detail}")
            if outcome.verdict != "broken":
                return outcome
            heard = heard or _heard(torch, engine, bench.batch(bench.golden))
        known = outcome.diagnosis or Diagnosis("inference")
        return replace(outcome, diagnosis=replace(known, cause=_cause(heard, training)))


_IN_EVAL: Final[Mapping[str, str]] = {"mode": "eval"}


@contextmanager
def watched_engine(bench: Bench) -> Generator[tuple[Engine, Handler]]:
    """A second engine of the bench's handler, and the handler object in it."""
    made: list[Handler] = []

    class Watched(bench.loaded.cls):
        def initialize(self, context: Context) -> None:
            made.append(self)
            super().initialize(context)

    Watched.__name__, Watched.__qualname__ = bench.loaded.cls.__name__, bench.loaded.cls.__qualname__
    loaded = replace(bench.loaded, cls=Watched)
    with Engine(loaded, replace(bench.engine.profile, exact=False)) as engine:
        yield engine, made[0]


def modules_of(handler: Handler, torch: Any) -> dict[str, Any]:
    """The torch modules that are reachable from a handler's attributes, its class and its module, by path."""
    found: dict[str, Any] = {}
    seen: set[int] = set()
    home = sys.modules.get(type(handler).__mro__[1].__module__)
    starts: list[tuple[str, Any]] = [(f"self.{name}", item) for name, item in vars(handler).items()]
    starts += [(f"self.{name}", item) for name, item in vars(type(handler).__mro__[1]).items()]
    starts += [(name, item) for name, item in vars(home).items()] if home is not None else []
    waiting = deque(starts)
    while waiting and len(seen) < _MOST_OBJECTS:
        path, item = waiting.popleft()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, torch.nn.Module):
            found[path] = item
            seen |= {id(inner) for inner in item.modules()}
        else:
            waiting.extend((f"{path}{step}", inner) for step, inner in _parts(item))
    return found


def _parts(item: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(item, type | ModuleType | FunctionType | str | bytes | int | float):
        return
    if isinstance(item, Mapping):
        for key, inner in cast("Mapping[Any, Any]", item).items():
            yield f"[{key!r}]", inner
    elif isinstance(item, list | tuple | set | frozenset):
        for place, inner in enumerate(cast("list[Any]", item)):
            yield f"[{place}]", inner
    elif isinstance(getattr(item, "__dict__", None), dict) and not type(item).__module__.startswith(
        _LEFT_ALONE
    ):
        for name, inner in vars(item).items():
            yield f".{name}", inner


_LEFT_ALONE: Final = ("torch.", "numpy", "pyarrow", "pandas", "polars", "parity.", "logging", "threading")


def _training(modules: Mapping[str, Any]) -> list[str]:
    """The submodules in training mode, by path."""
    return [
        f"{path}.{name}" if name else path
        for path, module in modules.items()
        for name, inner in module.named_modules()
        if inner.training
    ]


def _heard(torch: Any, engine: Engine, batch: Batch) -> list[str]:
    """The operations of training that run when a batch is scored: dropout, and batch norm over the batch."""
    dispatch = torch.utils._python_dispatch.TorchDispatchMode
    found: dict[str, None] = {}

    class Listening(dispatch):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = str(func.overloadpacket.__name__)
            if name.rstrip("_") in _DRAWING and not _is_off(args):
                found[name] = None
            if name in _NORMALISING and _is_training(name, args, kwargs or {}):
                found[name] = None
            return func(*args, **(kwargs or {}))

    with Listening():
        engine.run(batch)
    return list(found)


def _is_off(args: Any) -> bool:
    """Whether dropout is called with a probability of 0, or told not to train."""
    return len(args) > 1 and (args[1] == 0 or (len(args) > 2 and args[2] is False))


def _is_training(name: str, args: Any, kwargs: Mapping[str, Any]) -> bool:
    place = _TRAINING_ARGUMENT.get(name, 5)
    told = kwargs.get("training", kwargs.get("train", args[place] if len(args) > place else False))
    return bool(told)


def _seeded(torch: Any, engine: Engine, seed: int, name: str) -> Way:
    def ask(batch: Batch, stages: bool) -> Asked:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return joined([(batch, engine.run(batch, stages=stages))], stages)

    code = f"torch.manual_seed({seed})\nANSWERS = engine.run(rows).to_table()"
    return Way(name, ask, code, ("import torch",))


def _in_eval(torch: Any, engine: Engine, modules: Mapping[str, Any]) -> Way:
    """Asked with every module in eval mode, which are put back afterwards."""

    def ask(batch: Batch, stages: bool) -> Asked:
        every = [inner for module in modules.values() for inner in module.modules()]
        flags = [inner.training for inner in every]
        try:
            for inner in every:
                inner.training = False
            with torch.random.fork_rng():
                torch.manual_seed(0)
                return joined([(batch, engine.run(batch, stages=stages))], stages)
        finally:
            for inner, flag in zip(every, flags, strict=True):
                inner.training = flag

    code = (
        "torch.manual_seed(0)\n"
        "for module in [item for item in gc.get_objects() if isinstance(item, torch.nn.Module)]:\n"
        "    module.eval()\n"
        "ANSWERS = engine.run(rows).to_table()"
    )
    return Way("in eval mode", ask, code, ("import gc", "import torch"))


def _state(modules: Mapping[str, Any], training: list[str]) -> str:
    count = sum(1 for module in modules.values() for _ in module.modules())
    if not training:
        return f"{count} modules in eval mode"
    shown = ", ".join(training[:3]) + (", ..." if len(training) > 3 else "")
    return f"{len(training)} of {count} modules in training mode ({shown})"


def _cause(heard: list[str], training: list[str]) -> Cause:
    what = "its answers change when its modules are put into eval mode"
    if not training:
        what = "its answers change with the seed, though no module trains: dropout is called as a function"
    ran = f"; {', '.join(heard)} ran" if heard else ""
    return Cause(
        "train-mode",
        "a model is scored as if it were trained: dropout draws, or batch norm uses the batch",
        what + ran,
        "call model.eval() in initialize; give functional dropout training=False",
    )
