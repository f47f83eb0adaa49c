"""The probe: try buckets, find out which give rows one another's bits, and certify them."""

from __future__ import annotations

import datetime
import hashlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from parity.batch import Batch
from parity.engine import Engine
from parity.errors import DivergenceError, NondeterministicError, NothingComparedError, ParityError
from parity.exact.certificate import Certificate, table_digest
from parity.exact.conditions import conditions_of
from parity.exact.finding import DEFAULT_BUCKETS, BucketFinding
from parity.exact.neighbours import hostile_neighbours, pool_of
from parity.exact.places import certificate_place
from parity.exact.sheet import Sheet, run_sheet
from parity.exact.trial import Trial, reference_of, try_bucket
from parity.handler import LoadedHandler
from parity.profile import Profile

Elsewhere = Callable[[LoadedHandler, Profile, Batch, Sequence[int], Sequence[str]], Mapping[int, list[str]]]
"""Asks a second process; see `parity.exact.second_process.ask`."""

Progress = Callable[[str], None]

_BATCH_ROWS: Final = 16
_BATCH_BYTES: Final = 4 * 1024 * 1024
_USUAL: Final = 16
"""A bucket that many libraries handle alike; classes of one size are told apart by it."""


@dataclass(frozen=True)
class Probe:
    """What a probe found.

    Attributes:
        findings: each bucket that was tried, ascending.
        certificate: what it proves; None when no bucket holds.
        source: where the rows came from, in words.
        profile: what was probed, with the buckets that were asked for.
    """

    findings: tuple[BucketFinding, ...]
    certificate: Certificate | None
    source: str
    profile: Profile

    @property
    def is_nondeterministic(self) -> bool:
        """Whether the handler differed from itself under identical conditions, in one process or in two."""
        return any(finding.verdict in ("nondeterministic", "process") for finding in self.findings)

    @property
    def promised(self) -> tuple[int, ...]:
        """The buckets that exact mode would run with under this profile; empty when it would be refused."""
        if self.certificate is None:
            return ()
        wanted = self.profile.buckets or self.certificate.chosen
        return wanted if self.certificate.class_of(wanted) is not None else ()

    @property
    def exit_code(self) -> int:
        """0 when the profile may be exact; 7 for a handler that differs from itself; else 1."""
        if self.promised:
            return 0
        if self.is_nondeterministic:
            return NondeterministicError.exit_code
        return DivergenceError.exit_code

    def raise_for_refusal(self) -> None:
        """Raise what says why the profile may not be exact, if it may not.

        Raises:
            NondeterministicError: the handler differs from itself under identical conditions.
            DivergenceError: no bucket holds, or not all of the profile's in one class.
        """
        if self.promised:
            return
        error: type[ParityError] = NondeterministicError if self.is_nondeterministic else DivergenceError
        raise error("; ".join(finding.sentence() for finding in self.findings if not finding.holds))


def probe(
    loaded: LoadedHandler,
    profile: Profile | None = None,
    rows: Batch | None = None,
    *,
    source: str = "rows",
    buckets: Sequence[int] = DEFAULT_BUCKETS,
    elsewhere: Elsewhere | None = None,
    progress: Progress | None = None,
) -> Probe:
    """Find the buckets that give rows the same bits in any company. Writes nothing.

    Args:
        loaded: the handler.
        profile: what to run it with; the handler's default profile when not given. Its own buckets are tried
            beside `buckets`.
        rows: real rows, the more typical the better; fewer than 64 are filled up with rows made from the
            schema, which prove less.
        source: where the rows came from, for the certificate.
        buckets: the buckets to try.
        elsewhere: asks a second process; None leaves that test out.
        progress: called with a line before each longer step.

    Raises:
        NothingComparedError: no row has an answer.
        StageError: the handler cannot be loaded.
    """
    say = progress or _silent
    wanted = profile if profile is not None else loaded.profile()
    candidates = tuple(sorted({*buckets, *wanted.buckets}))
    pool, made = pool_of(loaded.inputs, rows)
    source = _source(source, pool.num_rows, made)
    hostile = list(hostile_neighbours(pool))
    plain = replace(wanted, exact=False, buckets=candidates)
    with Engine(loaded, plain) as engine:
        trials: list[Trial] = []
        for bucket in candidates:
            say(f"bucket {bucket}: {pool.num_rows} rows")
            trials.append(try_bucket(engine, pool, hostile, bucket))
            if trials[-1].finding.verdict == "nondeterministic":
                break
        _require_answers(trials, loaded)
        judged = _judged(trials)
        processes = 1
        if elsewhere is not None and _holding(trials):
            say("a second process")
            trials = _confirmed(trials, elsewhere, loaded, plain, pool, judged)
            processes = 2
        if any(trial.finding.verdict in ("nondeterministic", "process") for trial in trials):
            return Probe(tuple(trial.finding for trial in trials), None, source, wanted)
        classes = _classes(_holding(trials))
        certificate = None
        if classes:
            say("other numbers of threads")
            certificate = _certify(engine, wanted, pool, trials, classes, judged, source, processes)
    return Probe(tuple(trial.finding for trial in trials), certificate, source, wanted)


