"""New answers for golden cases: shown first, with what moved and by how much, and written when accepted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from parity.archive import require_no_archive
from parity.codec import arrow
from parity.compare import Comparison, compare
from parity.engine import Engine
from parity.errors import GoldenError
from parity.golden.cases import GoldenCase, read_case, read_inputs, write_case
from parity.golden.faults import DamagedCaseError, StaleCaseError
from parity.golden.meta import CaseMeta
from parity.golden.places import case_folder, case_folders, golden_folder, require_cases
from parity.golden.recording import answers, case_tolerances, check_reason, meta_of, refuse_in_ci
from parity.handler import LoadedHandler
from parity.profile import Profile
from parity.stages import STAGES as STAGE_NAMES
from parity.stages import Traces, Value


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
        stages: what the stages gave, for a case that keeps it; else None.
        moved_stage: for such a case the first stage whose values moved, in words; empty when none did.
    """

    name: str
    path: Path
    inputs: pa.Table
    obtained: pa.Table
    meta: CaseMeta
    comparison: Comparison | None
    why_not_compared: str = ""
    notes: tuple[str, ...] = ()
    stages: Traces | None = None
    moved_stage: str = ""

    @property
    def moved(self) -> bool:
        """Whether any bit of an answer, or the schema, changed."""
        return self.comparison is None or self.comparison.verdict != "identical"

    @property
    def changes(self) -> bool:
        """Whether accepting it would change anything: an answer, or what case.toml says of the handler."""
        return self.moved or bool(self.notes) or bool(self.moved_stage)


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
    refuse_in_ci("update")
    if cases:
        folders = [case_folder(loaded, name, golden) for name in dict.fromkeys(cases)]
    else:
        folders = case_folders(golden_folder(loaded, golden))
    if not folders:
        require_cases([], loaded, golden)
    with Engine(loaded, profile) as engine:
        return [_propose_one(engine, folder) for folder in folders]


def accept(proposal: Proposal, *, reason: str) -> None:
    """Write the proposed answers over the old ones.

    Raises:
        GoldenError: this is a CI run.
        ConfigError: there is no reason.
    """
    refuse_in_ci("update")
    check_reason(reason)
    require_no_archive(proposal.path)
    write_case(
        proposal.path,
        proposal.inputs,
        proposal.obtained,
        replace(proposal.meta, reason=reason),
        stages=proposal.stages,
        replace_existing=True,
    )


def moved_stage(old: Traces, new: Traces) -> str:
    """The first stage whose values are not the same bits for the same rows, in words; empty when none is."""
    for stage in STAGE_NAMES:
        before, after = old.stage(stage), new.stage(stage)
        if list(before) != list(after):
            return f"{stage} returns {_places(list(after))} where it returned {_places(list(before))}"
        for place, values in before.items():
            pairs = list(zip(values, after[place], strict=True))
            rows = [row for row, (one, other) in enumerate(pairs) if not _same(one, other)]
            if rows:
                far = _largest([pairs[row] for row in rows])
                return f"{stage} moved first, at {place}, in {len(rows)} of {len(pairs)} rows{far}"
    return ""


def _propose_one(engine: Engine, folder: Path) -> Proposal:
    loaded = engine.loaded
    case, why = _read_for_update(folder, loaded)
    keeps_stages = "stages" in case.meta.digests
    result, found = answers(engine, arrow.decode_table(loaded.inputs, case.inputs), stages=keeps_stages)
    obtained = result.to_table()
    comparison = None
    if not why:
        rules = case_tolerances(case, engine.profile)
        comparison = compare(case.expected, obtained, rules, inputs=case.inputs)
    return Proposal(
        folder.name,
        folder,
        case.inputs,
        obtained,
        meta_of(engine, result, case.meta.reason, case.meta.sampled),
        comparison,
        why,
        tuple(case.notes(loaded)),
        found,
        _stage_change(case, found) if found is not None else "",
    )


def _read_for_update(folder: Path, loaded: LoadedHandler) -> tuple[GoldenCase, str]:
    """The case; where its answers are of no use any more, without them, and why."""
    try:
        return read_case(folder, loaded), ""
    except (StaleCaseError, DamagedCaseError) as exc:
        if isinstance(exc, StaleCaseError) and not exc.updatable:
            raise
        meta, inputs = read_inputs(folder, loaded)
        return GoldenCase(meta.handler, folder.name, folder, inputs, pa.table({}), meta), str(exc)


def _stage_change(case: GoldenCase, found: Traces) -> str:
    try:
        old = case.traces
    except GoldenError as exc:
        return f"the stage values kept so far cannot be used: {exc}"
    if old is None or old.num_rows != found.num_rows:
        return "the stage values kept so far are of other rows"
    return moved_stage(old, found)


def _same(one: Value | None, other: Value | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def _largest(pairs: Sequence[tuple[Value | None, Value | None]]) -> str:
    """The largest difference of numbers, as the end of a sentence; of shapes and types, when these differ."""
    largest = 0.0
    for one, other in pairs:
        if one is None or other is None:
            return "; some of them failed before or fail now"
        if one.dtype != other.dtype or one.shape != other.shape:
            return f": {one.dtype} {list(one.shape)} became {other.dtype} {list(other.shape)}"
        if one.dtype.kind not in "biuf" or one.size == 0:
            continue
        with np.errstate(all="ignore"):
            far = np.abs(other.astype(np.float64) - one.astype(np.float64))
        largest = max(largest, float(np.nanmax(far, initial=0.0)))
    return f", by at most {largest:.3g}" if largest else ""


def _places(names: list[str]) -> str:
    return ", ".join(names[:4]) + (", ..." if len(names) > 4 else "") if names else "nothing"
