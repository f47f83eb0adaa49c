"""The law of declared access: a handler reads its own folder and the installation, and writes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from parity.errors import ConfigError, did_you_mean, shown
from parity.laws.audit import Access, undeclared
from parity.laws.bench import Bench, spread
from parity.laws.law import NotApplicableError
from parity.laws.outcome import LawOutcome
from parity.laws.process import BASELINE
from parity.laws.snippets import NO_FOLDER
from parity.result import ERROR_COLUMN
from parity.triage import Cause, Diagnosis, Stage

_SHOWN: Final = 8
_STAGES: Final[Mapping[str, Stage]] = {
    "preprocess": "preprocess",
    "inference": "inference",
    "postprocess": "postprocess",
}
_ASKED: Final = 32

_DECLARABLE: Final[Mapping[str, type]] = {
    "reads": list,
    "writes": list,
    "environment": list,
    "network": bool,
    "processes": bool,
}

_REMEDIES: Final[Mapping[str, str]] = {
    "read": "put it into the handler's folder and open it with context.path, or declare it: "
    '[access] reads = ["{target}"]',
    "write": 'keep nothing between batches, or declare it: [access] writes = ["{target}"]',
    "network": "ask for it before scoring and put it into a column, or declare it: [access] network = true",
    "process": "do the work in this process, or declare it: [access] processes = true",
    "environment": "make it a setting of handler.toml's [config], or declare it: "
    '[access] environment = ["{target}"]',
}
_SENTENCES: Final[Mapping[str, str]] = {
    "read": "the handler reads what is neither in its folder nor declared, and so may differ elsewhere",
    "write": "the handler writes to disk, where the next batch or another process finds it",
    "network": "the handler talks to another machine, whose answers nobody pins",
    "process": "the handler starts other programs, whose versions nobody pins",
    "environment": "the handler reads an environment variable, which another process may not have",
}


class DeclaredAccess:
    """A fresh process that loads the handler and scores rows while Python's audit events are heard."""

    name = "declared-access"
    sentence = "a handler reads only its folder, the installation and what it declares, and writes nothing"

    def check(self, bench: Bench) -> LawOutcome:
        """Load the handler in a process of its own, ask rows there, and look at what it opened and started.

        Raises:
            NotApplicableError: the handler has no folder to be loaded from.
            ConfigError: handler.toml's [access] is wrong.
            RunnerError: the process failed to start.
        """
        root = bench.loaded.root
        if not bench.loaded.ref or root is None:
            raise NotApplicableError(NO_FOLDER)
        declared = declared_access(bench)
        worker = bench.workers.get(BASELINE)
        asked = spread(bench.judged, _ASKED)
        if worker.load_error:
            detail = f"the handler does not load in a process of its own: {worker.load_error}"
            return LawOutcome(self.name, self.sentence, "unable", 0, detail=detail)
        answered = worker.ask(bench.batch(asked)).answers.column(ERROR_COLUMN).null_count
        found = undeclared(worker.accesses(), root, declared)
        executed = ("as declared, and as heard in a fresh process",)
        if not found and not answered:
            detail = "no row got an answer in a process of its own, so that not every stage was heard"
            return LawOutcome(self.name, self.sentence, "nothing", 0, detail=detail, executed=executed)
        if not found:
            detail = f"nothing undeclared was touched in loading and in scoring {len(asked)} rows"
            return LawOutcome(self.name, self.sentence, "holds", len(asked), detail=detail, executed=executed)
        told = "; ".join(str(access) for access in found[:_SHOWN])
        more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        return LawOutcome(
            self.name,
            self.sentence,
            "broken",
            len(asked),
            len(found),
            f"{told}{more}",
            diagnosis=_diagnosis(found),
            executed=executed,
        )


def declared_access(bench: Bench) -> Mapping[str, Any]:
    """handler.toml's `[access]`.

    Raises:
        ConfigError: a key is not known (near names are given), or its value is of another type.
    """
    found = bench.loaded.manifest.access
    where = f"handler {bench.loaded.name}: [access]"
    for key, value in found.items():
        if key not in _DECLARABLE:
            raise ConfigError(f"{where} has no key {key!r}; {did_you_mean(key, _DECLARABLE)}")
        texts = isinstance(value, list) and all(isinstance(item, str) for item in cast("list[Any]", value))
        if not (isinstance(value, bool) if _DECLARABLE[key] is bool else texts):
            expected = "true or false" if _DECLARABLE[key] is bool else "a list of texts"
            raise ConfigError(f"{where} {key} = {shown(value)} is not {expected}")
    return found


def _diagnosis(found: list[Access]) -> Diagnosis:
    """The gravest access: one while scoring before one while loading, a write before a read."""
    order = ("write", "network", "process", "read", "environment")
    first = min(found, key=lambda access: (access.phase not in _STAGES, order.index(access.touch)))
    name = "undeclared-write" if first.touch == "write" else "undeclared-read"
    others = f"; {len(found) - 1} more" if len(found) > 1 else ""
    cause = Cause(
        name,
        _SENTENCES[first.touch],
        f"{first}{others}",
        _REMEDIES[first.touch].format(target=first.target),
    )
    return Diagnosis(_STAGES.get(first.phase), first.target, cause=cause)
