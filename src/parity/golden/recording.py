"""Record golden cases and check them by running the handler in this process. In CI nothing here writes."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from parity import exact
from parity.archive import require_no_archive
from parity.codec import arrow
from parity.codec.decoded import Decoded
from parity.compare import Comparison, Tolerances, compare
from parity.engine import Engine
from parity.errors import ConfigError, GoldenError, RowsError
from parity.golden.cases import GoldenCase, read_case, write_case
from parity.golden.fit import canonical, schema_texts
from parity.golden.meta import CaseMeta, profile_settings, today
from parity.golden.places import case_folder, find_cases, golden_folder, require_cases
from parity.handler import LoadedHandler
from parity.profile import Profile
from parity.result import Result, rows_error
from parity.stages import Traces, traces
from parity.work import merge

INVALID_REMEDY = (
    "--invalid skip leaves such rows out, --invalid keep records them as rows that are expected to fail"
)


@dataclass(frozen=True)
class GoldenCheck:
    """A golden case against what the engine answers now.

    Attributes:
        case: the golden case.
        comparison: its expected answers against the obtained ones.
        notes: what changed in the handler since the recording.
        fingerprint: the environment now, as `environment` gives it.
        seconds: how long the answers took.
    """

    case: GoldenCase
    comparison: Comparison
    notes: tuple[str, ...] = ()
    fingerprint: Mapping[str, str] = field(default_factory=dict[str, str])
    seconds: float = 0.0


def in_ci() -> bool:
    """Whether this is a CI run, by the variable CI: some services put their name in it."""
    return os.environ.get("CI", "").strip().lower() not in ("", "0", "false", "no", "off")


def record(
    loaded: LoadedHandler,
    rows: Decoded | pa.Table,
    case: str,
    profile: Profile | None = None,
    *,
    reason: str,
    golden: str | Path | None = None,
    stages: bool = False,
    keep_invalid: bool = False,
    sampled: str = "",
) -> GoldenCase:
    """Run the handler on rows and keep its answers as a new golden case.

    Args:
        loaded: the handler.
        rows: the rows, decoded or as an Arrow table.
        case: the new case's name.
        profile: the handler's default profile when not given.
        reason: why this case exists, for those who review it.
        golden: the folder for golden cases; found as `golden_folder` says when not given.
        stages: keep what the stages gave for each row, in stages.arrow.
        keep_invalid: keep the rows of a table that do not fit the input schema, as rows that are expected to
            fail. Without it each row must fit.
        sampled: how the rows were drawn from a dataset, where they were.

    Raises:
        GoldenError: the case exists, or this is a CI run.
        RowsError: a row does not fit the input schema, or has no form in which a case could hold it.
        ConfigError: there are no rows, the name or the reason will not do, or the stage values are too large.
    """
    check_recordable(loaded, case, reason, golden)
    inputs, decoded = _rows(loaded, rows, keep_invalid)
    if inputs.num_rows == 0:
        raise ConfigError("no rows to record; a golden case without rows would prove nothing")
    path = golden_folder(loaded, golden) / case
    with Engine(loaded, profile) as engine:
        result, kept = answers(engine, decoded, stages=stages)
        meta = meta_of(engine, result, reason, sampled)
    write_case(path, inputs, result.to_table(), meta, stages=kept)
    return read_case(path, loaded)


def check_recordable(loaded: LoadedHandler, case: str, reason: str, golden: str | Path | None = None) -> None:
    """Raise what `record` would raise for this name and reason, before any row is read."""
    refuse_in_ci("record")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", case):
        raise ConfigError(
            f"case name {case!r} will not do for a folder; use letters, digits, '-', '_' and '.', such as "
            "'first-50'"
        )
    check_reason(reason)
    path = golden_folder(loaded, golden) / case
    require_no_archive(path)
    if path.exists():
        raise GoldenError(
            f"golden case {path} exists; `parity golden update` changes it and shows what moved"
        )


def check(
    loaded: LoadedHandler,
    profile: Profile | None = None,
    *,
    golden: str | Path | None = None,
    cases: Sequence[str] = (),
) -> list[GoldenCheck]:
    """Every golden case, or the named ones, against what the engine answers now.

    Raises:
        GoldenError: there is no case, one is stale, damaged or orphaned, or they are of mixed profiles.
    """
    found = select_cases(loaded, golden, cases)
    checks: list[GoldenCheck] = []
    with Engine(loaded, profile) as engine:
        for case in found:
            started = time.perf_counter()
            result = engine.score(case.decoded(loaded))
            seconds = time.perf_counter() - started
            tolerances = case_tolerances(case, engine.profile)
            comparison = compare(case.expected, result.to_table(), tolerances, inputs=case.inputs)
            notes, fingerprint = tuple(case.notes(loaded)), environment(engine)
            checks.append(GoldenCheck(case, comparison, notes, fingerprint, seconds))
    return checks


def select_cases(
    loaded: LoadedHandler, golden: str | Path | None = None, cases: Sequence[str] = ()
) -> list[GoldenCase]:
    """All golden cases, or the named ones; at least one.

    Raises:
        GoldenError: there is none (of that name), one is stale, damaged or orphaned, or some were recorded
            under a profile of another device or precision than others.
    """
    if cases:
        found = [read_case(case_folder(loaded, name, golden), loaded) for name in dict.fromkeys(cases)]
    else:
        found = find_cases(loaded, golden)
        require_cases(found, loaded, golden)
    check_profiles(found)
    return found


def check_profiles(cases: Sequence[GoldenCase]) -> None:
    """Raise GoldenError when cases that are to be checked together come from other devices or precisions.

    One check has one profile: against it, each case would be judged by other rules, and a verdict over all of
    them would mean nothing.
    """
    sides: dict[str, list[str]] = {}
    for case in cases:
        sides.setdefault(pair_side(case.meta.recorded_profile), []).append(case.name)
    if len(sides) > 1:
        told = "; ".join(f"{side}: {', '.join(names)}" for side, names in sides.items())
        raise GoldenError(
            f"golden cases of handler {cases[0].handler} are of mixed profiles ({told}); check those of one "
            "profile at a time with --case, or keep each profile's cases in a folder of its own and name it "
            "with --golden"
        )


def case_tolerances(case: GoldenCase, profile: Profile) -> Tolerances:
    """The rules that judge a case: those it was recorded with, for its profile against `profile`.

    Where both are exact, of one machine and one class of buckets, it is the bits that are compared.
    """
    recorded = case.meta.recorded_profile
    rules = Tolerances.from_mapping(case.meta.tolerance).for_pair(pair_side(recorded), pair_side(profile))
    return exact.tolerances(rules, recorded, case.meta.fingerprint, profile)


def environment(engine: Engine) -> dict[str, str]:
    """The engine's fingerprint without what case.toml says elsewhere: handler, digests, profile."""
    said = ("profile.", "digest.", "handler")
    return {key: value for key, value in engine.fingerprint().items() if not key.startswith(said)}


