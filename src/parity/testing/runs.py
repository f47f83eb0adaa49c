"""Runners and laws of the handlers under test, each run once and kept for the session."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from parity import exact
from parity import golden as goldens
from parity.check import ENGINE
from parity.compare import Tolerances, compare
from parity.engine import Engine
from parity.errors import (
    ConfigError,
    FingerprintError,
    GoldenError,
    NothingComparedError,
    ParityError,
    RunnerError,
)
from parity.golden import GoldenCase
from parity.handler import LoadedHandler
from parity.laws import LawOutcome, check_laws, law_rows, laws_named
from parity.profile import Profile
from parity.registry import find_runner, load_handler, replay_wires, usual_runner_names
from parity.report import CheckReport, Entry
from parity.testing.plan import Test, case_names, orphans_of
from parity.testing.shared import Answers, ByWire, once
from parity.testing.target import Target

UPDATED_BY = "accepted new answers (pytest --golden-update)"

Made = TypeVar("Made")


@dataclass(frozen=True)
class _Loaded:
    """A target's handler, profile and golden cases, and why some of these cannot be had."""

    handler: LoadedHandler
    profile: Profile
    cases: tuple[GoldenCase, ...] = ()
    problems: Mapping[str, GoldenError] = field(default_factory=dict[str, GoldenError])


class Runs:
    """What has been run in this session.

    Args:
        shared: a folder that xdist's workers share, so that a runner is started once for all of them.
        update: accept new answers as golden before they are compared.
    """

    def __init__(self, *, shared: str | None = None, update: bool = False) -> None:
        self._shared = Path(shared) if shared is not None else None
        self._update = update
        self._kept: dict[tuple[Hashable, ...], Any] = {}
        self.updated: list[str] = []

    def handler(self, target: Target) -> LoadedHandler:
        """The target's handler, loaded once.

        Raises:
            ParityError: there is no such handler, or it has no schemas.
            Exception: whatever the user's module raises while it is imported.
        """
        key = ("handler", target.location, target.app_dir)
        return self._once(key, lambda: load_handler(target.location, app_dir=target.app_dir))

    def orphans(self, target: Target) -> str:
        """The orphaned goldens beside the target's, as a message; empty when there are none."""
        key = ("orphans", target.location, target.golden, target.cases is None)
        return self._once(key, lambda: orphans_of(target, self.handler(target)))

    def report(self, test: Test) -> CheckReport:
        """What came of a test, run now or before.

        Raises:
            ParityError: it could not be run: a golden is stale, a profile wrong, nothing was compared.
        """
        if test.message:
            raise ConfigError(test.message)
        loaded = self._loaded(test.target)
        notes = [
            f"case {case.name}: {note}"
            for case in loaded.cases
            if case.name == test.case
            for note in case.notes(loaded.handler)
        ]
        is_law = test.kind == "law"
        if is_law and not loaded.cases:
            notes.append("tried on rows made from the schema, for want of golden ones")
        return CheckReport(
            handler=loaded.handler.name,
            version=loaded.handler.version,
            profile=loaded.profile.name,
            fingerprint=self._fingerprint(test.target, loaded),
            entries=() if is_law else (self._entry(test, loaded),),
            laws=(self._law(test, loaded),) if is_law else (),
            reference=test.target.reference,
            notes=tuple(notes),
        )

    def _entry(self, test: Test, loaded: _Loaded) -> Entry:
        if test.case in loaded.problems:
            raise loaded.problems[test.case]
        case = next(item for item in loaded.cases if item.name == test.case)
        if case.answered == 0:
            raise NothingComparedError(
                f"golden case {case.name!r} of handler {loaded.handler.name} compares nothing: all its "
                f"{case.inputs.num_rows} rows are expected to fail; add a row that has an answer"
            )
        answers = self._answers(test.target, test.runner, loaded)[test.wire]
        total = sum(item.inputs.num_rows for item in loaded.cases)
        size = case.inputs.num_rows
        comparison = None
        if answers.table is not None:
            start = sum(item.inputs.num_rows for item in loaded.cases[: loaded.cases.index(case)])
            rules = _rules(case, loaded.profile, test.target)
            comparison = compare(case.expected, answers.table.slice(start, size), rules, inputs=case.inputs)
        return Entry(
            test.runner,
            case.name,
            test.wire or None,
            size,
            comparison,
            answers.seconds * size / total,
            answers.error,
            case.meta.fingerprint,
            refused=answers.refused,
        )

    def _law(self, test: Test, loaded: _Loaded) -> LawOutcome:
        rows, labels = law_rows(loaded.handler, loaded.cases)
        names = usual_runner_names() if test.target.runners is None else test.target.runners
        runners = [find_runner(name) for name in names if name != ENGINE and _imports(name)]
        rules = Tolerances.from_mapping({**loaded.handler.manifest.tolerance, **test.target.tolerance})
        with Engine(loaded.handler, loaded.profile) as engine:
            return check_laws(
                engine,
                rows,
                laws=laws_named([test.law]),
                labels=labels,
                tolerances=exact.tolerances(
                    rules, engine.profile, goldens.environment(engine), engine.profile
                ),
                runners=runners if loaded.handler.ref else [],
            )[0]

    def _loaded(self, target: Target) -> _Loaded:
        def load() -> _Loaded:
            handler = self.handler(target)
            profile = handler.profile(target.profile).with_settings(target.settings)
            if self._update:
                self._accept(target, handler, profile)
            cases: list[GoldenCase] = []
            problems: dict[str, GoldenError] = {}
            for name in case_names(target, handler):
                try:
                    cases.append(goldens.find_case(handler, name, target.golden))
                except GoldenError as exc:
                    problems[name] = exc
            goldens.check_profiles(cases)
            return _Loaded(handler, profile, tuple(cases), problems)

        return self._once(("loaded", _key(target)), load)

    def _accept(self, target: Target, handler: LoadedHandler, profile: Profile) -> None:
        cases = target.cases or ()
        for proposal in goldens.propose(handler, profile, golden=target.golden, cases=cases):
            if not proposal.changes:
                continue
            goldens.accept(proposal, reason=UPDATED_BY)
            moved = proposal.comparison.summary() if proposal.comparison is not None else "new outputs"
            self.updated.append(f"{target.reference}::{proposal.name}: {moved}")

    def _fingerprint(self, target: Target, loaded: _Loaded) -> dict[str, str]:
        def make() -> dict[str, str]:
            return goldens.environment(Engine(loaded.handler, loaded.profile))

        return self._once(("fingerprint", _key(target)), make)

    def _answers(self, target: Target, runner: str, loaded: _Loaded) -> ByWire:
        """The answers of a runner to all cases' rows, sent together; by wire form, "" for a single one."""
        rows = pa.concat_tables([case.inputs for case in loaded.cases], promote_options="default")

        def make() -> ByWire:
            return dict(_asked(runner, loaded, rows))

        digests = [sorted(case.meta.digests.items()) for case in loaded.cases]
        where = [target.location, target.app_dir, str(target.golden)]
        text = json.dumps([*where, runner, loaded.profile.to_settings(), digests])
        return self._once(("answers", runner, _key(target)), lambda: once(self._shared, text, make))

    def _once(self, key: tuple[Hashable, ...], make: Callable[[], Made]) -> Made:
        """What `make` gives, kept; an error is kept, too, and raised again."""
        if key not in self._kept:
            try:
                self._kept[key] = make()
            except Exception as exc:  # noqa: BLE001 - raised below, and again whenever it is asked for
                self._kept[key] = exc
        found = self._kept[key]
        if isinstance(found, Exception):
            raise found
        return found


