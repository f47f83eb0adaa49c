"""Where tests come from: `pytest --parity`, without a test file, and functions that ask for parity_case."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from parity.errors import ParityError
from parity.testing.case import ParityCase
from parity.testing.plan import Test, tests_of
from parity.testing.plugin import FIXTURE, MARKER
from parity.testing.runs import Runs
from parity.testing.target import Target, target_of_marker, target_of_options


class HandlerNode(pytest.Collector):
    """A handler, above its tests."""

    def __init__(self, *, target: Target, runs: Runs, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._target = target
        self._runs = runs

    def collect(self) -> Iterator[pytest.Item]:
        """The handler's tests; raises what importing the handler raises."""
        for test in [*_planned(self._target, self._runs), *_orphans(self._target, self._runs)]:
            yield ParityItem.from_parent(self, name=test.name, test=test, runs=self._runs)


class ParityItem(pytest.Item):
    """One test that needs no function."""

    def __init__(self, *, test: Test, runs: Runs, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._case = ParityCase(test, runs, self)

    def runtest(self) -> None:
        """Check the case."""
        self._case.check()

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """The handler's place, and the test's name."""
        return self.path, None, self.nodeid


def items_of_options(session: pytest.Session, runs: Runs) -> Iterator[pytest.Item]:
    """The tests of every handler that `--parity` names."""
    option = session.config.option
    root = session.config.rootpath
    for reference in dict.fromkeys(option.parity):
        target = target_of_options(
            reference, option.parity_runner, option.parity_law, option.parity_profile, root
        )
        name = target.reference
        node = HandlerNode.from_parent(
            session, name=name, nodeid=name, path=_place(target, root), target=target, runs=runs
        )
        report = node.ihook.pytest_make_collect_report(collector=node)
        node.ihook.pytest_collectreport(report=report)
        yield from report.result if report.passed else ()


def parametrize(metafunc: pytest.Metafunc, runs: Runs) -> None:
    """Give the function a `parity_case` for each test of the handlers that its markers name."""
    markers = list(metafunc.definition.iter_markers(MARKER))
    name = metafunc.definition.nodeid
    if not markers:
        pytest.fail(
            f"{name} asks for {FIXTURE} and names no handler; decorate it with "
            '@pytest.mark.parity("handlers/NAME")',
            pytrace=False,
        )
    tests: list[Test] = []
    ids: list[str] = []
    for marker in reversed(markers):  # the order in which they are written
        try:
            root, file = metafunc.config.rootpath, metafunc.definition.path
            target = target_of_marker(marker.args, marker.kwargs, root, file)
        except ParityError as exc:
            pytest.fail(f"{name}: {exc}", pytrace=False)
        planned = _planned(target, runs)
        tests += planned
        prefix = f"{target.reference}::" if len(markers) > 1 else ""
        ids += [f"{prefix}{test.name}" for test in planned]
    metafunc.parametrize(FIXTURE, tests, ids=ids, indirect=True)


def _planned(target: Target, runs: Runs) -> list[Test]:
    """The tests of a target; a single failing one where it cannot be planned."""
    try:
        return tests_of(target, runs.handler(target))
    except ParityError as exc:
        return [Test(target, "failing", "handler", message=str(exc))]


def _orphans(target: Target, runs: Runs) -> Iterator[Test]:
    """A failing test where there are orphaned goldens."""
    try:
        found = runs.orphans(target)
    except ParityError:
        return
    if found:
        yield Test(target, "failing", "golden::orphans", message=found)


def _place(target: Target, root: Path) -> Path:
    """A path for the handler in pytest's reports; the root for one that is named by module."""
    path = Path(target.location.rpartition(":")[0] or target.location)
    for candidate in (Path(target.location), path):
        if candidate.exists():
            return candidate
    return root
