"""Recorded requests kept as a golden case, once a replay has shown that they are answered as they were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from parity import golden as goldens
from parity.capture import read_capture
from parity.errors import DivergenceError, NothingComparedError
from parity.golden import GoldenCase
from parity.registry import load_handler
from parity.replay.fitting import Assumptions, question
from parity.replay.model import DriftReport
from parity.replay.replaying import find_handler
from parity.replay.selection import Wanted, portions

GOLDEN_ROWS = 100


def traffic_as_golden(
    report: DriftReport,
    case: str,
    *,
    wanted: Wanted | None = None,
    assume: Mapping[str, object] | None = None,
    profile: str | None = None,
    settings: Sequence[str] = (),
    golden: str | Path | None = None,
    app_dir: str | None = None,
) -> GoldenCase:
    """Record the first rows of a replay that agreed as a golden case, answered by the handler now.

    Args:
        report: the replay.
        case: the new case's name.
        wanted: the rows that were replayed; of them up to its limit, or 100, are kept.
        assume: values for inputs that were not recorded, as in the replay.
        profile: a profile of handler.toml.
        settings: `KEY=VALUE` texts that override it.
        golden: the folder of golden cases.
        app_dir: a folder to import `package.module` from.

    Raises:
        DivergenceError: the replay drifted: which answer is right must be decided first.
        NothingComparedError: the replay compared nothing.
        GoldenError: the case exists, or this is a CI run.
    """
    if report.verdict == "drifts":
        raise DivergenceError(f"no golden case {case!r} was recorded: the answers have drifted")
    if report.verdict != "agrees":
        raise NothingComparedError(f"no golden case {case!r} was recorded: nothing was compared")
    wanted = wanted or Wanted()
    wanted = replace(wanted, limit=wanted.limit or GOLDEN_ROWS)
    loaded = load_handler(report.reference, app_dir=app_dir)
    _, capture = find_handler(read_capture(report.traffic.folder), report.reference, app_dir)
    assumptions = Assumptions(loaded.inputs, assume or {})
    asked = [
        question(loaded.inputs, portion, assumptions)
        for portion in portions(capture, wanted, by_bucket=False)
    ]
    tables = [item.rows for item in asked if item.rows is not None]
    traffic = report.traffic
    reason = f"recorded traffic of {', '.join(traffic.handlers)}, {traffic.first} to {traffic.last}"
    rows = pa.concat_tables(tables, promote_options="permissive")
    chosen = loaded.profile(profile or "default").with_settings(settings)
    return goldens.record(loaded, rows, case, chosen, reason=reason, golden=golden)
