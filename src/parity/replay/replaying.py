"""Replay: recorded inputs through a runner's whole real path, and its answers against the recorded ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from parity.capture import Capture, read_capture
from parity.compare import Tolerances, compare
from parity.errors import ConfigError, ReferenceNotFoundError, RunnerError, did_you_mean
from parity.handler import LoadedHandler
from parity.profile import Profile
from parity.registry import HANDLER_FILE, Runner, find_runner, load_handler
from parity.replay.fitting import Assumptions, answers, question
from parity.replay.model import DriftReport, NotReplayable, Traffic
from parity.replay.selection import Portion, Wanted, count_refused, portions
from parity.replay.tally import Tally, moment_text

DEFAULT_RUNNER = "batch"

Progress = Callable[[str], None]


def replay_capture(
    folder: str | Path,
    *,
    runner: str | Runner = DEFAULT_RUNNER,
    wire: str | None = None,
    handler: str | None = None,
    app_dir: str | None = None,
    profile: str | None = None,
    settings: Sequence[str] = (),
    wanted: Wanted | None = None,
    assume: Mapping[str, object] | None = None,
    tolerances: Tolerances | None = None,
    progress: Progress | None = None,
) -> DriftReport:
    """Ask recorded requests again, and tell how the answers differ from the recorded ones.

    Args:
        folder: the folder or URL that was given to `--capture`, or one handler's folder in it.
        runner: the runner, or its name.
        wire: the wire form; the runner's first when not given.
        handler: the handler's reference; `handlers/<recorded name>` when not given.
        app_dir: a folder to import `package.module` from.
        profile: a profile of handler.toml; when not given, each row's recorded one, at the row's bucket.
        settings: `KEY=VALUE` texts that override the profile.
        wanted: which rows; all when not given.
        assume: values for inputs that were dropped or hashed.
        tolerances: the rules; the handler's when not given.
        progress: called with a line before each longer step.

    Raises:
        DatasetError: the capture cannot be read.
        NothingComparedError: there is no part of a capture.
        ReferenceNotFoundError: there is no such handler or runner.
        ConfigError: an option makes no sense for this capture.
        FingerprintError: the profile is exact, and its certificate does not hold here.
        RunnerError: the runner failed to start or crashed.
    """
    started = time.perf_counter()
    say = progress or _silent
    chosen = find_runner(runner) if isinstance(runner, str) else runner
    form = chosen.wire_forms[0] if wire is None else wire
    if form not in chosen.wire_forms:
        hint = did_you_mean(form, chosen.wire_forms)
        raise ConfigError(f"the runner {chosen.name} has no wire form {wire!r}; {hint}")
    capture = read_capture(folder)
    loaded, capture = find_handler(capture, handler, app_dir)
    wanted = wanted or Wanted()
    _require_versions(capture, wanted)
    fixed = None
    if profile is not None:
        fixed = loaded.profile(profile).with_settings(settings)
    rules = tolerances or Tolerances.from_mapping(loaded.manifest.tolerance)
    assumptions = Assumptions(loaded.inputs, assume or {})
    tally = Tally(loaded.outputs, rules)
    traffic = _TrafficTally(capture, wanted)
    skipped: dict[str, int] = {}
    notes: dict[str, None] = {}
    for portion in portions(capture, wanted, by_bucket=fixed is None):
        traffic.add(portion)
        asked = question(loaded.inputs, portion, assumptions)
        notes |= dict.fromkeys(asked.notes)
        if asked.rows is None:
            skipped[asked.reason] = skipped.get(asked.reason, 0) + portion.table.num_rows
            continue
        chosen_profile = fixed or _profile_of(portion, settings)
        at = f" at bucket {portion.bucket}" if portion.bucket is not None else ""
        say(f"{portion.table.num_rows} recorded rows through {chosen.name}{at}")
        result = chosen.replay(loaded.ref, asked.rows, chosen_profile, app_dir=loaded.app_dir, wire=form)
        if result.num_rows != portion.table.num_rows:
            raise RunnerError(f"{result.num_rows} answers came back for {portion.table.num_rows} rows")
        sides = answers(portion, result.to_table())
        notes |= dict.fromkeys(sides.notes)
        judged = _rules(rules, portion, chosen_profile, sides.recorded)
        found = compare(sides.recorded, sides.replayed, judged, inputs=asked.rows)
        tally.add(portion.table, sides.recorded, sides.replayed, found)
    return DriftReport(
        handler=loaded.name,
        version=loaded.version,
        reference=loaded.ref,
        runner=chosen.name,
        wire=form,
        traffic=traffic.traffic(),
        rows=tally.rows,
        not_replayable=tuple(NotReplayable(reason, rows) for reason, rows in skipped.items()),
        columns=tally.columns(),
        findings=tally.findings(),
        notes=(*traffic.notes(), *notes),
        labels=tally.labels(),
        scores=tally.scores(),
        failures=tally.failures(),
        hours=tally.hours(),
        versions=tally.versions(),
        profiles=tally.profiles(),
        worst=tally.worst(),
        seconds=time.perf_counter() - started,
    )


def find_handler(
    capture: Capture, handler: str | None, app_dir: str | None = None
) -> tuple[LoadedHandler, Capture]:
    """The handler to ask, and the parts that hold its traffic.

    Without a reference it is looked for under the recorded name, in `handlers/` and in the working folder.
    What the capture itself says about where the handler was is never loaded: a capture is data.

    Raises:
        ConfigError: it is not clear which handler's traffic is meant.
        ReferenceNotFoundError: there is no handler of the recorded name here.
    """
    names = list(capture.handlers)
    if handler is None and len(names) > 1:
        raise ConfigError(
            f"{capture.folder} holds traffic of {len(names)} handlers ({', '.join(names)}); name one with "
            "--handler, or give its folder in the capture"
        )
    loaded = _guessed(capture) if handler is None else load_handler(handler, app_dir=app_dir)
    name = loaded.name if loaded.name in names else names[0]
    if loaded.name not in names and len(names) > 1:
        raise ConfigError(
            f"{capture.folder} holds no traffic of handler {loaded.name!r}; it holds that of "
            f"{', '.join(names)}"
        )
    parts = tuple(part for part in capture.parts if part.meta.source.handler == name)
    return loaded, replace(capture, parts=parts)


def _guessed(capture: Capture) -> LoadedHandler:
    (name,) = capture.handlers
    candidates = [Path("handlers", name), Path(name)]
    for candidate in candidates:
        if (candidate / HANDLER_FILE).is_file() or (candidate / "handler.toml").is_file():
            loaded = load_handler(str(candidate))
            if loaded.name == name:
                return loaded
    places = " nor ".join(f"{candidate}/" for candidate in candidates)
    served = sorted({part.meta.source.reference for part in capture.parts} - {""})
    hint = f"; it was served as {' and '.join(served[:3])}" if served else ""
    raise ReferenceNotFoundError(
        f"{capture.folder} holds traffic of handler {name!r}, and neither {places} is it here{hint}; name it "
        "with --handler"
    )


def _require_versions(capture: Capture, wanted: Wanted) -> None:
    known = {part.meta.source.version for part in capture.parts}
    for version in wanted.versions:
        if version not in known:
            raise ConfigError(
                f"{capture.folder} holds no rows of version {version!r}; {did_you_mean(version, known)}"
            )


def _profile_of(portion: Portion, settings: Sequence[str]) -> Profile:
    """The recorded profile, at the recorded bucket where the rows have one."""
    profile = portion.meta.source.recorded_profile
    if portion.bucket is not None:
        profile = replace(profile, buckets=(portion.bucket,))
    return profile.with_settings(settings)


def _rules(declared: Tolerances, portion: Portion, profile: Profile, recorded: pa.Table) -> Tolerances:
    """The rules for what this portion holds: bits where exact mode promised them, else the declared ones."""
    before = portion.meta.source.recorded_profile
    kept = {
        name: rule
        for name, rule in declared.columns.items()
        if name.partition(".")[0] in recorded.column_names
    }
    rules = Tolerances(kept, declared.dtypes, declared.pairs)
    if before.exact and profile.exact:
        from parity.exact import tolerances

        at_bucket = before if portion.bucket is None else replace(before, buckets=(portion.bucket,))
        rules = tolerances(rules, at_bucket, portion.meta.source.fingerprint, profile)
    return rules.for_pair(_side(before), _side(profile))


def _side(profile: Profile) -> str:
    return f"{profile.device.partition(':')[0]}:{profile.precision}"


def _silent(line: str) -> None:
    del line


class _TrafficTally:
    """What the rows that were asked for are, told from the parts and the rows themselves."""

    def __init__(self, capture: Capture, wanted: Wanted) -> None:
        self._folder = capture.folder
        self._refused_requests, self._refused_rows = count_refused(capture, wanted)
        self._metas = [part.meta for part in capture.parts if wanted.takes(part.meta)]
        self._rows = 0
        self._first: int | None = None
        self._last: int | None = None
        self._handlers: dict[str, int] = {}

    def add(self, portion: Portion) -> None:
        """Count a portion's rows."""
        table = portion.table
        times: Any = table.column("_time").cast(pa.int64()).to_numpy()
        first, last = int(times.min()), int(times.max())
        self._first = first if self._first is None else min(first, self._first)
        self._last = last if self._last is None else max(last, self._last)
        self._rows += table.num_rows
        counted: Any = table.group_by(["_handler", "_version"]).aggregate([([], "count_all")]).to_pylist()
        for found in counted:
            name = f"{found['_handler']} {found['_version']}"
            self._handlers[name] = self._handlers.get(name, 0) + found["count_all"]

    def traffic(self) -> Traffic:
        """All of it."""
        metas = self._metas
        return Traffic(
            folder=self._folder,
            parts=len(metas),
            rows=self._rows,
            lost_rows=sum(meta.lost_rows for meta in metas),
            first="" if self._first is None else moment_text(self._first),
            last="" if self._last is None else moment_text(self._last),
            handlers=dict(self._handlers),
            rates=tuple(sorted({meta.sample for meta in metas})),
            keeps_errors=any(meta.keep_errors for meta in metas),
            hidden=tuple(sorted({name for meta in metas for name in (*meta.dropped, *meta.hashed)})),
            refused_requests=self._refused_requests,
            refused_rows=self._refused_rows,
        )

    def notes(self) -> list[str]:
        """What to keep in mind when reading the report."""
        found: list[str] = []
        lost = sum(meta.lost_rows for meta in self._metas)
        if lost:
            found.append(f"{lost} rows were lost to the capture: its queue was full, or its target failed")
        if any(meta.keep_errors and meta.sample < 1 for meta in self._metas):
            found.append(
                "failed rows were recorded beside the sample: there are more of them than in the traffic"
            )
        if self._refused_requests:
            found.append(
                f"{self._refused_rows} rows of {self._refused_requests} requests did not fit the schema when "
                "they came; they had no answer, and are not asked again (see the folder _refused)"
            )
        if self._rows == 0:
            found.append("no recorded row is of the versions and times that were asked for")
        return found
