"""The proof: every golden case through every installed runner in each of its wire forms, and the laws.

Rows go through `Runner.replay`, a runner's whole real path in processes of its own; nothing here takes a
shortcut through the engine but the laws, which are about the handler.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa

from parity import golden as goldens
from parity.compare import compare
from parity.engine import Engine
from parity.errors import ConfigError, ParityError, ReferenceNotFoundError, RunnerError
from parity.golden import GoldenCase
from parity.handler import LoadedHandler
from parity.laws import LawOutcome, check_laws, law_rows, laws_named
from parity.profile import Profile
from parity.registry import Runner, find_runner, load_handler, runner_names
from parity.report import CheckReport, Entry

ENGINE = "engine"
"""What reports call the handler run in this process, without a runner."""

_NETWORKED = "online"

Progress = Callable[[str], None]


def run_check(
    ref: str,
    *,
    app_dir: str | None = None,
    profile: str = "default",
    settings: Sequence[str] = (),
    runners: Sequence[str | Runner] | None = None,
    cases: Sequence[str] = (),
    golden: str | Path | None = None,
    laws: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> CheckReport:
    """Compare what every runner answers with the goldens, and try the laws.

    Args:
        ref: the handler's reference.
        app_dir: a folder to import `package.module` from.
        profile: a profile of handler.toml.
        settings: `KEY=VALUE` texts that override it.
        runners: runners, or names of installed ones; all installed ones when not given.
        cases: names of golden cases; all when empty.
        golden: the folder of golden cases; found as `parity.golden.golden_folder` says when not given.
        laws: names of laws; all when not given, none when empty.
        progress: called with a line before each longer step.

    Raises:
        ReferenceNotFoundError: there is no such handler or runner.
        GoldenError: a golden case is missing, stale, damaged or orphaned.
        ConfigError: a profile, setting, law or tolerance is wrong.
    """
    say = progress or _silent
    chosen_laws = laws_named(laws)
    loaded = load_handler(ref, app_dir=app_dir)
    chosen_profile = loaded.profile(profile).with_settings(settings)
    found = goldens.select_cases(loaded, golden, cases)
    chosen, notes = _runners(runners)
    entries: list[Entry] = []
    for runner in chosen:
        for wire in runner.wire_forms:
            name = f"{runner.name} {wire}" if len(runner.wire_forms) > 1 else runner.name
            say(f"{sum(case.inputs.num_rows for case in found)} golden rows through {name}")
            entries += _entries(runner, wire, loaded, found, chosen_profile)
    outcomes: list[LawOutcome] = []
    with Engine(loaded, chosen_profile) as engine:
        fingerprint = goldens.environment(engine)
        if chosen_laws:
            say(f"{len(chosen_laws)} laws")
            rows, labels = law_rows(loaded, found)
            networked = [runner for runner in chosen if runner.name == _NETWORKED and loaded.ref]
            outcomes = check_laws(engine, rows, laws=chosen_laws, labels=labels, runners=networked)
    for case in found:
        notes += [f"case {case.name}: {note}" for note in case.notes(loaded)]
    return CheckReport(
        handler=loaded.name,
        version=loaded.version,
        profile=chosen_profile.name,
        fingerprint=fingerprint,
        entries=tuple(entries),
        laws=tuple(outcomes),
        reference=ref,
        notes=tuple(notes),
    )


def check_goldens(
    ref: str,
    *,
    app_dir: str | None = None,
    profile: str = "default",
    settings: Sequence[str] = (),
    cases: Sequence[str] = (),
    golden: str | Path | None = None,
) -> CheckReport:
    """Compare what the handler answers in this process with the goldens; no runner, no law.

    Raises as `run_check` does.
    """
    loaded = load_handler(ref, app_dir=app_dir)
    chosen_profile = loaded.profile(profile).with_settings(settings)
    checks = goldens.check(loaded, chosen_profile, golden=golden, cases=cases)
    entries = [
        Entry(
            ENGINE,
            check.case.name,
            None,
            check.case.inputs.num_rows,
            check.comparison,
            check.seconds,
            recorded=check.case.meta.fingerprint,
        )
        for check in checks
    ]
    return CheckReport(
        handler=loaded.name,
        version=loaded.version,
        profile=chosen_profile.name,
        fingerprint=checks[0].fingerprint if checks else {},
        entries=tuple(entries),
        reference=ref,
        notes=tuple(f"case {check.case.name}: {note}" for check in checks for note in check.notes),
    )


def _silent(line: str) -> None:
    del line


def _runners(wanted: Sequence[str | Runner] | None) -> tuple[list[Runner], list[str]]:
    """The wanted runners; for None all that can be imported, with a note for each other."""
    if wanted is not None:
        return [find_runner(item) if isinstance(item, str) else item for item in dict.fromkeys(wanted)], []
    found: list[Runner] = []
    notes: list[str] = []
    for name in runner_names():
        try:
            found.append(find_runner(name))
        except ConfigError as exc:
            notes.append(f"not checked: {exc}")
    if not found:
        raise ReferenceNotFoundError("no runner is installed; pip install 'parity[online,notebook]'")
    return found, notes


def _entries(
    runner: Runner, wire: str, loaded: LoadedHandler, cases: Sequence[GoldenCase], profile: Profile
) -> list[Entry]:
    """All cases through one runner in one wire form: sent together, compared one by one."""
    rows = pa.concat_tables([case.inputs for case in cases])
    shown_wire = wire if len(runner.wire_forms) > 1 else None
    answers: pa.Table | None = None
    error = ""
    started = time.perf_counter()
    try:
        result = runner.replay(loaded.ref, rows, profile, app_dir=loaded.app_dir, wire=wire)
        answers = result.to_table()
        if answers.num_rows != rows.num_rows:
            raise RunnerError(f"{answers.num_rows} answers came back for {rows.num_rows} rows")
    except ConfigError:
        raise
    except Exception as exc:
        if isinstance(exc, ParityError) and not isinstance(exc, RunnerError):
            raise
        answers, error = None, str(exc) if isinstance(exc, RunnerError) else f"{type(exc).__name__}: {exc}"
    seconds = time.perf_counter() - started
    entries: list[Entry] = []
    start = 0
    for case in cases:
        size = case.inputs.num_rows
        comparison = None
        if answers is not None:
            rules = goldens.case_tolerances(case, profile)
            comparison = compare(case.expected, answers.slice(start, size), rules, inputs=case.inputs)
        share = seconds * size / rows.num_rows if rows.num_rows else 0.0
        entries.append(
            Entry(runner.name, case.name, shown_wire, size, comparison, share, error, case.meta.fingerprint)
        )
        start += size
    return entries
