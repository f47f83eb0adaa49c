"""Trying candidate profiles: first the proof, then the speed beside the profile that is to be replaced."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

import numpy as np

from parity import golden
from parity.batch import Batch
from parity.check import run_check
from parity.compare import Comparison
from parity.engine import Engine
from parity.errors import GoldenError, ParityError, RunnerError
from parity.handler import LoadedHandler
from parity.models import BACKENDS, why_off
from parity.optimize.findings import Optimization, Tried, Verdict
from parity.optimize.pacing import Pace, measure
from parity.profile import Profile
from parity.registry import load_handler
from parity.report import CheckReport

LAWS: Final = ("repeatable", "single-row", "order", "neighbours", "batch-size", "failing-rows")
"""What must hold beside the goldens in this process and in a fresh one: a row's answer is its own."""

_BATCH_ROWS: Final = 32
_NOT_SEARCHED: Final = ("compile",)
"""torch.compile compiles again for some shapes, while requests wait; it is tried when it is named."""

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Wanted:
    """What is looked for.

    Attributes:
        target: "latency" measures batches of one row, "throughput" those of the largest bucket, or 32 rows.
        goal: the least speed-up to accept; the lower end of its 95 % interval must reach it.
        p99_ms: the most milliseconds that the 99th percentile of a batch may take; None for any.
        backends: the model backends to try; those that run here when not given.
        precisions: the precisions to try; the profile's own when not given.
        buckets: single buckets to try beside the profile's own.
        seconds: how long a candidate's speed is measured at most.
    """

    target: Literal["latency", "throughput"] = "latency"
    goal: float = 1.1
    p99_ms: float | None = None
    backends: tuple[str, ...] | None = None
    precisions: tuple[str, ...] | None = None
    buckets: tuple[int, ...] = ()
    seconds: float = 8.0


def optimize(
    ref: str,
    wanted: Wanted,
    *,
    profile: str = "default",
    settings: Sequence[str] = (),
    app_dir: str | None = None,
    golden_dir: str | Path | None = None,
    progress: Progress = lambda _: None,
) -> Optimization:
    """Prove and measure candidates for a profile.

    A candidate's golden answers must be within the handler's tolerances and `LAWS` must hold before its speed
    is measured at all; then a process of its own must give the golden answers, too.

    Args:
        ref: the handler's reference.
        wanted: what is looked for.
        profile: the profile to replace.
        settings: `KEY=VALUE` texts that override it.
        app_dir: a folder to import `package.module` from.
        golden_dir: the folder of golden cases; found near the handler when not given.
        progress: called with a line before each longer step.

    Raises:
        GoldenError: there is no golden case to prove anything by, or the profile itself does not keep them.
        ConfigError: a profile or a setting is wrong.
    """
    loaded = load_handler(ref, app_dir=app_dir)
    base = loaded.profile(profile).with_settings(settings)
    check = functools.partial(run_check, ref, app_dir=app_dir, profile=profile, golden=golden_dir, runners=[])
    progress(f"proving profile {base.name} itself")
    report = check(settings=settings, laws=[])
    if report.verdict != "agrees":
        raise GoldenError(
            f"profile {base.name!r} itself does not keep the goldens ({report.verdict}); "
            "parity golden check tells more"
        )
    rows = _rows(loaded, golden_dir, base, wanted)
    searcher = _Searcher(loaded, base, tuple(settings), wanted, rows, check, golden_dir, progress)
    memory = searcher.footprint(tuple(settings))
    with Engine(loaded, base) as engine:
        engine.run(rows)
        tried = [searcher.tried(name, changes, engine) for name, changes in candidates(base, wanted)]
    return Optimization(
        loaded.name, loaded.version, base, wanted.target, rows.num_rows, wanted.goal, memory, tuple(tried)
    )


def candidates(base: Profile, wanted: Wanted) -> list[tuple[str, tuple[str, ...]]]:
    """The candidates, each a name and the `KEY=VALUE` texts by which it differs from the base profile."""
    kind = base.device.partition(":")[0]
    backends = wanted.backends
    if backends is None:
        found = ["eager", *(name for name in BACKENDS if name not in _NOT_SEARCHED)]
        gpu_only = ("cuda_graphs", "tensorrt")
        backends = tuple(name for name in found if kind != "cpu" or name not in gpu_only)
    precisions = wanted.precisions or (base.precision,)
    all_buckets = [None, *wanted.buckets]
    made: list[tuple[str, tuple[str, ...]]] = []
    for backend in backends:
        for precision in precisions:
            for bucket in all_buckets:
                changes: list[str] = []
                if backend != base.backend:
                    changes.append(f"backend={json.dumps(backend)}")
                if precision != base.precision:
                    changes.append(f"precision={json.dumps(precision)}")
                if bucket is not None:
                    changes.append(f"buckets=[{bucket}]")
                words = [backend, *([precision] if precision != base.precision else [])]
                words += [f"bucket {bucket}"] if bucket is not None else []
                if changes:
                    made.append((" ".join(words), tuple(changes)))
    return made