def _certify(
    engine: Engine,
    wanted: Profile,
    pool: Batch,
    trials: Sequence[Trial],
    classes: Sequence[Sequence[Trial]],
    judged: tuple[str, ...],
    source: str,
    processes: int,
) -> Certificate:
    loaded = engine.loaded
    batch = _small(pool)
    answers: list[tuple[str, ...]] = []
    digests: list[str] = []
    for members in classes:
        sheet = run_sheet(engine, batch, members[0].finding.bucket)
        answers.append(tuple(sheet.digest(row, judged) for row in range(sheet.num_rows)))
        reference = members[0].reference
        rows = [reference.digest(row, judged) for row in range(reference.num_rows)]
        digests.append(hashlib.sha256("".join(rows).encode()).hexdigest())
    numbers = tuple(tuple(trial.finding.bucket for trial in members) for members in classes)
    return Certificate(
        conditions=conditions_of(loaded, wanted, certificate_place(loaded, wanted)),
        created=datetime.datetime.now(datetime.UTC).date().isoformat(),
        profile=wanted.name,
        version=loaded.version,
        findings=tuple(trial.finding for trial in trials),
        classes=numbers,
        chosen=numbers[0],
        judged=judged,
        source=source,
        rows=pool.num_rows,
        processes=processes,
        inputs_sha256=table_digest(pool.to_table()),
        outputs_sha256=tuple(digests),
        batch=batch.to_table(),
        answers=tuple(answers),
        threads=_threads(engine, pool, _holding(trials)),
    )


def _holding(trials: Sequence[Trial]) -> list[Trial]:
    return [trial for trial in trials if trial.finding.holds]


def _judged(trials: Sequence[Trial]) -> tuple[str, ...]:
    """The answers, and the places of inference whose shape never changed, so that digests can be compared."""
    shapes: dict[str, set[tuple[int, ...]]] = {}
    for trial in trials:
        for path, seen in trial.shapes.items():
            shapes.setdefault(path, set()).update(seen)
    return tuple(
        sorted(
            path
            for path, seen in shapes.items()
            if path.startswith("postprocess") or (path.startswith("inference") and len(seen) <= 1)
        )
    )


def _confirmed(
    trials: Sequence[Trial],
    elsewhere: Elsewhere,
    loaded: LoadedHandler,
    plain: Profile,
    pool: Batch,
    judged: Sequence[str],
) -> list[Trial]:
    """The trials, those marked whose rows got other bits in a second process."""
    buckets = [trial.finding.bucket for trial in _holding(trials)]
    there = elsewhere(loaded, plain, pool, buckets, judged)
    found: list[Trial] = []
    for trial in trials:
        digests = there.get(trial.finding.bucket)
        if digests is not None:
            here = [trial.reference.digest(row, judged) for row in range(trial.reference.num_rows)]
            wrong = sum(one != other for one, other in zip(here, digests, strict=True))
            finding = trial.finding
            finding = replace(finding, comparisons=finding.comparisons + len(here))
            if wrong:
                finding = replace(
                    finding, verdict="process", rows_differing=wrong, tests={"second process": wrong}
                )
            trial = replace(trial, finding=finding)
        found.append(trial)
    return found


def _classes(holding: Sequence[Trial]) -> list[list[Trial]]:
    """The buckets that hold, those together whose rows have one another's bits, the class to prefer first.

    The largest class is preferred: an engine pads a batch to its smallest bucket that fits, so that every
    further bucket saves work. Among classes of one size, the one with the smallest bucket of at least 16 (for
    which libraries have settled on their kernels), else the one with the largest bucket. Time decides
    nothing: it would choose another class on another day.
    """
    classes: list[list[Trial]] = []
    for trial in holding:
        home = next(
            (members for members in classes if _same_bits(members[0].reference, trial.reference)), None
        )
        if home is None:
            classes.append([trial])
        else:
            home.append(trial)

    def preference(members: Sequence[Trial]) -> tuple[int, float, int]:
        sizes = [trial.finding.bucket for trial in members]
        usual = min((size for size in sizes if size >= _USUAL), default=float("inf"))
        return (-len(sizes), usual, -max(sizes))

    return sorted(classes, key=preference)


def _same_bits(one: Sheet, other: Sheet) -> bool:
    return all(one.first_difference(row, other, row) is None for row in range(one.num_rows))


def _threads(engine: Engine, pool: Batch, holding: Sequence[Trial]) -> dict[int, tuple[int, ...]]:
    """For other numbers of threads the buckets whose bits they leave alone; empty where torch is not used."""
    if "torch" not in sys.modules:
        return {}
    others = {1, 2, os.cpu_count() or 1} - {engine.profile.threads}
    found: dict[int, tuple[int, ...]] = {}
    for threads in sorted(others):
        same = [
            trial.finding.bucket
            for trial in holding
            if _same_bits(trial.reference, reference_of(engine, pool, trial.finding.bucket, threads=threads))
        ]
        found[threads] = tuple(same)
    return found


def _small(pool: Batch) -> Batch:
    """A few rows of the pool, evenly chosen, that every engine can afford to run again."""
    bytes_a_row = max(1, pool.to_table().nbytes // pool.num_rows)
    count = max(1, min(_BATCH_ROWS, pool.num_rows, _BATCH_BYTES // bytes_a_row))
    return pool.take(np.linspace(0, pool.num_rows - 1, count).round().astype(np.int64))


def _require_answers(trials: Sequence[Trial], loaded: LoadedHandler) -> None:
    if all(trial.finding.verdict == "failed" for trial in trials):
        raise NothingComparedError(
            f"handler {loaded.name}: no row has an answer, so nothing was proven: "
            f"{trials[0].finding.reason}; give rows that the handler answers with --rows FILE, or record a "
            "golden case"
        )


def _source(source: str, rows: int, made: int) -> str:
    if made == rows:
        return f"{rows} rows made from the schema"
    return f"{rows - made} {source}" + (f", {made} rows made from the schema" if made else "")


def _silent(line: str) -> None:
    del line