def _asked(runner: str, loaded: _Loaded, rows: pa.Table) -> Iterator[tuple[str, Answers]]:
    started = time.perf_counter()
    if runner == ENGINE:
        with Engine(loaded.handler, loaded.profile) as engine:
            table = engine.score(_decoded(loaded, rows)).to_table()
        yield "", Answers(table, seconds=time.perf_counter() - started)
        return
    found = find_runner(runner)
    single = len(found.wire_forms) == 1
    done: set[str] = set()
    error, refused = "", False
    try:
        handler = loaded.handler
        for wire, result in replay_wires(found, handler.ref, rows, loaded.profile, app_dir=handler.app_dir):
            table = result.to_table()
            if table.num_rows != rows.num_rows:
                raise RunnerError(f"{table.num_rows} answers came back for {rows.num_rows} rows")
            done.add(wire)
            yield "" if single else wire, Answers(table, seconds=time.perf_counter() - started)
            started = time.perf_counter()
    except FingerprintError as exc:
        error, refused = str(exc), True
    except RunnerError as exc:
        error = str(exc)
    except ParityError:
        raise
    except Exception as exc:  # noqa: BLE001 - whatever a runner's package raises, it crashed
        error = f"{type(exc).__name__}: {exc}"
    for wire in found.wire_forms:
        if wire not in done:
            lost = error or f"runner {runner} gave no answers in wire form {wire!r}"
            yield "" if single else wire, Answers(None, lost, refused)


def _decoded(loaded: _Loaded, rows: pa.Table) -> Any:
    case = replace(loaded.cases[0], inputs=rows)
    return case.decoded(loaded.handler)


def _rules(case: GoldenCase, profile: Profile, target: Target) -> Tolerances:
    """The case's rules, with the test's own before them."""
    if not target.tolerance:
        return goldens.case_tolerances(case, profile)
    meta = replace(case.meta, tolerance={**case.meta.tolerance, **target.tolerance})
    return goldens.case_tolerances(replace(case, meta=meta), profile)


def _imports(name: str) -> bool:
    try:
        find_runner(name)
    except ParityError:
        return False
    return True


def _key(target: Target) -> Hashable:
    """What decides a target's answers."""
    return (target.location, target.app_dir, target.profile, target.settings, target.golden, target.cases)