def answers(engine: Engine, decoded: Decoded, *, stages: bool) -> tuple[Result, Traces | None]:
    """The answers of rows, those that do not fit included, and what the stages gave for the others."""
    fitting = engine.run(decoded.batch, stages=stages)
    return merge(decoded, fitting), traces(decoded.batch, fitting) if stages else None


def meta_of(engine: Engine, result: Result, reason: str, sampled: str = "") -> CaseMeta:
    """What case.toml says of a recording that was made now."""
    loaded = engine.loaded
    return CaseMeta(
        handler=loaded.name,
        version=loaded.version,
        created=today(),
        reason=reason,
        rows=result.num_rows,
        errors=len(result.errors),
        sampled=sampled,
        buckets=tuple(int(size) for size in np.unique(result.buckets)),
        digests=dict(loaded.digests),
        profile=profile_settings(engine.profile),
        fingerprint=environment(engine),
        inputs=schema_texts(loaded.inputs),
        outputs=schema_texts(loaded.outputs),
        tolerance=dict(loaded.manifest.tolerance),
    )


def refuse_in_ci(action: str) -> None:
    """Raise GoldenError in a CI run, which never writes a golden."""
    if in_ci():
        raise GoldenError(
            f"`parity golden {action}` writes a golden, and in CI (CI={os.environ['CI']}) nothing does; "
            f"{action} it where somebody looks at it, and commit it"
        )


def check_reason(reason: str) -> None:
    """Raise ConfigError when there is no reason."""
    if not reason.strip():
        raise ConfigError("a golden case needs a reason, for those who review it; give --reason")


def pair_side(profile: Profile) -> str:
    """A profile as `Tolerances.for_pair` takes it."""
    return f"{profile.device.partition(':')[0]}:{profile.precision}"


def misfits(decoded: Decoded, loaded: LoadedHandler) -> RowsError:
    """The error for rows that do not fit and are not to be kept."""
    found = rows_error(decoded.errors, decoded.num_rows, loaded.name)
    return RowsError(f"{found}\n  {INVALID_REMEDY}", decoded.errors)


def _rows(loaded: LoadedHandler, rows: Decoded | pa.Table, keep_invalid: bool) -> tuple[pa.Table, Decoded]:
    decoded = rows if isinstance(rows, Decoded) else arrow.decode_table(loaded.inputs, rows)
    if not decoded.errors:
        return decoded.batch.to_table(), decoded
    if not keep_invalid:
        raise misfits(decoded, loaded)
    if isinstance(rows, Decoded):
        raise RowsError(
            f"{rows_error(decoded.errors, decoded.num_rows, loaded.name)}\n  rows that do not fit can be "
            "kept out of Parquet only, where their values have types",
            decoded.errors,
        )
    kept = canonical(loaded.inputs, rows)
    if kept.lost:
        lost = rows_error(kept.lost, decoded.num_rows, loaded.name)
        raise RowsError(
            f"{lost}\n  these have no form in the schema's types, so that no case can hold them; --invalid "
            "skip leaves them out",
            kept.lost,
        )
    return kept.rows, arrow.decode_table(loaded.inputs, kept.rows)
