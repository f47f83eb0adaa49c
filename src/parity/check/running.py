"""run_check and check_goldens: goldens and laws through this process and every runner, into one report."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from parity import exact
from parity import golden as goldens
from parity.check.diagnosing import Explained, explain_golden, explain_route
from parity.check.routes import ENGINE, Progress, Route, SentBefore, through_runners
from parity.codec.arrow import decode_table
from parity.compare import Tolerances, compare
from parity.engine import Engine
from parity.errors import ConfigError, ReferenceNotFoundError
from parity.golden import GoldenCase
from parity.handler import LoadedHandler
from parity.laws import Bench, LawOutcome, check_bench, law_rows, laws_named
from parity.laws.forms import carried_rows
from parity.registry import Runner, find_runner, load_handler, runner_names, usual_runner_names
from parity.report import CheckReport, Entry
from parity.report.samples import samples

logger = logging.getLogger(__name__)

_RUNNER_LAW = "runner"
_DEVICE_LAW = "device"


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
    profiles: Sequence[str] = (),
    thorough: bool = False,
    deadline_s: float | None = None,
    progress: Progress | None = None,
) -> CheckReport:
    """Compare what every runner answers with the goldens, try the laws, and say why what differs does.

    Each runner is started once, and sent the rows of all cases and of the laws together.

    Args:
        ref: the handler's reference.
        app_dir: a folder to import `package.module` from.
        profile: a profile of handler.toml.
        settings: `KEY=VALUE` texts that override it.
        runners: runners, or names of installed ones; when not given all installed ones, of which those that
            start slowly in a thorough check only.
        cases: names of golden cases; all when empty.
        golden: the folder of golden cases; found as `parity.golden.golden_folder` says when not given.
        laws: names of laws; all when not given, none when empty.
        profiles: names of further profiles that the device law compares with `profile`.
        thorough: try the laws on more rows and in more ways.
        deadline_s: seconds after which no further law is begun; those left over could not be tried.
        progress: called with a line before each longer step.

    Raises:
        ReferenceNotFoundError: there is no such handler or runner.
        GoldenError: a golden case is missing, stale, damaged or orphaned.
        CertificateError: the profile is exact, and no certificate holds here.
        ConfigError: a profile, setting, law or tolerance is wrong.
    """
    say = progress or _silent
    chosen_laws = laws_named(laws)
    loaded = load_handler(ref, app_dir=app_dir)
    chosen_profile = loaded.profile(profile).with_settings(settings)
    found = _cases(loaded, golden, cases)
    chosen, notes = _runners(runners, thorough)
    outcomes: list[LawOutcome] = []
    with Engine(loaded, chosen_profile) as engine:
        rows, labels = law_rows(loaded, found)
        bench = Bench(
            engine,
            rows,
            labels=labels,
            tolerances=_law_tolerances(engine),
            profiles=profiles,
            thorough=thorough,
            deadline_s=deadline_s,
        )
        with bench:
            sent = [case.inputs for case in found]
            by_law = any(law.name == _RUNNER_LAW for law in chosen_laws) and bool(loaded.ref)
            if by_law:
                sent.append(bench.batch(carried_rows(bench)).to_table())
            together = pa.concat_tables(sent, promote_options="default")
            routes = [_this_process(engine, found)]
            routes += through_runners(chosen, loaded, together, chosen_profile, say)
            entries, said = _entries(routes, engine, found)
            if by_law:
                refused = {route.runner_name for route in routes if route.refused}  # their entries say so
                asked = [runner for runner in chosen if runner.name not in refused]
                bench.runners = tuple(SentBefore(runner, sent[-1], routes) for runner in asked)
            if chosen_laws:
                outcomes = check_bench(bench, chosen_laws, progress=say)
        fingerprint = goldens.environment(engine)
    for case in found:
        notes += [f"case {case.name}: {note}" for note in case.notes(loaded)]
    if profiles and any(law.name == _DEVICE_LAW for law in chosen_laws):
        notes.append(
            f"profile {chosen_profile.name} compared with {', '.join(profiles)} by law {_DEVICE_LAW}"
        )
    return CheckReport(
        handler=loaded.name,
        version=loaded.version,
        profile=chosen_profile.name,
        fingerprint=fingerprint,
        entries=tuple(entries),
        laws=tuple(outcomes),
        reference=ref,
        notes=(*notes, *said),
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
    found = goldens.select_cases(loaded, golden, cases)
    with Engine(loaded, chosen_profile) as engine:
        entries, said = _entries([_this_process(engine, found)], engine, found)
        fingerprint = goldens.environment(engine)
    notes = [f"case {case.name}: {note}" for case in found for note in case.notes(loaded)]
    return CheckReport(
        handler=loaded.name,
        version=loaded.version,
        profile=chosen_profile.name,
        fingerprint=fingerprint,
        entries=tuple(entries),
        reference=ref,
        notes=(*notes, *said),
    )


def _cases(loaded: LoadedHandler, golden: str | Path | None, names: Sequence[str]) -> list[GoldenCase]:
    """The cases of these names; for none all, and then an orphan beside them is an error."""
    if not names:
        goldens.require_no_orphans(loaded, golden)
    return goldens.select_cases(loaded, golden, names)


def _law_tolerances(engine: Engine) -> Tolerances:
    """handler.toml's rules; bits where the profile is exact."""
    declared = Tolerances.from_mapping(engine.loaded.manifest.tolerance)
    return exact.tolerances(declared, engine.profile, goldens.environment(engine), engine.profile)


