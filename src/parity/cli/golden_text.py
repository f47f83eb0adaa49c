"""How `parity golden` shows cases, samples, proposals and leftovers: as text, and as JSON-ready data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from parity.golden import GoldenCase, Leftover, Proposal, Sample
from parity.report import terminal

_MOST_STRATA = 40


def case_dict(case: GoldenCase, notes: Sequence[str]) -> dict[str, Any]:
    """A case as JSON-ready data."""
    return {
        "case": case.name,
        "path": str(case.path),
        **case.meta.to_dict(),
        "stages": "stages" in case.meta.digests,
        "notes": list(notes),
    }


def case_lines(case: GoldenCase, notes: Sequence[str]) -> Iterator[str]:
    """A case in a list."""
    meta = case.meta
    failing = f", {meta.errors} failing" if meta.errors else ""
    stages = "  with stages" if "stages" in meta.digests else ""
    yield (
        f"  {case.name}  {meta.rows} rows{failing}  version {meta.version}  {meta.created}  "
        f"profile {profile_name(meta.profile)}{stages}  {meta.reason}"
    )
    for note in notes:
        yield f"    note: {note}"


def shown_case(
    case: GoldenCase, notes: Sequence[str], strata: Mapping[str, int], pairs: Sequence[Mapping[str, object]]
) -> Iterator[str]:
    """All that a case says, and its first rows with their answers."""
    meta = case.meta
    yield f"{meta.handler} {meta.version}, case {case.name}: {meta.rows} rows, {meta.errors} failing"
    yield f"recorded {meta.created} under profile {profile_name(meta.profile)}: {meta.reason}"
    if meta.sampled:
        yield f"sampled: {meta.sampled}"
    for note in notes:
        yield f"note: {note}"
    yield ""
    yield from _table("profile", meta.profile)
    yield from _table("fingerprint", meta.fingerprint)
    rules = {column: _rule(rule) for column, rule in meta.tolerance.items()}
    yield from _table("tolerance", rules or {"(none)": "every column has its dtype's default"})
    if case.traces is not None:
        places = {
            stage: ", ".join(case.traces.stage(stage)) or "nothing" for stage in ("preprocess", "inference")
        }
        yield from _table("stage values", places)
    yield from _table("strata", {name: f"{count} of {meta.rows} rows" for name, count in strata.items()})
    for row, pair in enumerate(pairs):
        yield f"row {row}: {json.dumps(pair['input'], ensure_ascii=False)}"
        yield f"    -> {json.dumps(pair['expected'], ensure_ascii=False)}"


def sample_lines(sample: Sample) -> Iterator[str]:
    """Which strata a sample covers, the rarest first, and how many rows of each it has."""
    items = sorted(sample.coverage, key=lambda item: (item.in_sample > 0, item.in_dataset))
    width = max([len(item.stratum) for item in items[:_MOST_STRATA]], default=7)
    counts = max(len(str(sample.total)), len("dataset"))
    yield f"  {'stratum'.ljust(width)}  {'dataset'.rjust(counts)}  sample"
    for item in items[:_MOST_STRATA]:
        missing = "" if item.in_sample else "  not covered"
        yield f"  {item.stratum.ljust(width)}  {item.in_dataset:>{counts}}  {item.in_sample:>6}{missing}"
    if len(items) > _MOST_STRATA:
        yield f"  ... and {len(items) - _MOST_STRATA} more, all covered, or see --json"
    covered = len(items) - len(sample.missing)
    advice = f"; --sample {sample.needed} would cover all" if sample.missing else ""
    yield f"  {covered} of {len(items)} strata covered{advice}"


def sample_dict(sample: Sample) -> dict[str, Any]:
    """A sample as JSON-ready data."""
    return {
        "total": sample.total,
        "rows": sample.rows.num_rows,
        "needed": sample.needed,
        "positions": sample.positions.tolist(),
        "strata": [vars(item) for item in sample.coverage],
    }


def proposal_text(proposal: Proposal, *, colour: bool) -> str:
    """What accepting a proposal would change: columns, worst rows, the first stage that moved, notes."""
    notes = "".join(f"\n  note: {note}" for note in proposal.notes)
    if proposal.moved_stage:
        notes = f"\n  stages: {proposal.moved_stage}{notes}"
    if proposal.comparison is None:
        return f"case {proposal.name}: not compared with the old answers: {proposal.why_not_compared}{notes}"
    if not proposal.moved:
        return f"case {proposal.name}: no answer moved{notes}"
    shown = terminal.render_comparison(proposal.comparison, f"case {proposal.name}", colour=colour)
    return f"{shown.rstrip()}{notes}"


def proposal_dict(proposal: Proposal, *, accepted: bool) -> dict[str, Any]:
    """A proposal as JSON-ready data."""
    comparison = proposal.comparison
    return {
        "case": proposal.name,
        "moved": proposal.moved,
        "accepted": accepted,
        "notes": list(proposal.notes),
        "moved_stage": proposal.moved_stage,
        "not_compared": proposal.why_not_compared,
        "comparison": comparison.to_dict() if comparison is not None else None,
    }


def leftover_line(item: Leftover) -> str:
    """A leftover in a list."""
    return f"  {item.kind}: {item.path}: {item.why}"


def profile_name(profile: Mapping[str, Any]) -> str:
    """A recorded profile in a few words."""
    return f"{profile.get('name', 'default')} ({profile.get('device', 'cpu')}, {profile.get('precision')})"


def _table(title: str, values: Mapping[str, Any]) -> Iterator[str]:
    if values:
        yield f"{title}:"
        yield from (f"  {name}: {value}" for name, value in values.items())
        yield ""


def _rule(rule: Any) -> str:
    if not isinstance(rule, Mapping):
        return str(rule)
    return ", ".join(f"{key} = {json.dumps(value)}" for key, value in cast("Mapping[str, Any]", rule).items())
