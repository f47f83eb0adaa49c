"""Record, check and update golden cases by running the handler. In CI nothing here writes."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa

from parity.codec import arrow
from parity.codec.decoded import Decoded
from parity.compare import Comparison, Tolerances, compare
from parity.engine import Engine
from parity.errors import ConfigError, GoldenError
from parity.golden.cases import STAGES, GoldenCase, read_case, read_inputs, write_case
from parity.golden.meta import CaseMeta, profile_settings, today
from parity.golden.places import case_folder, case_folders, find_cases, golden_folder, require_cases
from parity.handler import LoadedHandler
from parity.padding import is_tensor
from parity.profile import Profile
from parity.result import Result, rows_error


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


@dataclass(frozen=True)
class Proposal:
    """New answers for a case, not yet accepted.

    Attributes:
        name: the case's name.
        path: the case's folder.
        inputs: the rows.
        obtained: the answers now.
        meta: what case.toml would say, but for the reason.
        comparison: the old answers against the new; None when the old ones cannot be read.
        why_not_compared: why there is no comparison.
        notes: what changed in the handler since the recording.
        stages: what the stages returned, for a case that keeps it; else None.
    """

    name: str
    path: Path
    inputs: pa.Table
    obtained: pa.Table
    meta: CaseMeta
    comparison: Comparison | None
    why_not_compared: str = ""
    notes: tuple[str, ...] = ()
    stages: Mapping[str, Any] | None = None

    @property
    def moved(self) -> bool:
        """Whether any bit of an answer, or the schema, changed."""
        return self.comparison is None or self.comparison.verdict != "identical"

    @property
    def changes(self) -> bool:
        """Whether accepting it would change anything: an answer, or what case.toml says of the handler."""
        return self.moved or bool(self.notes)


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
) -> GoldenCase:
    """Run the handler on rows and keep its answers as a new golden case.

    Args:
        loaded: the handler.
        rows: the rows, decoded or as an Arrow table; each must fit the input schema.
        case: the new case's name.
        profile: the handler's default profile when not given.
        reason: why this case exists, for those who review it.
        golden: the folder for golden cases; found as `golden_folder` says when not given.
        stages: keep what the stages returned, as arrays, in stages.npz.

    Raises:
        GoldenError: the case exists, or this is a CI run.
        RowsError: a row does not fit the input schema.
        ConfigError: there are no rows, or the name or the reason will not do.
    """
    _refuse_in_ci("record")
    _check_name(case)
    _check_reason(reason)
    decoded = rows if isinstance(rows, Decoded) else arrow.decode_table(loaded.inputs, rows)
    if decoded.errors:
        raise rows_error(decoded.errors, decoded.num_rows, loaded.name)
    if decoded.num_rows == 0:
        raise ConfigError("no rows to record; a golden case without rows would prove nothing")
    path = golden_folder(loaded, golden) / case
    if path.exists():
        raise GoldenError(
            f"golden case {path} exists; `parity golden update` changes it and shows what moved"
        )
    inputs = decoded.batch.to_table()
    with Engine(loaded, profile) as engine:
        result = engine.run(decoded.batch, stages=stages)
        meta = _meta(engine, result, reason)
    kept = _stage_arrays(result) if stages else None
    write_case(path, inputs, result.to_table(), meta, stages=kept)
    return read_case(path, loaded)


def check(
    loaded: LoadedHandler,
    profile: Profile | None = None,
    *,
    golden: str | Path | None = None,
    cases: Sequence[str] = (),
) -> list[GoldenCheck]:
    """Every golden case, or the named ones, against what the engine answers now.

    Raises:
        GoldenError: there is no case, or one is stale, damaged or orphaned.
    """
    found = select_cases(loaded, golden, cases)
    checks: list[GoldenCheck] = []
    with Engine(loaded, profile) as engine:
        for case in found:
            started = time.perf_counter()
            result = engine.run(arrow.decode_table(loaded.inputs, case.inputs).batch)
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
        GoldenError: there is none (of that name), or one is stale, damaged or orphaned.
    """
    if cases:
        return [read_case(case_folder(loaded, name, golden), loaded) for name in cases]
    found = find_cases(loaded, golden)
    require_cases(found, loaded, golden)
    return found


def case_tolerances(case: GoldenCase, profile: Profile) -> Tolerances:
    """The rules that judge a case: those it was recorded with, for its profile against `profile`."""
    recorded = case.meta.recorded_profile
    rules = Tolerances.from_mapping(case.meta.tolerance)
    return rules.for_pair(_pair_side(recorded), _pair_side(profile))


