"""The tests of a target: each runner in each wire form on each golden case, and each law. Nothing is run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from parity.check import ENGINE
from parity.errors import ConfigError, GoldenError
from parity.golden import find_orphans, golden_folder, orphans_text
from parity.golden.meta import CASE
from parity.golden.places import case_folders, require_cases
from parity.handler import LoadedHandler
from parity.laws import laws_named
from parity.registry import find_runner, usual_runner_names
from parity.testing.target import Target

Kind = Literal["case", "law", "failing", "missing"]


@dataclass(frozen=True)
class Test:
    """One test.

    Attributes:
        target: the handler under test.
        kind: "case" (a runner on a golden case), "law", "failing" (it is known already that this cannot
            work, see `message`) or "missing" (a runner that is not installed whole, to be skipped).
        name: its name, such as "online-rows::sample" or "law::batch-size".
        runner: the runner's name, for a case.
        wire: the wire form, where the runner has several.
        case: the golden case's name.
        law: the law's name.
        message: why it fails or is skipped.
    """

    __test__ = False

    target: Target
    kind: Kind
    name: str
    runner: str = ""
    wire: str = ""
    case: str = ""
    law: str = ""
    message: str = ""


def tests_of(target: Target, loaded: LoadedHandler) -> list[Test]:
    """All tests of a target, in the order in which they are best read.

    Raises:
        ParityError: a runner or law is not known.
    """
    laws = [
        Test(target, "law", f"law::{law.name}", law=law.name)
        for law in laws_named(None if target.laws is None else list(target.laws))
    ]
    return [*_of_runners(target, loaded), *laws]


def case_names(target: Target, loaded: LoadedHandler) -> list[str]:
    """The names of the target's golden cases; a folder without case.toml is none, but an orphan."""
    if target.cases is not None:
        return list(target.cases)
    folder = golden_folder(loaded, target.golden)
    return [path.name for path in case_folders(folder) if (path / CASE).is_file()]


def orphans_of(target: Target, loaded: LoadedHandler) -> str:
    """The orphaned goldens beside the target's, as a message; empty for none, or where cases are named."""
    if target.cases is not None:
        return ""
    found = find_orphans(loaded, target.golden)
    return orphans_text(found, loaded) if found else ""


def _of_runners(target: Target, loaded: LoadedHandler) -> Iterator[Test]:
    if target.runners == ():
        return
    names = case_names(target, loaded)
    if not names:
        try:
            require_cases([], loaded, target.golden)
        except GoldenError as exc:
            yield Test(target, "failing", "golden", message=str(exc))
        return
    for runner, wire, why in _forms(target):
        if why:
            yield Test(target, "missing", runner, runner, message=why)
            continue
        label = f"{runner}-{wire}" if wire else runner
        for case in names:
            yield Test(target, "case", f"{label}::{case}", runner, wire, case)


def _forms(target: Target) -> Iterator[tuple[str, str, str]]:
    """Runners with each wire form, "" for one of a single form; or why the runner cannot be imported.

    Runners that start slowly are there where they are named.
    """
    for name in target.runners if target.runners is not None else usual_runner_names():
        if name == ENGINE:
            yield name, "", ""
            continue
        try:
            runner = find_runner(name)
        except ConfigError as exc:
            if target.runners is not None:
                raise
            yield name, "", str(exc)
            continue
        for wire in runner.wire_forms:
            yield name, wire if len(runner.wire_forms) > 1 else "", ""
