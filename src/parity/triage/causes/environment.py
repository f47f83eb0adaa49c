"""Weights, code and versions that differ, and what a process brings along."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator, Iterator, Mapping
from typing import Any, Final

from parity.errors import ParityError
from parity.numerics import OPERATION, PLAN, tells_change
from parity.triage.case import Case, Explained, Finding, Refuted, Suspect
from parity.triage.causes.times import timezone_shift
from parity.triage.dependence import equal
from parity.triage.trials import patched

_VARIABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "hash-seed": ("PYTHONHASHSEED",),
    "timezone-of-process": ("TZ",),
    "locale": ("LC_ALL", "LANG", "LC_NUMERIC", "LC_CTYPE", "LC_TIME", "LANGUAGE", "locale"),
    "working-directory": ("cwd", "PWD", "working directory", "working-directory"),
    "thread-count": (
        "threads",
        "OMP_NUM_THREADS",
        "MKL_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "POLARS_MAX_THREADS",
        "NUMEXPR_NUM_THREADS",
        "thread count",
        "thread-count",
    ),
    "wall-clock": ("clock", "now", "time", "date", "wall clock", "wall-clock"),
}
"""For each cause the names under which a law says that it varied it."""


def _varied(cause: str) -> Any:
    def examine(case: Case) -> Finding:
        varied = dict(case.divergence.varied)
        names = _VARIABLES[cause]
        here = {name: value for name, value in varied.items() if name in names}
        others = {name: value for name, value in varied.items() if name not in names}
        if not here:
            return None
        what = ", ".join(f"{name} = {value}" for name, value in here.items())
        if others:
            return Refuted(f"{what} was varied together with {', '.join(others)}")
        zones = timezone_shift(case) if cause == "timezone-of-process" else None
        more = f"; {zones.evidence}" if isinstance(zones, Explained) else ""
        return Explained(f"of all that was varied, {what} alone makes the difference{more}")

    return examine


# The clock.


@contextlib.contextmanager
def stopped_clock() -> Generator[None]:
    """The clocks of the time module stand still."""
    second, fine = time.time(), time.time_ns()
    ticks, fine_ticks = time.perf_counter(), time.perf_counter_ns()
    with contextlib.ExitStack() as stack:
        for name, value in {
            "time": lambda: second,
            "time_ns": lambda: fine,
            "perf_counter": lambda: ticks,
            "perf_counter_ns": lambda: fine_ticks,
        }.items():
            stack.enter_context(patched(time, name, value))
        yield


def wall_clock(case: Case) -> Finding:
    """The law varied the clock; or with the clock stopped a handler that differs each time does not."""
    varied = _varied("wall-clock")(case)
    if varied is not None:
        return varied
    if case.law == "clock":
        return Explained("the rows were asked under another clock, and nothing else was varied")
    trials = case.trials
    if trials is None or case.group != "company" or not case.pairs:
        return None
    place = case.pairs[0].place

    def differs() -> bool | None:
        try:
            with trials.fresh() as engine:
                one, other = (trials.run(case.divergence.rows, engine) for _ in range(2))
        except ParityError:
            return None
        if one is None or other is None:
            return None
        pairs = zip(one.at(case.stage, place), other.at(case.stage, place), strict=True)
        return not all(equal(first, second) for first, second in pairs)

    if not differs():
        return None
    with stopped_clock():
        still = differs()
    if still is False:
        return Explained(
            "a freshly loaded handler gives other values the second time, and with the clock stopped it "
            "gives the same"
        )
    return Refuted("with the clock stopped the values still change")


# Fingerprints.


def _fingerprints(case: Case) -> tuple[Mapping[str, str], Mapping[str, str]]:
    return case.sides[0].fingerprint, case.sides[1].fingerprint


def _differing(case: Case, prefix: str) -> dict[str, tuple[str, str]]:
    """The entries whose name starts so, that both sides know, and that differ."""
    one, other = _fingerprints(case)
    found: dict[str, tuple[str, str]] = {}
    for name in sorted({*one, *other}):
        if not name.startswith(prefix):
            continue
        ours, theirs = one.get(name), other.get(name)
        if ours is not None and theirs is not None and tells_change(name, ours, theirs):
            found[name] = (ours, theirs)
    return found


def weights(case: Case) -> Finding:
    """The digests of the artifacts differ."""
    one, other = _fingerprints(case)
    ours, theirs = one.get("digest.artifacts"), other.get("digest.artifacts")
    if ours is None or theirs is None:
        return None
    if ours == theirs:
        return Refuted("the artifacts have the same digest on both sides")
    if case.stage == "decode":
        return Refuted("the artifacts differ, but the rows differ before any weights are used")
    rows = f"{len(case.failing)} of {case.divergence.rows.num_rows} rows differ"
    return Explained(
        f"the artifacts' digest is {ours[:12]}… on the expected side and {theirs[:12]}… on the obtained "
        f"side; {rows}, from {case.stage or 'an unknown stage'} on"
    )


def source(case: Case) -> Finding:
    """The digests of the handler's code differ."""
    one, other = _fingerprints(case)
    ours, theirs = one.get("digest.source"), other.get("digest.source")
    if ours is None or theirs is None:
        return None
    if ours == theirs:
        return Refuted("the handler's code has the same digest on both sides")
    if case.stage in ("decode", "encode"):
        return Refuted(f"the handler's code differs, but {case.stage} is not its code")
    return Explained(
        f"the code's digest is {ours[:12]}… on the expected side and {theirs[:12]}… on the obtained side"
    )