def _silent(line: str) -> None:
    del line


def _runners(wanted: Sequence[str | Runner] | None, thorough: bool) -> tuple[list[Runner], list[str]]:
    """The wanted runners; for None all that can be imported, with a note for each other.

    Those that start slowly are among all in a thorough check only.
    """
    if wanted is not None:
        return [find_runner(item) if isinstance(item, str) else item for item in dict.fromkeys(wanted)], []
    found: list[Runner] = []
    notes: list[str] = []
    names = runner_names() if thorough else usual_runner_names()
    for name in names:
        try:
            found.append(find_runner(name))
        except ConfigError as exc:
            notes.append(f"not checked: {exc}")
    slow = [name for name in runner_names() if name not in names]
    if slow:
        notes.append(f"not checked: {' and '.join(slow)}, slow to start; --thorough asks all, --runner one")
    if not found:
        raise ReferenceNotFoundError("no runner is installed; pip install 'parity[online,notebook]'")
    return found, notes


def _this_process(engine: Engine, cases: Sequence[GoldenCase]) -> Route:
    """The cases asked of the engine, each as a batch of its own."""
    started = time.perf_counter()
    results = [engine.score(decode_table(engine.loaded.inputs, case.inputs)) for case in cases]
    result = type(results[0]).concat(results, engine.loaded.outputs)
    return Route(None, ENGINE, result, time.perf_counter() - started)


def _entries(
    routes: Sequence[Route], engine: Engine, cases: Sequence[GoldenCase]
) -> tuple[list[Entry], list[str]]:
    """Each case by each route, compared; what differs is diagnosed; and notes about what could not be."""
    entries: list[Entry] = []
    notes: list[str] = []
    starts = [sum(case.inputs.num_rows for case in cases[:position]) for position in range(len(cases))]
    total = sum(case.inputs.num_rows for case in cases)
    for route in routes:
        for case, start in zip(cases, starts, strict=True):
            entries.append(_compared(route, case, start, total, engine))
    for position, entry in enumerate(entries):
        if entry.verdict != "divergent":
            continue
        case = next(item for item in cases if item.name == entry.case)
        found = _explained(entry, case, routes, engine, entries)
        kept = entry.samples
        if kept is not None:
            kept = replace(kept, pictures=(*kept.pictures, *found.pictures))
        entries[position] = replace(entry, diagnosis=found.diagnosis, samples=kept)
        notes += [f"case {case.name}: {found.note}"] if found.note else []
    return entries, notes


def _compared(route: Route, case: GoldenCase, start: int, total: int, engine: Engine) -> Entry:
    rows = case.inputs.num_rows
    answers = route.answers(start, rows)
    entry = Entry(
        runner=route.runner_name,
        case=case.name,
        wire=route.shown_wire,
        rows=rows,
        comparison=None,
        seconds=route.seconds * rows / total if total else 0.0,
        error=route.error,
        recorded=case.meta.fingerprint,
        refused=route.refused,
    )
    if answers is None:
        return entry
    rules = goldens.case_tolerances(case, engine.profile)
    found = compare(case.expected, answers, rules, inputs=case.inputs)
    kept = samples(found, case.expected, answers, route.buckets(start, rows), inputs=case.inputs)
    return replace(entry, comparison=found, samples=kept)


def _explained(
    entry: Entry, case: GoldenCase, routes: Sequence[Route], engine: Engine, entries: Sequence[Entry]
) -> Explained:
    """Why one entry diverges: as this process does, or by what the runner does otherwise."""
    rules = goldens.case_tolerances(case, engine.profile)
    here = next(item for item in entries if item.runner == ENGINE and item.case == case.name)
    if here.verdict == "divergent":
        if here.diagnosis is not None:
            return Explained(here.diagnosis)
        assert here.comparison is not None, "a divergent entry was compared"
        found = here.comparison
        return _attempted(lambda: explain_golden(case, found, engine, rules))
    route = next(item for item in routes if item.name == entry.name)
    return _attempted(lambda: explain_route(case, route, engine, rules))


def _attempted(explain: Callable[[], Explained]) -> Explained:
    """The explanation; that there is none costs nobody the divergence that was found."""
    try:
        return explain()
    except Exception as exc:
        logger.exception("event=triage_failed")
        return Explained(None, f"looking for the cause failed: {type(exc).__name__}: {exc}")