def propose(
    loaded: LoadedHandler,
    profile: Profile | None = None,
    *,
    golden: str | Path | None = None,
    cases: Sequence[str] = (),
) -> list[Proposal]:
    """What `accept` would make of every golden case, or of the named ones; writes nothing.

    The rows stay; the answers, digests, profile, fingerprint and tolerance are the current ones. A case whose
    answers no longer fit the output schema is proposed without a comparison.

    Raises:
        GoldenError: there is no case, its rows cannot be used any more, or this is a CI run.
    """
    _refuse_in_ci("update")
    if cases:
        folders = [case_folder(loaded, name, golden) for name in cases]
    else:
        folders = case_folders(golden_folder(loaded, golden))
    if not folders:
        require_cases([], loaded, golden)
    proposals: list[Proposal] = []
    with Engine(loaded, profile) as engine:
        proposals.extend(_propose_one(engine, folder) for folder in folders)
    return proposals


def accept(proposal: Proposal, *, reason: str) -> None:
    """Write the proposed answers over the old ones.

    Raises:
        GoldenError: this is a CI run.
        ConfigError: there is no reason.
    """
    _refuse_in_ci("update")
    _check_reason(reason)
    meta = replace(proposal.meta, reason=reason)
    write_case(
        proposal.path,
        proposal.inputs,
        proposal.obtained,
        meta,
        stages=proposal.stages,
        replace_existing=True,
    )


def environment(engine: Engine) -> dict[str, str]:
    """The engine's fingerprint without what case.toml says elsewhere: handler, digests, profile."""
    said = ("profile.", "digest.", "handler")
    return {key: value for key, value in engine.fingerprint().items() if not key.startswith(said)}


def _propose_one(engine: Engine, folder: Path) -> Proposal:
    loaded = engine.loaded
    case, why = _read_for_update(folder, loaded)
    keeps_stages = (folder / STAGES).is_file()
    result = engine.run(arrow.decode_table(loaded.inputs, case.inputs).batch, stages=keeps_stages)
    obtained = result.to_table()
    stages = _stage_arrays(result) if keeps_stages else None
    comparison = None
    if not why:
        comparison = compare(
            case.expected, obtained, case_tolerances(case, engine.profile), inputs=case.inputs
        )
    meta = _meta(engine, result, case.meta.reason)
    notes = tuple(case.notes(loaded))
    return Proposal(folder.name, folder, case.inputs, obtained, meta, comparison, why, notes, stages)


def _read_for_update(folder: Path, loaded: LoadedHandler) -> tuple[GoldenCase, str]:
    try:
        return read_case(folder, loaded), ""
    except GoldenError as exc:
        meta, inputs = read_inputs(folder, loaded)
        return GoldenCase(meta.handler, folder.name, folder, inputs, pa.table({}), meta), str(exc)


def _meta(engine: Engine, result: Result, reason: str) -> CaseMeta:
    loaded = engine.loaded
    return CaseMeta(
        handler=loaded.name,
        version=loaded.version,
        created=today(),
        reason=reason,
        rows=result.num_rows,
        errors=len(result.errors),
        buckets=tuple(int(size) for size in np.unique(result.buckets)),
        digests=dict(loaded.digests),
        profile=profile_settings(engine.profile),
        fingerprint=environment(engine),
        tolerance=dict(loaded.manifest.tolerance),
    )


def _pair_side(profile: Profile) -> str:
    return f"{profile.device.partition(':')[0]}:{profile.precision}"


def _refuse_in_ci(action: str) -> None:
    if in_ci():
        raise GoldenError(
            f"`parity golden {action}` writes a golden, and in CI (CI={os.environ['CI']}) nothing does; "
            f"{action} it "
            "where somebody looks at it, and commit it"
        )


def _check_name(case: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", case):
        raise ConfigError(
            f"case name {case!r} will not do for a folder; use letters, digits, '-', '_' and '.', such as "
            "'first-50'"
        )


def _check_reason(reason: str) -> None:
    if not reason.strip():
        raise ConfigError("a golden case needs a reason, for those who review it; give --reason")


# Stage values as arrays with names such as inference.0.logits: stage, part, path in the tree that it
# returned.


def _stage_arrays(result: Result) -> dict[str, np.ndarray[Any, Any]]:
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    for part, values in enumerate(result.stages):
        arrays[f"rows.{part}"] = values.rows
        for stage in ("preprocess", "inference"):
            arrays.update(_leaves(getattr(values, stage), f"{stage}.{part}"))
    return arrays


def _leaves(value: Any, path: str) -> dict[str, np.ndarray[Any, Any]]:
    if is_tensor(value):
        tensor = value.detach().cpu()
        value = (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()
    if isinstance(value, np.ndarray):
        return {} if value.dtype.hasobject else {path: value}
    if isinstance(value, Mapping):
        items = list(cast("Mapping[str, Any]", value).items())
    elif isinstance(value, tuple):
        items = [(str(position), item) for position, item in enumerate(cast("tuple[Any, ...]", value))]
    elif is_dataclass(value) and not isinstance(value, type):
        items = [(option.name, getattr(value, option.name)) for option in fields(value)]
    else:
        return {}
    found: dict[str, np.ndarray[Any, Any]] = {}
    for key, item in items:
        found.update(_leaves(item, f"{path}.{key}"))
    return found