def environment(case: Case) -> Finding:
    """Library versions, Python, or the processor differ."""
    found = {**_differing(case, "package."), **_differing(case, "python"), **_differing(case, "machine")}
    found |= {**_differing(case, "torch."), **_differing(case, "cpu"), **_differing(case, "os")}
    found |= _differing(case, "env.")
    if not found:
        one, other = _fingerprints(case)
        return Refuted("both sides have the same libraries and processor") if one and other else None
    shown = "; ".join(
        f"{name.removeprefix('package.')} {ours} and {theirs}" for name, (ours, theirs) in found.items()
    )
    return Explained(f"the two sides ran with {shown}")


def operation_version(case: Case) -> Finding:
    """An operation of `parity.vision` that both sides used has another version, or a plan is another."""
    found = _differing(case, OPERATION)
    plans = _differing(case, PLAN)
    if not found and not plans:
        one, other = _fingerprints(case)
        known = any(name.startswith(OPERATION) for name in one) and any(
            name.startswith(OPERATION) for name in other
        )
        return Refuted("the operations that both sides used have the same versions") if known else None
    told = [
        f"operation {name.removeprefix(OPERATION)} changed: version {ours} -> {theirs}"
        for name, (ours, theirs) in found.items()
    ]
    told += [
        f"plan {name.removeprefix(PLAN)} is another: {ours} -> {theirs}"
        for name, (ours, theirs) in plans.items()
    ]
    return Explained("; ".join(told))


def precision(case: Case) -> Finding:
    """The profiles' precision differs."""
    return _setting(case, ("profile.precision", "profile.tf32"), "the two sides compute with")


def device(case: Case) -> Finding:
    """The profiles' device differs."""
    return _setting(case, ("profile.device", "gpu.name"), "the two sides ran on")


def _setting(case: Case, names: tuple[str, ...], words: str) -> Finding:
    one, other = _fingerprints(case)
    found = {name: (one[name], other[name]) for name in names if name in one and name in other}
    differing = {name: both for name, both in found.items() if both[0] != both[1]}
    varied = {name: value for name, value in case.divergence.varied.items() if f"profile.{name}" in names}
    if differing:
        shown = "; ".join(
            f"{name.partition('.')[2]} {ours} and {theirs}" for name, (ours, theirs) in differing.items()
        )
        return Explained(f"{words} {shown}")
    if varied:
        return Explained(
            f"{words} another {', '.join(f'{name} ({value})' for name, value in varied.items())}"
        )
    return None


def thread_count(case: Case) -> Finding:
    """The law varied the threads; or the profiles' threads differ."""
    varied = _varied("thread-count")(case)
    if varied is not None:
        return varied
    differing = {**_differing(case, "profile.threads"), **_differing(case, "torch.threads")}
    if not differing or case.group != "path":
        return None
    shown = "; ".join(f"{name} {ours} and {theirs}" for name, (ours, theirs) in differing.items())
    return Explained(f"the two sides ran with {shown}")


def _suspects() -> Iterator[Suspect]:
    processes: Any = ("process", "path")
    one_variable = "whether it is the only thing of all that was varied that makes the difference"
    yield Suspect(
        "hash-seed",
        "the answer follows hash() of a text, or the order of a set, which are other ones in every process",
        one_variable,
        "hash with zlib.crc32 or hashlib; sort sets before use",
        _varied("hash-seed"),
        processes,
    )
    yield Suspect(
        "timezone-of-process",
        "times are read in the time zone of the process",
        f"{one_variable}; the shift that it makes",
        "name the zone: datetime.fromtimestamp(t, tz=UTC), never without tz",
        _varied("timezone-of-process"),
        processes,
    )
    yield Suspect(
        "locale",
        "texts, numbers or orders follow the locale of the process",
        one_variable,
        "format and parse by written rules, not by locale or the LANG and LC_ variables",
        _varied("locale"),
        processes,
    )
    yield Suspect(
        "working-directory",
        "something is read relative to the folder in which the process was started",
        one_variable,
        "open files with context.path(name), which looks in the handler's own folder",
        _varied("working-directory"),
        processes,
    )
    yield Suspect(
        "thread-count",
        "the answer follows the number of threads",
        f"{one_variable}; the profiles' threads",
        "fix threads in the profile; cut work by the rows, not by the threads",
        thread_count,
        ("process", "path"),
    )
    yield Suspect(
        "wall-clock",
        "the time at which a row is asked goes into the answer",
        f"{one_variable}; the clock stopped and the rows asked twice",
        "take the time as an input of the row, so that it is replayed with it",
        wall_clock,
        ("process", "company", "path"),
    )
    yield Suspect(
        "precision",
        "the two sides compute in different precision",
        "the profiles' precision and TF32 settings",
        "use one precision, or declare a tolerance for this pair of profiles",
        precision,
    )
    yield Suspect(
        "device",
        "the two sides ran on different devices",
        "the profiles' devices",
        "declare a tolerance for this pair of profiles; record a golden case per device",
        device,
    )
    yield Suspect(
        "weights",
        "the two sides have other weights or other artifacts",
        "the digests of all files beside the code",
        "deploy the artifacts that the golden case was recorded with, or record it anew",
        weights,
    )
    yield Suspect(
        "operation-version",
        "an operation of parity.vision means something else on the two sides, or a plan is another one",
        "the versions of the operations and the digests of the plans in the fingerprints",
        "install the release that the case was recorded with, or accept the values: `parity golden update`",
        operation_version,
    )
    yield Suspect(
        "environment",
        "the two sides ran with other library versions or on other processors",
        "the fingerprints, entry by entry",
        "pin the versions; `parity doctor` shows what this environment has",
        environment,
    )
    yield Suspect(
        "source",
        "the handler's code is not the same on both sides",
        "the digests of the code and schemas",
        "look at what changed between the two versions; when it is meant, update the golden case",
        source,
    )


SUSPECTS: Final = tuple(_suspects())