@dataclass(frozen=True)
class _Searcher:
    loaded: LoadedHandler
    base: Profile
    settings: tuple[str, ...]
    wanted: Wanted
    rows: Batch
    check: Callable[..., CheckReport]
    golden_dir: str | Path | None
    progress: Progress

    def tried(self, name: str, changes: tuple[str, ...], engine: Engine) -> Tried:
        """A candidate, proved and measured beside the base profile's engine."""
        profile = self.base.with_settings(changes)
        found = Tried(name, changes, profile, "off")
        reason = why_off(profile)
        if reason is not None:
            return replace(found, reason=reason)
        settings = (*self.settings, *changes)
        self.progress(f"proving {name}")
        try:
            for laws in ((), LAWS):  # no law is tried where the goldens tell already
                found = _proved(found, self.check(settings=settings, laws=laws))
                if found.verdict != "accepted":
                    return found
            memory = self.footprint(settings)
            self.progress(f"measuring {name}")
            with Engine(self.loaded, profile) as other:
                pace = measure(
                    lambda: engine.run(self.rows),
                    lambda: other.run(self.rows),
                    goal=self.wanted.goal,
                    seconds=self.wanted.seconds,
                )
        except ParityError as exc:
            return replace(found, verdict="failed", reason=str(exc).splitlines()[0])
        verdict, reason = judged(pace, self.wanted)
        return replace(found, verdict=verdict, reason=reason, pace=pace, memory_mb=memory)

    def footprint(self, settings: tuple[str, ...]) -> float:
        """The peak memory in MB of a process of its own that scores the goldens.

        Raises:
            RunnerError: it does not give the golden answers.
        """
        command = [
            sys.executable,
            "-m",
            "parity",
            "golden",
            "check",
            self.loaded.ref,
            "--profile",
            self.base.name,
        ]
        for text in settings:
            command += ["--set", text]
        if self.loaded.app_dir:
            command += ["--app-dir", self.loaded.app_dir]
        if self.golden_dir is not None:
            command += ["--golden", str(self.golden_dir)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert process.stdout is not None, "it was asked for"
        told = process.stdout.read().decode(errors="replace")
        process.stdout.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            last = (told.strip().splitlines() or ["it said nothing"])[-1]
            raise RunnerError(f"a process of its own ends with {process.returncode}: {last}")
        return round(usage.ru_maxrss / 1024, 1)


def _rows(loaded: LoadedHandler, folder: str | Path | None, base: Profile, wanted: Wanted) -> Batch:
    """The batch to measure: golden rows, again and again until there are enough."""
    cases = golden.select_cases(loaded, folder, ())
    rows = Batch.concat([case.decoded(loaded).batch for case in cases])
    count = 1 if wanted.target == "latency" else base.max_rows or _BATCH_ROWS
    return rows.take(np.arange(count, dtype=np.int64) % rows.num_rows)


def _proved(found: Tried, report: CheckReport) -> Tried:
    """The candidate with what its check found; accepted as far as answers go, or why not."""
    compared = [entry.comparison for entry in report.entries if entry.comparison is not None]
    found = replace(
        found,
        worst_ulp=report.worst_ulp,
        flips=sum(_flips(item) for item in compared),
        rows=sum(item.rows for item in compared),
        proof=report.to_dict(),
    )
    if report.verdict == "agrees":
        return replace(found, verdict="accepted")
    verdict: Verdict = "diverges" if report.verdict in ("diverges", "nondeterministic") else "failed"
    return replace(found, verdict=verdict, reason=_why(report))


def _flips(comparison: Comparison) -> int:
    """Rows of which an answer that is no float differs."""
    rows: set[int] = set()
    for column in comparison.columns:
        if not column.float_dtypes and "float" not in column.dtype:
            rows.update(column.differing_rows.tolist())
    return len(rows)


def _why(report: CheckReport) -> str:
    """What differs most plainly: columns and rows of the goldens, else the broken laws."""
    told: list[str] = []
    for entry in report.entries:
        if entry.comparison is None:
            told.append(f"case {entry.case}: {entry.error}")
        elif entry.verdict == "divergent":
            for column in entry.comparison.divergent():
                rows = ", ".join(map(str, column.failing_rows[:5].tolist()))
                more = ", ..." if len(column.failing_rows) > 5 else ""
                worst = next((row for row in column.worst if row.fails), None)
                values = f", worst {worst.obtained!r} for {worst.expected!r}" if worst is not None else ""
                told.append(
                    f"case {entry.case}: {column.name} differs in {column.failing} of {column.rows} rows "
                    f"({rows}{more}){values}"
                )
    told += [f"law {law.law} {law.verdict}: {law.detail}" for law in report.laws if not law]
    return "; ".join(told) or report.verdict


def judged(pace: Pace, wanted: Wanted) -> tuple[Verdict, str]:
    """Whether a proved candidate is fast enough, and why not."""
    if wanted.p99_ms is not None and pace.p99_ms > wanted.p99_ms:
        return "too slow", f"the 99th percentile is {pace.p99_ms:.3g} ms, above {wanted.p99_ms:.3g} ms"
    if pace.low >= wanted.goal:
        return "accepted", ""
    interval = f"{pace.ratio:.2f} times as fast (95 %: {pace.low:.2f} to {pace.high:.2f})"
    if pace.high < wanted.goal:
        return "slower", f"{interval}, and {wanted.goal:g} is wanted"
    return "unclear", f"{interval}: not shown to be {wanted.goal:g}; give it longer with --seconds"
