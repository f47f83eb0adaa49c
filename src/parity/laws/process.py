"""The law of the process: rows asked in fresh ones of another hash seed, zone, locale, folder, threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import pyarrow as pa

from parity.batch import Batch
from parity.codec import arrow
from parity.laws.bench import Bench
from parity.laws.explanation import Suspect
from parity.laws.law import NotApplicableError
from parity.laws.outcome import LawOutcome
from parity.laws.snippets import NO_FOLDER, process_snippet
from parity.laws.trials import Trial, judge
from parity.laws.ways import Asked, Pair, Way, together
from parity.laws.workers import CWD, THREADS
from parity.triage import Side

HASH_SEED, ZONE, LOCALE = "PYTHONHASHSEED", "TZ", "LC_ALL"

BASELINE: Final[Mapping[str, str]] = {HASH_SEED: "0"}
"""A fresh process as this one is, with the hash seed pinned."""

_LOCALE_TOO: Final = ("LANG", "LANGUAGE")
_UTF8: Final = "PYTHONUTF8"
_ZONES: Final = ("Pacific/Kiritimati", "America/Adak")
_ZONES_WITHOUT_TABLES: Final = ("LINT-14", "HST10")
_LOCALES: Final = ("de_DE.UTF-8", "de_DE.utf8", "tr_TR.UTF-8", "tr_TR.utf8", "fr_FR.UTF-8", "fr_FR.utf8")
_ZONE_TABLES: Final = Path("/usr/share/zoneinfo")
_AT_A_TIME: Final = 2
THREAD_NOISE: Final = "other bits with another number of threads"


class Process:
    """Golden and edge rows asked in fresh processes, whose environments lie far apart."""

    name = "process"
    sentence = "the answer for a row does not depend on the process: hash seed, TZ, locale, folder, threads"

    def check(self, bench: Bench) -> LawOutcome:
        """Ask here, in a fresh process, and in others with everything varied; find what is responsible.

        Raises:
            NotApplicableError: the handler has no folder to be loaded from.
            RunnerError: a process failed to start.
        """
        if not bench.loaded.ref:
            raise NotApplicableError(NO_FOLDER)
        judged = bench.judged

        def trials() -> Iterator[Trial]:
            others = variations(bench)
            baseline = bench.workers.get(BASELINE)
            for varied in others[:_AT_A_TIME]:
                bench.workers.get({**BASELINE, **varied})  # they load meanwhile
            batch = bench.batch(judged)
            here = bench.run(judged)
            expected = baseline.ask(batch).answers
            fresh = Pair(
                together(bench.engine, "in this process"),
                in_process(bench, BASELINE, "in a fresh one"),
                {"process": "a fresh one"},
            )
            yield Trial(fresh.how, fresh, judged, (here, expected), _responsible_for_freshness(bench, fresh))
            for place, varied in enumerate(others):
                worker = bench.workers.get({**BASELINE, **varied})
                obtained = worker.ask(batch).answers
                how = f"in a fresh process, and in one with other {_listed(varied)}"
                yield Trial(
                    how, between(bench, varied), judged, (expected, obtained), _responsible(bench, varied)
                )
                bench.workers.end({**BASELINE, **varied})
                for following in others[place + _AT_A_TIME : place + _AT_A_TIME + 1]:
                    bench.workers.get({**BASELINE, **following})

        return judge(self.name, self.sentence, bench, trials(), THREAD_NOISE)


def variations(bench: Bench) -> list[dict[str, str]]:
    """Environments to try, each with everything varied at once; far apart from this one and each other."""
    profile = bench.engine.profile
    seeds = ("1", "2") if not bench.thorough else ("1", "2", "3", "4", "5", "6")
    zones = _ZONES if all((_ZONE_TABLES / zone).exists() for zone in _ZONES) else _ZONES_WITHOUT_TABLES
    zones = [zone for zone in zones if zone != os.environ.get(ZONE)] or list(zones)
    found: list[dict[str, str]] = []
    for place, seed in enumerate(seeds):
        varied = {
            HASH_SEED: seed,
            ZONE: zones[place % len(zones)],
            **_other_locale(),
            CWD: str(bench.elsewhere),
        }
        if not profile.exact and place == 0:
            varied[THREADS] = "2" if profile.threads == 1 else "1"
        found.append(varied)
    return found


def one_of(varied: Mapping[str, str], name: str) -> dict[str, str]:
    """One variable of several that are varied, with those that mean nothing without it."""
    found = {name: varied[name]}
    if name == LOCALE:
        found |= {key: value for key, value in varied.items() if key in (*_LOCALE_TOO, _UTF8)}
    return found


def in_process(bench: Bench, varied: Mapping[str, str], name: str) -> Way:
    """All rows as one batch, asked in a process of its own."""

    def ask(batch: Batch, stages: bool) -> Asked:
        return bench.workers.get(varied).ask(batch, stages)

    def again(rows: pa.Table) -> Side:
        found = ask(arrow.decode_table(bench.loaded.inputs, rows).batch, True)
        return Side(name, found.answers, found.traces, found.fingerprint or {}, found.company, found.places)

    return Way(name, ask, again=again)


def between(bench: Bench, varied: Mapping[str, str]) -> Pair:
    """The baseline process, and one with some of its environment varied."""
    shown = {name: value for name, value in varied.items() if name != _UTF8}
    told = ", ".join(
        "another working folder" if name == CWD else f"{name}={value}" for name, value in shown.items()
    )
    one, other = "in a fresh process", f"in one with {told}"
    pair = Pair(in_process(bench, BASELINE, one), in_process(bench, {**BASELINE, **varied}, other), shown)

    def written(rows: Batch, column: str, row: int) -> str:
        profile, threads = bench.engine.profile, varied.get(THREADS)
        changed = {name: value for name, value in varied.items() if name not in (CWD, THREADS)}
        if threads:
            changed["OMP_NUM_THREADS"] = threads
            profile = replace(profile, threads=int(threads))
        environments = {"as it is": dict(BASELINE), told: {**BASELINE, **changed}}
        folders = {told: "/"} if CWD in varied else {}
        return process_snippet(bench.loaded, profile, rows, column, row, environments, folders)

    return replace(pair, snippet=written)


Suspects = Callable[[object], Iterator[Suspect]]


def _responsible(bench: Bench, varied: Mapping[str, str]) -> Suspects:
    """Suspect each variable by itself, two processes at a time; then all of them together."""

    def suspects(_: object) -> Iterator[Suspect]:
        candidate = bench.candidate(bench.judged)
        single = [one_of(varied, name) for name in _groups(varied)]
        for place, only in enumerate(single):
            bench.workers.get({**BASELINE, **only})
            if place + 1 < len(single):
                bench.workers.get({**BASELINE, **single[place + 1]})
            yield Suspect(candidate, between(bench, only))
            bench.workers.end({**BASELINE, **only})
        yield Suspect(candidate, between(bench, varied))

    return suspects


def _responsible_for_freshness(bench: Bench, fresh: Pair) -> Suspects:
    """Suspect the hash seed, which differs from process to process; then that the process is fresh at all."""

    def suspects(_: object) -> Iterator[Suspect]:
        candidate = bench.candidate(bench.judged)
        for seed in ("1", "2"):
            yield Suspect(candidate, between(bench, {HASH_SEED: seed}))
        snippets = "this process takes part in it; ask here, and in a new interpreter"
        yield Suspect(candidate, replace(fresh, why_no_snippet=snippets))

    return suspects


def _groups(varied: Mapping[str, str]) -> list[str]:
    return [name for name in (HASH_SEED, ZONE, CWD, LOCALE, THREADS) if name in varied]


def _other_locale() -> dict[str, str]:
    """A locale with other rules than this process's, where the system has one; else plain ASCII.

    `LC_ALL` decides what C's functions do, and must be there. Libraries that read the variables themselves
    look into the others first or last, so these say the same in any case.
    """
    known = _known_locales()
    for name in _LOCALES:
        if name in known and name != os.environ.get(LOCALE):
            return {LOCALE: name, "LANG": name, "LANGUAGE": name.partition(".")[0]}
    return {LOCALE: "C", "LANG": _LOCALES[0], "LANGUAGE": _LOCALES[0].partition(".")[0], _UTF8: "0"}


def _known_locales() -> frozenset[str]:
    folder = Path("/usr/lib/locale")
    try:
        return frozenset(path.name for path in folder.iterdir())
    except OSError:
        return frozenset()


def _listed(varied: Mapping[str, str]) -> str:
    return ", ".join(name for name in varied if name not in (*_LOCALE_TOO, _UTF8))
